//! What can be said of a command's output that only running would tell.

use super::ScriptWalker;
use crate::effective::ReducedCommand;
use crate::text::{ByteFlow, TaintSet, TextShape, is_hole};

/// Programs that print a name, a number or a date, whatever they are asked.
const NAMES: &[&str] = &[
    "date",
    "uname",
    "whoami",
    "id",
    "hostname",
    "nproc",
    "arch",
    "seq",
    "wc",
    "uuidgen",
    "expr",
    "bc",
    "tput",
    "getconf",
    "logname",
    "tty",
    "groups",
    "basename",
    "jot",
    "lsb_release",
    "nvidia-smi",
    "sw_vers",
    "free",
    "uptime",
    "cksum",
    "pgrep",
    "pidof",
    "jobs",
    "users",
    "who",
];

/// Programs that pass on some of their lines, and nothing else.
const SIEVES: &[&str] = &[
    "head", "tail", "sort", "uniq", "shuf", "tac", "cat", "tee", "pv", "column", "grep", "egrep",
    "fgrep", "rg", "cut", "fzf", "sponge", "gsort", "ghead", "gtail",
];

impl ScriptWalker<'_> {
    pub(super) fn output_shape(&self, command: &ReducedCommand) -> TextShape {
        let name = command.program();
        if NAMES.contains(&name) && !reads_a_file(command) {
            return TextShape::Names;
        }
        match name {
            "git" => self.git_shape(command),
            "find" if prints_what_it_finds(command) => {
                let place = command.operand(0);
                if place.contains(crate::text::HOLE) {
                    return TextShape::Anything;
                }
                TextShape::Below(
                    if place.starts_with(['/', '.']) {
                        place
                    } else {
                        ""
                    }
                    .to_owned(),
                )
            }
            "rustc" | "node" | "python" | "python3" | "go" | "java" | "gcc" | "clang" | "ruby"
            | "php" | "cargo" | "npm" | "bash"
                if command.args().len() == 1
                    && matches!(
                        command.operand_or_flag(),
                        "--version"
                            | "-v"
                            | "-V"
                            | "version"
                            | "-version"
                            | "-dumpmachine"
                            | "-dumpversion"
                    ) =>
            {
                TextShape::Names
            }
            "dpkg" if command.has_arg("--print-architecture") => TextShape::Names,
            "openssl" if command.operand(0) == "rand" => TextShape::Names,
            "lsof" | "fuser" if command.short('t') || name == "fuser" => TextShape::Names,
            "docker" | "podman" | "kubectl" | "systemctl" | "ps" | "lsblk" | "ip" | "ss" => {
                TextShape::Names
            }
            "fd" | "fdfind" => TextShape::Below(first_folder(command, 1)),
            "rg" if command.long("--files") => TextShape::Below(first_folder(command, 0)),
            _ if passes_on(command) => shape_of(&command.input),
            _ => TextShape::Anything,
        }
    }

    fn git_shape(&self, command: &ReducedCommand) -> TextShape {
        match command.operand(0) {
            "rev-parse" if command.has_arg("--show-toplevel") || command.has_arg("--git-dir") => {
                TextShape::Below(self.workdir().to_owned())
            }
            "rev-parse" | "describe" | "rev-list" | "merge-base" | "hash-object" | "stash" => {
                TextShape::Names
            }
            "ls-files" | "ls-tree" | "diff" | "status" | "diff-tree" | "branch" | "tag"
            | "grep" | "log" | "show" | "for-each-ref" | "remote" => {
                TextShape::Below(String::new())
            }
            _ => TextShape::Anything,
        }
    }
}

/// `date -f`, `wc --files0-from`: what they print then comes out of a file.
fn reads_a_file(command: &ReducedCommand) -> bool {
    match command.program() {
        "date" => command.short('f') || command.long("--file"),
        "wc" => command.long("--files0-from"),
        "bc" => command.operands().next().is_some(),
        _ => false,
    }
}

/// `-printf`, `-print` after a test that prints nothing itself.
fn prints_what_it_finds(command: &ReducedCommand) -> bool {
    let args = command.args();
    args.iter().enumerate().all(|(at, arg)| {
        !matches!(arg.s.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")
            || args.get(at + 1).is_some_and(|program| {
                matches!(
                    program.s.as_str(),
                    "grep"
                        | "egrep"
                        | "fgrep"
                        | "test"
                        | "["
                        | "file"
                        | "ls"
                        | "stat"
                        | "basename"
                        | "dirname"
                        | "echo"
                        | "cmp"
                )
            })
    })
}

fn first_folder(command: &ReducedCommand, nth: usize) -> String {
    let folder = command.operand(nth);
    if folder.contains(is_hole) {
        return String::new();
    }
    folder.to_owned()
}

/// Whether each word of the output was a word of the input.
fn passes_on(command: &ReducedCommand) -> bool {
    let mut operands = command.operands();
    match command.program() {
        "awk" | "gawk" | "mawk" => {
            let code = operands.next().map_or("", |text| text.s.as_str());
            let condition = !code.contains(['{', '"', '(']);
            (condition || prints_fields(code)) && operands.next().is_none()
        }
        "sed" | "gsed" => {
            let code = operands.next().map_or("", |text| text.s.as_str());
            picks_lines(code) && operands.next().is_none()
        }
        "tr" => !command.args().iter().any(|arg| arg.s.contains(['/', '.'])),
        "grep" | "egrep" | "fgrep" | "rg" => operands.count() <= 1,
        "xargs" => operands
            .next()
            .is_none_or(|text| matches!(text.s.as_str(), "echo" | "basename" | "ls")),
        "head" | "tail" => operands.all(|text| text.s.bytes().all(|b| b.is_ascii_digit())),
        name => SIEVES.contains(&name) && operands.next().is_none(),
    }
}

/// `{print $2}`, with or without a condition before it.
fn prints_fields(code: &str) -> bool {
    let code = code.trim();
    let Some(open) = code.rfind('{') else {
        return false;
    };
    let body = code[open + 1..].trim_end_matches(['}', ' ', ';']).trim();
    let Some(fields) = body.strip_prefix("print") else {
        return false;
    };
    fields
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '$' | ' ' | ',' | 'N' | 'F' | '(' | ')' | '-'))
}

/// `2p`, `1d`, `$p`.
fn picks_lines(code: &str) -> bool {
    !code.is_empty()
        && code
            .chars()
            .all(|c| c.is_ascii_digit() || "$,pdq;!".contains(c))
}

/// The shape of what comes in, known or not.
fn shape_of(input: &ByteFlow) -> TextShape {
    let Some(text) = &input.known else {
        return input.shape.clone();
    };
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    let relative = |line: &str| !line.starts_with(['/', '~']) && !line.contains("..");
    if text.contains(crate::text::HOLE) || lines.peek().is_none() {
        return TextShape::Anything;
    }
    let lines: Vec<&str> = lines.collect();
    if lines.iter().all(|line| relative(line)) {
        return TextShape::Below(String::new());
    }
    let folder = |line: &str| {
        let end = line.find(['*', '?', '[']).or_else(|| line.find(is_hole));
        let known = &line[..end.unwrap_or(line.len())];
        known
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    let first = folder(lines[0]);
    if lines
        .iter()
        .all(|line| folder(line) == first && line.starts_with('/'))
    {
        return TextShape::Below(if first.is_empty() {
            "/".to_owned()
        } else {
            first
        });
    }
    TextShape::Anything
}

/// What of the input's taints survives: `grep ssh` leaves no list of every process.
pub(super) fn narrowed(command: &ReducedCommand, taint: TaintSet) -> TaintSet {
    let every = TaintSet::EVERY_PROCESS | TaintSet::EVERY_DISK | TaintSet::EVERY_PACKAGE;
    if !taint.has(every) {
        return taint;
    }
    let keeps = match command.program() {
        "awk" | "gawk" | "mawk" => {
            let code = command.operand(0).trim().to_owned();
            code.starts_with('{') || code.starts_with("NR") || code.starts_with("/^ii/")
        }
        "grep" | "egrep" | "fgrep" => {
            let about_numbers = command
                .operand(0)
                .chars()
                .all(|c| "^$[]0-9+*\\d".contains(c));
            command.short('v') || about_numbers
        }
        "tail" => command
            .args()
            .iter()
            .any(|arg| arg.s.starts_with('+') || arg.s.starts_with("-n+")),
        "sed" | "cut" | "tr" | "sort" | "uniq" | "cat" | "tee" | "xargs" | "paste" | "echo" => true,
        _ => false,
    };
    if keeps { taint } else { taint.without(every) }
}

/// Without these nobody gets in and nothing is recorded.
fn vital(name: &str) -> TaintSet {
    const VITAL: &[&str] = &[
        "sshd",
        "systemd",
        "init",
        "dbus-daemon",
        "auditd",
        "rsyslogd",
        "dockerd",
        "containerd",
        "crond",
        "cron",
        "NetworkManager",
        "firewalld",
        "systemd-journald",
        "systemd-logind",
    ];
    if VITAL.contains(&name) {
        TaintSet::VITAL
    } else {
        TaintSet::NONE
    }
}

/// Whether it lists every process or every disk of the machine.
pub(super) fn lists_everything(command: &ReducedCommand) -> TaintSet {
    let args = command.args();
    match command.program() {
        "ps" => {
            let by = |arg: &str| {
                arg.starts_with('-') && !arg.starts_with("--") && arg.contains(['e', 'A'])
                    || !arg.starts_with('-') && arg.contains('a') && arg.len() < 6
            };
            let chosen = args.iter().any(|arg| {
                matches!(
                    arg.s.as_str(),
                    "-p" | "-C" | "-u" | "-U" | "-t" | "--pid" | "--ppid" | "--user"
                )
            });
            if args.iter().any(|arg| by(&arg.s)) && !chosen {
                TaintSet::EVERY_PROCESS
            } else {
                TaintSet::NONE
            }
        }
        "top" | "procs" | "pstree" | "atop" if !command.short('p') && !command.short('u') => {
            TaintSet::EVERY_PROCESS
        }
        "pgrep" if vital(command.operand(0)) != TaintSet::NONE => TaintSet::VITAL,
        "rpm" if command.short('q') && command.short('a') => TaintSet::EVERY_PACKAGE,
        "dpkg" if command.short('l') || command.long("--get-selections") => TaintSet::EVERY_PACKAGE,
        "dpkg-query" | "pkginfo" | "pkg_info" => TaintSet::EVERY_PACKAGE,
        "pacman"
            if command
                .args()
                .iter()
                .all(|arg| matches!(arg.s.as_str(), "-Q" | "-Qq")) =>
        {
            TaintSet::EVERY_PACKAGE
        }
        "apk" if command.operand(0) == "info" => TaintSet::EVERY_PACKAGE,
        "lsof" if command.has_arg("/") && command.short('t') => TaintSet::EVERY_PROCESS,
        "pgrep"
            if command.has_arg("root") && command.short('u') && command.operands().count() <= 1 =>
        {
            TaintSet::EVERY_PROCESS
        }
        "pgrep" => {
            let all = command
                .operands()
                .any(|text| matches!(text.s.as_str(), "." | "" | ".*"));
            if all || command.short('v') {
                TaintSet::EVERY_PROCESS
            } else {
                TaintSet::NONE
            }
        }
        "ls" | "find" => {
            let every = command.operands().any(|text| {
                matches!(text.s.trim_end_matches('/'), "/proc") || text.s.starts_with("/proc/[0-9]")
            });
            if every {
                TaintSet::EVERY_PROCESS
            } else {
                TaintSet::NONE
            }
        }
        "pidof" => vital(command.operand(0)),
        "cat" | "head" => {
            let file = command.operand(0);
            if file.starts_with("/run/") || file.starts_with("/var/run/") {
                TaintSet::VITAL
            } else {
                TaintSet::NONE
            }
        }
        "seq" => {
            let last = command
                .operands()
                .last()
                .and_then(|text| text.s.parse::<u64>().ok());
            if last.is_some_and(|last| last >= 1_000) {
                TaintSet::EVERY_PROCESS
            } else {
                TaintSet::NONE
            }
        }
        "lsblk" | "fdisk" | "blkid" => {
            let one = command.operands().any(|text| text.s.starts_with("/dev/"));
            if one {
                TaintSet::NONE
            } else {
                TaintSet::EVERY_DISK
            }
        }
        _ => TaintSet::NONE,
    }
}
