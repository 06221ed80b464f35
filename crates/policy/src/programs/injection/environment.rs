//! Variables that make other programs load or run something.

use super::super::ProgramJudge;
use super::{PAGERS_AND_EDITORS, injected, is_plain};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::HarmFinding;
use crate::paths;

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let given = command
        .assigns
        .iter()
        .map(|(name, value)| (name.as_str(), value.s.as_str()));
    let sets = matches!(
        command.program(),
        "env" | "export" | "declare" | "typeset" | "sudo" | "doas" | "make" | "gmake"
    );
    let words = command.args().iter().filter(|_| sets);
    let worded = words.filter_map(|arg| arg.s.split_once('='));
    given
        .chain(worded)
        .filter(|(name, value)| makes_run(name, value, judge))
        .map(|(name, _)| injected(format!("makes another program run something ({name})")))
        .collect()
}

fn makes_run(name: &str, value: &str, judge: &ProgramJudge<'_>) -> bool {
    let first = base_name(value.split_whitespace().next().unwrap_or_default());
    let anybodys = |path: &str| paths::anybodys(path, &judge.cwd, judge.context);
    let has = |words: &[&str]| words.iter().any(|word| value.contains(word));
    match name {
        _ if value.is_empty() => false,
        _ if name.starts_with("BASH_FUNC_") => true,
        "RESTIC_PASSWORD_COMMAND"
        | "AUTOM4TE"
        | "GROFF_BIN_PATH"
        | "BORG_PASSCOMMAND"
        | "VAULT_PASS_COMMAND"
        | "SOPS_EDITOR"
        | "DPKG_HOOKS"
        | "GIT_TEST_CMD" => true,
        "LD_PRELOAD" | "LD_AUDIT" | "DYLD_INSERT_LIBRARIES" => {
            !has(&["jemalloc", "asan", "tcmalloc", "mimalloc"])
        }
        "BASH_ENV" | "PROMPT_COMMAND" | "PYTHONSTARTUP" | "PYTHONINSPECT" | "GIT_EXTERNAL_DIFF"
        | "GIT_PROXY_COMMAND" | "GIT_SSH" | "PYTHONBREAKPOINT" => true,
        "ENV" => value.starts_with(['/', '.', '~']),
        "NODE_OPTIONS" => has(&["--require", "-r ", "--import", "--loader"]),
        "PERL5OPT" | "RUBYOPT" => has(&["-M", "-r", "-d"]),
        "PERL5DB" => true,
        "GIT_SSH_COMMAND" | "RSYNC_RSH" | "CVS_RSH" | "SVN_SSH" => {
            first != "ssh" || !is_plain(value) || value.to_lowercase().contains("command=")
        }
        "TAR_OPTIONS" => has(&["exec", "command", "program"]),
        "MAKEFLAGS" => has(&["eval", "SHELL"]),
        "PS1" | "PS4" | "PS0" => has(&["$(", "`"]),
        "LESSOPEN" | "LESSCLOSE" => !has(&["lesspipe"]),
        "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "MAVEN_OPTS" | "GRADLE_OPTS"
        | "JDK_JAVA_OPTIONS" => has(&["-javaagent", "-agent", "OnOutOfMemoryError"]),
        "RUSTC_WRAPPER" | "RUSTC_WORKSPACE_WRAPPER" => !matches!(first, "sccache" | "ccache"),
        "GIT_ASKPASS" | "SSH_ASKPASS" | "SUDO_ASKPASS" => {
            !matches!(first, "true" | "echo" | "false" | "cat") && !value.starts_with("/usr/")
        }
        "PAGER"
        | "GIT_PAGER"
        | "MANPAGER"
        | "EDITOR"
        | "VISUAL"
        | "GIT_EDITOR"
        | "BROWSER"
        | "FCEDIT"
        | "HGEDITOR"
        | "SVN_EDITOR"
        | "GIT_SEQUENCE_EDITOR"
        | "SYSTEMD_PAGER"
        | "SYSTEMD_EDITOR"
        | "SUDO_EDITOR"
        | "PSQL_PAGER"
        | "BAT_PAGER"
        | "AWS_PAGER" => !PAGERS_AND_EDITORS.contains(&first) || !is_plain(value) && first != "col",
        "SHELLOPTS" | "BASHOPTS" => has(&["xtrace", "expand_aliases"]),
        // Found before those of the system, in a folder that anybody may write to.
        "PATH" | "PYTHONPATH" | "LD_LIBRARY_PATH" | "PERL5LIB" | "RUBYLIB" | "NODE_PATH"
        | "GIT_EXEC_PATH" | "LUA_PATH" | "GEM_PATH" | "CLASSPATH" => value
            .split(':')
            .next()
            .is_some_and(|first| anybodys(first) || first == "." && name == "PATH"),
        // Names a program or a file of orders.
        "CC"
        | "CXX"
        | "LD"
        | "AR"
        | "AS"
        | "CPP"
        | "RUSTC"
        | "SHELL"
        | "MAKE"
        | "GO"
        | "CONFIG_SHELL"
        | "GIT_CONFIG_GLOBAL"
        | "GIT_CONFIG_SYSTEM"
        | "GIT_TEMPLATE_DIR"
        | "INPUTRC"
        | "VIMINIT"
        | "OPENSSL_CONF"
        | "GCONV_PATH"
        | "PIP_CONFIG_FILE"
        | "NPM_CONFIG_USERCONFIG"
        | "ANSIBLE_CONFIG"
        | "ZDOTDIR"
        | "WGETRC"
        | "CURL_HOME"
        | "R_PROFILE"
        | "LUA_INIT" => {
            anybodys(value) || name == "LUA_INIT" || !is_plain(value) || value.contains("sh -c")
        }
        // Where packages come from.
        "PIP_INDEX_URL"
        | "PIP_EXTRA_INDEX_URL"
        | "UV_INDEX_URL"
        | "UV_DEFAULT_INDEX"
        | "NPM_CONFIG_REGISTRY"
        | "npm_config_registry"
        | "YARN_REGISTRY"
        | "BUNDLE_MIRROR__ALL"
        | "GOPROXY" => {
            value.contains("http://")
                && !value.contains("//localhost")
                && !value.contains("//127.0.0.1")
        }
        "RUSTFLAGS" | "CFLAGS" | "CXXFLAGS" | "LDFLAGS" | "GOFLAGS" => {
            value.split(['=', ' ']).any(anybodys)
        }
        _ if name.starts_with("GIT_CONFIG_KEY_") => super::super::git::names_a_program(value),
        _ => name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER") && anybodys(value),
    }
}
