//! Variables whose value every shell on such a machine knows.

use crate::context::JudgementContext;
use crate::text::ExpandedText;

/// What a variable nobody assigned holds by convention.
pub(super) fn conventional(name: &str, context: &JudgementContext) -> Option<ExpandedText> {
    let value = match name {
        "HOME" => context.home.as_str(),
        "PWD" | "OLDPWD" => context.workspace.as_str(),
        "HERMES_HOME" => context.own_home.as_str(),
        "IFS" => " \t\n",
        "PATH" => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SHELL" | "BASH" => "/bin/bash",
        "0" => "bash",
        "OSTYPE" => "linux-gnu",
        "HOSTTYPE" => "x86_64",
        "TERM" => "xterm-256color",
        "TMPDIR" | "TEMP" | "TMP" => "/tmp",
        "EDITOR" | "VISUAL" | "GIT_EDITOR" => "vi",
        "PAGER" => "less",
        "BROWSER" => "xdg-open",
        "CC" | "HOSTCC" => "cc",
        "CXX" => "c++",
        "LD" => "ld",
        "MAKE" => "make",
        "PYTHON" | "PYTHON3" => "python3",
        "PIP" => "pip",
        "NODE" => "node",
        "NPM" => "npm",
        "CARGO" => "cargo",
        "JAVA" => "java",
        // What a step of a workflow leaves for the next one, and only there.
        "GITHUB_OUTPUT" | "GITHUB_ENV" | "GITHUB_PATH" | "GITHUB_STATE" | "GITHUB_STEP_SUMMARY" => {
            "/tmp/runner/commands"
        }
        "RUNNER_TEMP" => "/tmp/runner",
        "XDG_CONFIG_HOME" => return Some(ExpandedText::known(format!("{}/.config", context.home))),
        "XDG_DATA_HOME" => {
            return Some(ExpandedText::known(format!(
                "{}/.local/share",
                context.home
            )));
        }
        "XDG_CACHE_HOME" => return Some(ExpandedText::known(format!("{}/.cache", context.home))),
        _ => return None,
    };
    Some(ExpandedText::known(value))
}

/// Variables that hold a name or a number and never a path.
pub(super) fn is_name(name: &str) -> bool {
    matches!(
        name,
        "RANDOM"
            | "SRANDOM"
            | "$"
            | "!"
            | "?"
            | "#"
            | "-"
            | "UID"
            | "EUID"
            | "PPID"
            | "SECONDS"
            | "LINENO"
            | "BASHPID"
            | "EPOCHSECONDS"
            | "EPOCHREALTIME"
            | "HOSTNAME"
            | "USER"
            | "LOGNAME"
            | "COLUMNS"
            | "LINES"
            | "SHLVL"
            | "BASH_VERSION"
            | "MACHTYPE"
            | "LANG"
            | "TZ"
    )
}

/// Variables whose usual value the judge relies on.
pub(crate) fn is_relied_on(name: &str) -> bool {
    is_name(name)
        || matches!(name, "HOME" | "PWD" | "OLDPWD" | "TMPDIR" | "TEMP" | "TMP")
        || name.starts_with("XDG_")
        || name.starts_with("GITHUB_")
        || name == "RUNNER_TEMP"
}
