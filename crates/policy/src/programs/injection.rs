//! Arguments that make a harmless program run another.

use super::Judge;
use crate::effective::{Effective, base_name};
use crate::finding::{Category, Finding};

/// Program, option, and whether its value is judged by what it names.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "-I",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
            "--rmt-command",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["scp", "sftp"], &["-S"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["sort"], &["--compress-program"]),
    (&["npm", "pnpm", "yarn"], &["--script-shell", "--shell"]),
    (&["strace", "ltrace"], &["-o", "--output"]),
    (
        &["make", "gmake"],
        &["-f", "--file", "--makefile", "SHELL="],
    ),
    (&["rg", "ripgrep"], &["--pre", "--hostname-bin"]),
    (&["ag", "ack"], &["--pager"]),
    (&["man"], &["-P", "--pager"]),
    (
        &["wget"],
        &[
            "--use-askpass",
            "--post-file",
            "--body-file",
            "--execute",
            "-e",
        ],
    ),
    (&["curl"], &["-K", "--config", "--engine"]),
    (&["7z", "7za"], &["-sfx"]),
    (
        &["gcc", "g++", "cc", "clang"],
        &["-wrapper", "-fplugin", "-B"],
    ),
    (&["openssl"], &["-engine", "-provider-path"]),
    (&["ld"], &["-plugin"]),
    (&["emacs"], &["--eval", "-eval", "--funcall"]),
    (&["cpio"], &["--rsh-command"]),
    (&["mysql", "psql"], &["--pager"]),
    (&["split"], &["--filter"]),
    (&["tcpdump"], &["-z"]),
    (&["logrotate"], &["-m", "--mail"]),
    (&["ssh-keygen"], &["-D"]),
    (&["ssh-agent", "ssh-add"], &["-P", "-s"]),
    (&["nmap"], &["--script", "--interactive"]),
    (&["lua", "luajit"], &["-l"]),
    (&["gdb"], &["-x", "--command"]),
    (&["dpkg"], &["--pre-invoke", "--post-invoke"]),
    (&["apt", "apt-get"], &["-o"]),
    (&["ansible-playbook"], &["--connection"]),
    (&["hexdump"], &["-F"]),
    (&["less", "more"], &["--lesskey-src", "-k"]),
    (&["pip", "pip3"], &["--global-option", "--install-option"]),
    (&["cargo", "rustc"], &["-Clinker", "--config"]),
];

/// Values that everybody uses.
const USUAL: &[&str] = &[
    "ssh", "zstd", "pigz", "pbzip2", "gzip", "bzip2", "xz", "lz4", "less", "more", "cat", "pixz",
    "lbzip2", "unzip", "plzip", "zstdmt", "bat", "lzop", "brotli", "rsync", "sudo", "vim", "nvim",
];

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let program = command.program();
    let mut findings = Vec::new();
    for (programs, options) in OPTIONS {
        if !programs.contains(&program) {
            continue;
        }
        for option in *options {
            for value in values(command, option) {
                if let Some(finding) = judged(program, option, &value) {
                    findings.push(finding);
                }
            }
        }
    }
    findings.extend(editors(command));
    findings.extend(scripts(command, judge));
    findings.extend(environment(command));
    findings
}

fn values(command: &Effective, option: &str) -> Vec<String> {
    if option.starts_with("--") || option.len() == 2 {
        return command.values_of(option);
    }
    let args = command.args();
    args.iter()
        .enumerate()
        .filter(|(_, arg)| arg.s == option || arg.s.starts_with(&format!("{option}=")))
        .map(|(at, arg)| match arg.s.split_once('=') {
            Some((_, value)) => value.to_owned(),
            None => args
                .get(at + 1)
                .map(|next| next.s.clone())
                .unwrap_or_default(),
        })
        .collect()
}

fn judged(program: &str, option: &str, value: &str) -> Option<Finding> {
    let first = base_name(value.split_whitespace().next().unwrap_or_default());
    let plain = !value.contains([';', '|', '&', '`', '$', '>']);
    let usual = USUAL.contains(&first) && plain;
    let harmless = match (program, option) {
        ("tar" | "gtar" | "bsdtar", "--checkpoint-action") => !value.starts_with("exec"),
        ("tar" | "gtar" | "bsdtar", "-F") => true,
        ("tar" | "gtar" | "bsdtar", _) => usual,
        ("rsync", "-e" | "--rsh") => {
            first == "ssh" && plain && !value.to_lowercase().contains("proxycommand")
                || value.is_empty()
        }
        ("rsync", "--rsync-path") => plain && (first == "rsync" || first == "sudo"),
        ("wget", "-e" | "--execute") => {
            !value.contains("use_askpass") && !value.contains("output_document")
        }
        ("wget", "--post-file" | "--body-file") => true,
        ("curl", "-K" | "--config") => {
            value.starts_with("./") || !value.contains('/') && value != "-"
        }
        ("curl", "--engine") | ("openssl", "-engine") => !value.contains('/'),
        ("apt" | "apt-get", "-o") => {
            !value.to_lowercase().contains("invoke") && !value.to_lowercase().contains("::pager")
        }
        ("gcc" | "g++" | "cc" | "clang", "-B") => true,
        ("strace" | "ltrace", _) => !value.starts_with(['|', '!']),
        ("make" | "gmake", "SHELL=") => matches!(first, "bash" | "sh" | "zsh") && plain,
        ("make" | "gmake", _) => {
            !matches!(value, "-" | "/dev/stdin")
                && !value.starts_with("/tmp")
                && !value.starts_with("/dev/fd")
        }
        ("npm" | "pnpm" | "yarn", _) => matches!(first, "bash" | "sh" | "zsh" | "true"),
        ("split", "--filter") => {
            plain && USUAL.contains(&first) || value.starts_with("gzip") || value.starts_with("xz")
        }
        ("tcpdump", "-z") => matches!(first, "gzip" | "bzip2" | "xz"),
        ("nmap", "--script") => !value.contains('/'),
        ("gdb", _) => !value.starts_with("/tmp") && !value.starts_with("/dev"),
        ("less" | "more", _) => true,
        ("ssh-agent" | "ssh-add", _) => value.starts_with("/usr/lib"),
        ("ansible-playbook", _) | ("hexdump", _) | ("logrotate", _) => true,
        ("lua" | "luajit", _) => !value.contains('/'),
        ("cargo" | "rustc", "--config") => {
            !value.contains("runner") && !value.contains("linker") && !value.contains("wrapper")
        }
        ("pip" | "pip3", _) => !value.contains("exec"),
        ("emacs", _) => {
            !value.contains("shell-command")
                && !value.contains("call-process")
                && !value.contains("delete-")
        }
        ("rg", "--pre") => matches!(first, "pdftotext" | "zcat"),
        _ => usual,
    };
    (!harmless).then(|| {
        Finding::dangerous(
            Category::Injection,
            format!("makes {program} run another program ({option})"),
        )
    })
}

/// Editors and pagers can run commands from their command line.
fn editors(command: &Effective) -> Vec<Finding> {
    let program = command.program();
    let mut findings = Vec::new();
    let runs = |text: &str| {
        let text = text.trim().trim_start_matches(':').trim_start();
        text.starts_with('!')
            || text.starts_with("silent !")
            || text.contains("system(")
            || text.starts_with("r!")
            || text.starts_with("r !")
            || text.starts_with("w !")
            || text.contains("os.system")
            || text.contains("os.execute")
            || text.starts_with("term")
            || text.starts_with("%!")
            || text.starts_with("py3 ")
            || text.starts_with("python3 ")
            || text.starts_with("lua os")
    };
    match program {
        "vi" | "vim" | "nvim" | "ex" | "view" | "gvim" | "vimdiff" | "rvim" => {
            for (at, arg) in command.args().iter().enumerate() {
                let code = if matches!(arg.s.as_str(), "-c" | "--cmd") {
                    command.args().get(at + 1).map(|next| next.s.as_str())
                } else {
                    arg.s.strip_prefix('+').or_else(|| arg.s.strip_prefix("-c"))
                };
                if code.is_some_and(runs) {
                    findings.push(Finding::dangerous(
                        Category::Injection,
                        format!("makes {program} run a command"),
                    ));
                }
            }
            let typed = command.input.known.as_deref().unwrap_or_default();
            if typed
                .lines()
                .any(|line| line.trim_start_matches(':').starts_with('!'))
            {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    format!("makes {program} run a command"),
                ));
            }
        }
        "less" | "more" | "most"
            if command
                .args()
                .iter()
                .any(|arg| arg.s.starts_with("+!") || arg.s.starts_with("+|")) =>
        {
            findings.push(Finding::dangerous(
                Category::Injection,
                format!("makes {program} run a command"),
            ));
        }
        "ed" | "red" => {
            let typed = command.input.known.as_deref().unwrap_or_default();
            if typed.lines().any(|line| {
                line.starts_with('!')
                    || line.starts_with("r !")
                    || line.starts_with("w !")
                    || line.starts_with("e !")
            }) {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    "makes ed run a command",
                ));
            }
        }
        "sed" | "gsed" if sed_runs(command) => {
            findings.push(Finding::dangerous(
                Category::Injection,
                "makes sed run a command",
            ));
        }
        "ftp" | "sftp" | "telnet" | "bc" | "dc" | "gnuplot" | "sqlite3" | "mail" | "mailx" => {
            let typed = command.input.known.as_deref().unwrap_or_default();
            if typed.lines().any(|line| {
                line.trim_start().starts_with('!')
                    || line.trim_start().starts_with("~!")
                    || line.starts_with(".shell")
                    || line.starts_with(".system")
            }) || (program == "gnuplot"
                && (typed.contains("system")
                    || command.args().iter().any(|arg| arg.s.contains("system"))))
            {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    format!("makes {program} run a command"),
                ));
            }
        }
        "pdflatex" | "latex" | "xelatex" | "lualatex"
            if command
                .args()
                .iter()
                .any(|arg| arg.s.contains("shell-escape") || arg.s.contains("write18")) =>
        {
            findings.push(Finding::dangerous(
                Category::Injection,
                format!("lets a document run commands ({program})"),
            ));
        }
        "gimp" | "inkscape" | "blender"
            if command
                .args()
                .iter()
                .any(|arg| arg.s.contains("os.system") || arg.s.contains("subprocess")) =>
        {
            findings.push(Finding::dangerous(
                Category::Injection,
                format!("makes {program} run a command"),
            ));
        }
        "convert" | "magick"
            if command.args().iter().any(|arg| {
                arg.s.contains("|") && arg.s.contains("url(")
                    || arg.s.starts_with("msl:")
                    || arg.s.contains("ephemeral:")
            }) =>
        {
            findings.push(Finding::dangerous(
                Category::Injection,
                format!("makes {program} run a command"),
            ));
        }
        _ => {}
    }
    findings
}

/// The `e` command, the `e` flag of `s///` and `w` onto something that matters.
fn sed_runs(command: &Effective) -> bool {
    let mut scripts: Vec<String> = command.values_of("-e");
    if scripts.is_empty() {
        scripts.push(command.operand(0).to_owned());
    }
    scripts.iter().any(|script| {
        script.split([';', '\n']).any(|step| {
            let step = past_pattern(step.trim());
            let address = step.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, '$' | ',' | '!' | ' ')
            });
            let command_e = address.starts_with("e ") || address == "e";
            let flags = address
                .strip_prefix('s')
                .and_then(|rest| {
                    let mark = rest
                        .chars()
                        .next()
                        .filter(|mark| mark.is_ascii_punctuation() && *mark != '\\')?;
                    let fields: Vec<&str> = rest[1..].split(mark).collect();
                    (fields.len() == 3).then(|| fields[2].trim().to_owned())
                })
                .unwrap_or_default();
            let flag_e = flags.contains('e') && flags.chars().all(|c| c.is_ascii_alphanumeric());
            let writes = flags.contains("w /etc")
                || flags.contains("w /root")
                || flags.contains("w /var")
                || address.starts_with("w /etc")
                || address.starts_with("w /root")
                || flags.contains("/.ssh/")
                || flags.contains("/.bashrc");
            command_e || flag_e || writes
        })
    })
}

/// What follows `/pattern/` at the start of a step.
fn past_pattern(step: &str) -> &str {
    let Some(rest) = step.strip_prefix('/') else {
        return step;
    };
    let mut escaped = false;
    let end = rest.find(|c: char| {
        let closes = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    end.map_or(step, |end| rest[end + 1..].trim_start())
}

fn scripts(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match command.program() {
        "gdb" | "lldb" => {
            let runs = command.args().iter().any(|arg| {
                let text = arg.s.trim_start();
                text.starts_with('!')
                    || text.starts_with("shell ")
                    || text.starts_with("platform shell")
                    || text.contains("system(")
            });
            if runs {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    "makes a debugger run a command",
                ));
            }
        }
        // Libraries loaded by path run on load.
        "enable" if command.short('f') => findings.push(Finding::dangerous(
            Category::Injection,
            "loads code into the shell",
        )),
        "bind" if command.short('x') => findings.push(Finding::dangerous(
            Category::Injection,
            "binds a command to a key",
        )),
        "ssh" | "scp" | "sftp" => {
            let options: Vec<String> = command
                .values_of("-o")
                .iter()
                .map(|o| o.to_lowercase())
                .collect();
            if options.iter().any(|o| {
                o.starts_with("proxycommand")
                    && !o.contains("ssh -w")
                    && !o.contains("nc -x")
                    && !o.ends_with("none")
                    && !o.contains("cloudflared")
                    && !o.contains("aws ssm")
                    || o.starts_with("localcommand")
                    || o.starts_with("knownhostscommand")
                    || o.starts_with("pkcs11provider")
            }) {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    "makes ssh run another program",
                ));
            }
            if command
                .value_of("-F")
                .is_some_and(|file| file.s.starts_with("/tmp") || file.s.starts_with("/dev/shm"))
            {
                findings.push(Finding::dangerous(
                    Category::Injection,
                    "gives ssh settings from a temporary place",
                ));
            }
        }
        "cmake"
            if command.args().iter().any(|arg| arg.s == "-E")
                && command
                    .args()
                    .iter()
                    .any(|arg| matches!(arg.s.as_str(), "rm" | "remove_directory")) =>
        {
            for target in command.operands().skip(1) {
                let place = crate::paths::place(&target.s, &judge.cwd, judge.context);
                if matches!(
                    place,
                    crate::paths::Place::Root
                        | crate::paths::Place::System
                        | crate::paths::Place::Home
                ) {
                    findings.push(Finding::floor(
                        Category::Destruction,
                        format!("deletes {}", target.shown()),
                    ));
                }
            }
        }
        "java"
            if command
                .args()
                .iter()
                .any(|arg| arg.s.starts_with("-javaagent") && arg.s.contains("/tmp")) =>
        {
            findings.push(Finding::dangerous(
                Category::Injection,
                "loads an agent into Java",
            ));
        }
        _ => {}
    }
    findings
}

/// Variables that name a program to run.
fn environment(command: &Effective) -> Vec<Finding> {
    const NAMES: &[&str] = &[
        "PAGER",
        "GIT_PAGER",
        "MANPAGER",
        "EDITOR",
        "VISUAL",
        "GIT_EDITOR",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "MAKEFLAGS",
        "PS4",
        "PS1",
        "FCEDIT",
        "SHELLOPTS",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_GLOBAL",
        "RUSTC_WRAPPER",
        "PATH",
        "PYTHONPATH",
        "HGEDITOR",
        "SVN_EDITOR",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "MAVEN_OPTS",
        "GRADLE_OPTS",
    ];
    let mut pairs: Vec<(String, String)> = command
        .assigns
        .iter()
        .map(|(name, value)| (name.clone(), value.s.clone()))
        .collect();
    if matches!(command.program(), "env" | "export" | "sudo") {
        pairs.extend(
            command
                .args()
                .iter()
                .filter_map(|arg| arg.s.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
    }
    pairs
        .into_iter()
        .filter(|(name, value)| {
            let first = base_name(value.split_whitespace().next().unwrap_or_default());
            name.starts_with("BASH_FUNC_")
                || NAMES.contains(&name.as_str())
                    && match name.as_str() {
                        "TAR_OPTIONS" => value.contains("exec") || value.contains("command"),
                        "RSYNC_RSH" => first != "ssh",
                        "MAKEFLAGS" => value.contains("eval") || value.contains("SHELL"),
                        "PS1" | "PS4" => value.contains("$(") || value.contains('`'),
                        "LESSOPEN" | "LESSCLOSE" => {
                            !value.contains("lesspipe") && !value.is_empty()
                        }
                        "GIT_EXEC_PATH" | "GIT_CONFIG_GLOBAL" => {
                            value.starts_with("/tmp") || value.starts_with("/dev/shm")
                        }
                        // A folder that anybody may write to, before those of the system.
                        "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "MAVEN_OPTS" | "GRADLE_OPTS" => {
                            value.contains("-javaagent") || value.contains("-agent")
                        }
                        "PATH" | "PYTHONPATH" => {
                            ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|place| {
                                value
                                    .strip_prefix(place)
                                    .is_some_and(|rest| rest.starts_with(['/', ':']))
                            })
                        }
                        "RUSTC_WRAPPER" => !matches!(first, "sccache" | "ccache" | ""),
                        "GIT_ASKPASS" | "SSH_ASKPASS" | "SUDO_ASKPASS" => {
                            !matches!(first, "true" | "echo" | "" | "false" | "cat")
                                && !value.starts_with("/usr/")
                        }
                        _ => {
                            let usual = matches!(
                                first,
                                "less"
                                    | "cat"
                                    | "more"
                                    | "vim"
                                    | "vi"
                                    | "nano"
                                    | "nvim"
                                    | "emacs"
                                    | "code"
                                    | "true"
                                    | "delta"
                                    | "bat"
                                    | ""
                                    | "most"
                                    | "ed"
                                    | "firefox"
                                    | "xdg-open"
                                    | "echo"
                                    | "col"
                                    | "hx"
                                    | "micro"
                                    | "head"
                                    | ":"
                                    | "none"
                            );
                            !usual || value.contains([';', '|', '&', '`']) && first != "col"
                        }
                    }
        })
        .map(|(name, _)| {
            Finding::dangerous(
                Category::Injection,
                format!("makes another program run something ({name})"),
            )
        })
        .collect()
}
