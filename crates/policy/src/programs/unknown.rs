//! Files that only running would tell.
//!
//! A path out of a file, a variable that the text does not set, what a substitution prints: if it
//! decides which file is shown, sent, overwritten, deleted or run, it may be a key as well as a note.
//! Values that are bounded (a date, the names that a listing of the project gives) are no such holes;
//! `crate::text` keeps them apart.

mod given;
mod harmless;

use super::{ProgramJudge, protected, uploads};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::{BELOW, ExpandedText, TaintSet};
use given::{given_to_code, mounted, takes_operands, valued};
use harmless::{harmless_to_read, harmless_to_write};

/// Programs that print what is in the files they are given.
const PRINTERS: &[&str] = &[
    "cat",
    "tac",
    "head",
    "tail",
    "less",
    "more",
    "most",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "hd",
    "strings",
    "base64",
    "base32",
    "basenc",
    "sort",
    "uniq",
    "cut",
    "paste",
    "fold",
    "fmt",
    "pr",
    "column",
    "rev",
    "expand",
    "unexpand",
    "bat",
    "batcat",
    "comm",
    "join",
    "diff",
    "sdiff",
    "zcat",
    "bzcat",
    "xzcat",
    "zstdcat",
    "zless",
    "iconv",
    "look",
    "ul",
    "view",
    "csplit",
    "xmllint",
    "pygmentize",
    "highlight",
    "glow",
    "vis",
    "cmp",
    "dd",
    "tee_from",
    "shuf",
];

/// Programs whose first operand is a pattern, a script or a filter.
const FILTERS: &[&str] = &[
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "awk", "gawk", "mawk", "sed", "gsed",
    "jq", "yq", "xq", "tomlq",
];

/// Programs that run the file they are given.
const RUNNERS: &[&str] = &[
    "source",
    ".",
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "Rscript",
    "tclsh",
    "osascript",
    "expect",
    "insmod",
    "ld.so",
];

/// Programs that take what they read without showing it.
const QUIET: &[&str] = &[
    "wc",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "test",
    "[",
    "patch",
    "tar",
    "psql",
    "mysql",
    "sqlite3",
    "docker",
    "podman",
    "gzip",
    "kubectl",
    "true",
    ":",
    "xargs",
    "parallel",
    "git",
    "mongorestore",
    "pg_restore",
    "wait",
    "exec_closed",
];

/// Programs that are given files to show, to search, to count or to run.
pub(super) fn reads_only(program: &str) -> bool {
    [PRINTERS, FILTERS, RUNNERS, QUIET]
        .iter()
        .any(|programs| programs.contains(&program))
}

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    let mut add = |what: &str, text: &str| {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Unknown,
            format!(
                "{what} a file that cannot be known beforehand: {}",
                crate::text::shown(text)
            ),
        ));
    };
    let program = command.program();
    let read = |text: &ExpandedText| is_open(text, judge, harmless_to_read);
    let written = |text: &ExpandedText| is_open(text, judge, harmless_to_write);
    for file in command.writes.iter().filter(|file| written(file)) {
        add("writes", &file.s);
    }
    for file in command
        .writes
        .iter()
        .filter(|file| below_the_machine(file, judge))
    {
        add("writes", &file.s);
    }
    // The wrapped command stands for itself.
    if command.transparent {
        return findings;
    }
    let counts = FILTERS.contains(&program) && (command.short('q') || command.short('c'));
    if !QUIET.contains(&program) && !counts && !command.unseen {
        for file in command.reads.iter().filter(|file| read(file)) {
            add("reads", &file.s);
        }
    }
    // An empty file, or a new date on an old one.
    if program != "touch" {
        for file in protected::targets(command)
            .iter()
            .filter(|file| written(file))
        {
            add("writes", &file.s);
        }
    }
    if !command.unseen {
        for file in shown(command).into_iter().filter(|file| read(file)) {
            add("reads", &file.s);
        }
    }
    for file in uploads::sent(command) {
        if read(&ExpandedText::known(file.clone())) {
            add("sends away", &file);
        }
    }
    for file in deleted(command).into_iter().filter(|file| written(file)) {
        add("deletes", &file.s);
    }
    if let Some(file) = started(command).filter(|file| is_open(file, judge, |_| false)) {
        add("runs", &file.s);
    }
    findings.extend(relied_on(command, judge));
    findings
}

/// Whether it is one of the files that a search of the machine or a whole home finds.
fn below_the_machine(text: &ExpandedText, judge: &ProgramJudge<'_>) -> bool {
    text.s.split_once(BELOW).is_some_and(|(folder, _)| {
        folder.starts_with('/')
            && matches!(
                paths::place(folder, &judge.cwd, judge.context),
                PathLoss::Root | PathLoss::System | PathLoss::InsideSystem | PathLoss::Home
            )
    })
}

fn is_open(text: &ExpandedText, judge: &ProgramJudge<'_>, harmless: fn(&str) -> bool) -> bool {
    if text.s.starts_with("/dev/fd/") {
        return false;
    }
    let path = text
        .s
        .split_once('=')
        .map_or(text.s.as_str(), |(name, value)| {
            if name.chars().all(|c| c.is_ascii_lowercase()) {
                value
            } else {
                &text.s
            }
        });
    text.taint.has(TaintSet::OPEN) && !harmless(crate::effective::base_name(path))
        || paths::may_be_anything(path, &judge.cwd, harmless)
}

/// Operands whose content ends up on the screen or in a copy.
fn shown(command: &ReducedCommand) -> Vec<&ExpandedText> {
    let program = command.program();
    let operands: Vec<&ExpandedText> = command.operands().collect();
    let operands: Vec<&ExpandedText> = operands
        .into_iter()
        .filter(|text| !is_option_value(command, text))
        .collect();
    if PRINTERS.contains(&program) {
        return operands;
    }
    if FILTERS.contains(&program) {
        let given = command.short('e') && program != "jq"
            || command.short('f') && matches!(program, "awk" | "gawk" | "sed" | "grep" | "jq");
        let quiet = command.short('q')
            || command.short('c')
            || command.short('l')
            || protected::in_place(command);
        return if quiet {
            Vec::new()
        } else {
            operands.into_iter().skip(usize::from(!given)).collect()
        };
    }
    match program {
        "cp" | "mv" | "ln" | "install" | "scp" | "rsync" => {
            let end = operands.len().saturating_sub(1);
            operands[..end].to_vec()
        }
        "tar" | "gtar" | "bsdtar" if to_stdout(command) => operands,
        "openssl" => command.value_of("-in").into_iter().collect(),
        "zip" | "7z" => operands.into_iter().skip(1).collect(),
        "split" => operands.into_iter().take(1).collect(),
        // Lists and settings that come back in requests and complaints.
        "wget" => valued(command, &["-i", "--input-file"]),
        "curl" => valued(command, &["-K", "--config"]),
        "docker" | "podman" | "nerdctl" => mounted(command),
        _ if takes_operands(program) => given_to_code(command),
        _ => Vec::new(),
    }
}

/// `grep -m 1`, `awk -F: -v x=y`, `jq --arg n v`.
fn is_option_value(command: &ReducedCommand, text: &ExpandedText) -> bool {
    let valued: &[&str] = match command.program() {
        "head" | "tail" | "strings" => &["-n", "-c", "--lines", "--bytes"],
        "cut" => &["-c", "-f", "-d", "-b", "--fields", "--delimiter"],
        "sort" => &["-k", "-t", "-S", "-T", "--key", "-o"],
        "fold" | "fmt" => &["-w"],
        "od" | "xxd" | "hexdump" | "hd" => &["-N", "-t", "-j", "-A", "-l", "-s", "-c", "-n", "-e"],
        "column" | "paste" | "uniq" | "nl" => &["-s", "-c", "-d", "-f", "-w", "-v"],
        "join" => &["-t", "-1", "-2", "-o", "-a"],
        "diff" => &["-I", "-U", "--label", "-x"],
        "shuf" => &["-n", "-i", "-o"],
        "iconv" => &["-f", "-t", "-o"],
        "base64" => &["-w"],
        "awk" | "gawk" | "mawk" => &["-F", "-v"],
        "sed" | "gsed" => &["-e", "-f", "--expression"],
        "jq" | "yq" => &["--arg", "--argjson", "--indent"],
        "rsync" | "scp" => &[
            "-e",
            "-i",
            "-F",
            "-o",
            "-P",
            "--exclude",
            "--include",
            "--rsh",
        ],
        "install" => &["-m", "-o", "-g"],
        _ => &[
            "-m",
            "-A",
            "-B",
            "-C",
            "-e",
            "--include",
            "--exclude",
            "--max-count",
            "--color",
        ],
    };
    let args = command.args();
    args.iter().enumerate().any(|(at, arg)| {
        std::ptr::eq(arg, text) && {
            let before = |back: usize| {
                at.checked_sub(back)
                    .and_then(|at| args.get(at))
                    .map_or("", |arg| arg.s.as_str())
            };
            valued.contains(&before(1)) || matches!(before(2), "--arg" | "--argjson")
        }
    })
}

fn to_stdout(command: &ReducedCommand) -> bool {
    let makes = command.short('c') || command.operand_or_flag().starts_with('c');
    let named = command.args().iter().any(|arg| {
        let s = arg.s.as_str();
        s == "-f"
            || s.starts_with("--file")
            || (!s.starts_with("--") && s.len() < 8 && s.ends_with('f'))
    });
    makes && (!named || command.has_arg("-") || command.has_arg("/dev/stdout"))
}

fn deleted(command: &ReducedCommand) -> Vec<&ExpandedText> {
    match command.program() {
        "rm" | "unlink" | "shred" | "srm" | "wipe" => command.operands().collect(),
        "truncate" => command
            .operands()
            .filter(|text| {
                !command
                    .value_of("-s")
                    .is_some_and(|size| std::ptr::eq(size, *text))
            })
            .collect(),
        "find" if command.has_arg("-delete") => command
            .args()
            .iter()
            .take_while(|arg| !arg.s.starts_with(['-', '(', '!']))
            .collect(),
        _ => Vec::new(),
    }
}

fn started(command: &ReducedCommand) -> Option<&ExpandedText> {
    if matches!(command.program(), "make" | "gmake") {
        return command.value_of("-f").or(command.value_of("--file"));
    }
    if !RUNNERS.contains(&command.program()) {
        return None;
    }
    if matches!(command.program(), "source" | ".") {
        return command.args().first();
    }
    let first = command.args().first()?;
    (!first.s.starts_with('-')).then_some(first)
}

/// A variable whose usual value everybody counts on, and this judge too.
fn relied_on(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let stays = command.words.is_empty()
        || matches!(
            command.program(),
            "export" | "declare" | "typeset" | "readonly"
        );
    if !stays {
        return Vec::new();
    }
    let given = command
        .assigns
        .iter()
        .map(|(name, value)| (name.as_str(), value.s.as_str()));
    let worded = command
        .args()
        .iter()
        .filter_map(|arg| arg.s.split_once('='));
    given
        .chain(worded)
        .filter(|(name, value)| {
            crate::reduce::is_relied_on(name)
                && (value.contains(crate::text::HOLE)
                    || paths::secret(value, &judge.cwd, judge.context).is_some()
                    || value.starts_with('/')
                        && paths::protected(&format!("{value}/x"), &judge.cwd, judge.context)
                            .is_some()
                    || value.contains("..") && value.contains('/'))
        })
        .map(|(name, _)| {
            HarmFinding::dangerous(
                HarmCategory::Unknown,
                format!("changes a variable that others rely on: {name}"),
            )
        })
        .collect()
}
