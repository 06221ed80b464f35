//! Programs whose argument is another command.
//!
//! Most differ only in which options take a value and how many words of their own come first, so
//! they are a table. Those with a grammar of their own are in `wrap_remote`.

mod table;

use super::builtins::joined;
use super::listing::FileSearch;
use super::wrap_remote;
use crate::effective::ReducedCommand;
use crate::text::{BELOW, ByteFlow, ExpandedText};
use table::{DETAILS, WRAPPERS};

/// A command found inside another.
pub(super) enum WrappedCommand {
    Words(Vec<ExpandedText>),
    /// Runs in a container that the outer command names.
    Contained(Vec<ExpandedText>),
    /// Shell text.
    Script(ExpandedText),
    /// Shell text on standard input.
    Stdin,
}

/// Wrappers that add nothing of their own: an allowlist looks through them.
pub(super) fn is_transparent(name: &str) -> bool {
    !matches!(
        name,
        "sudo"
            | "doas"
            | "pkexec"
            | "su"
            | "ssh"
            | "docker"
            | "podman"
            | "kubectl"
            | "nsenter"
            | "chroot"
            | "runuser"
            | "gosu"
            | "su-exec"
            | "machinectl"
            | "lxc"
            | "systemd-run"
            | "at"
    )
}

/// The commands a program would start, from its arguments alone.
pub(super) fn inner(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let name = command.program();
    match name {
        "env" => env(command),
        "xargs" => xargs(command),
        "command" if command.short('v') || command.short('V') => Vec::new(),
        "find" | "fd" | "fdfind" => find(command),
        "watch" => script_of_rest(command),
        "entr" => after_flags(command)
            .map_or_else(Vec::new, |rest| vec![WrappedCommand::Words(rest.to_vec())]),
        "hyperfine" => after_flags(command)
            .unwrap_or_default()
            .iter()
            .map(|arg| WrappedCommand::Script(arg.clone()))
            .collect(),
        "chroot" | "taskset" | "timeout" | "systemd-run" => words_of_rest(command),
        "flock" => flock(command),
        "bwrap" => bwrap(command),
        _ => {
            let special = wrap_remote::inner(command);
            if !special.is_empty() {
                return special;
            }
            if WRAPPERS[0].names.contains(&name) || name.starts_with("ld-linux") || name == "ld.so"
            {
                return words_of_rest(command);
            }
            Vec::new()
        }
    }
}

fn words_of_rest(command: &ReducedCommand) -> Vec<WrappedCommand> {
    match after_flags(command) {
        Some(rest) if !rest.is_empty() => vec![WrappedCommand::Words(rest.to_vec())],
        _ => Vec::new(),
    }
}

fn script_of_rest(command: &ReducedCommand) -> Vec<WrappedCommand> {
    match after_flags(command) {
        Some(rest) if !rest.is_empty() => vec![WrappedCommand::Script(joined(rest))],
        _ => Vec::new(),
    }
}

/// Everything after the wrapper's own options and words.
pub(super) fn after_flags(command: &ReducedCommand) -> Option<&[ExpandedText]> {
    let name = command.program();
    let details = DETAILS.iter().find(|wrapper| wrapper.names.contains(&name));
    let (short, long, mut own) = details.map_or(("", &[][..], 0), |d| (d.short, d.long, d.own));
    let args = command.args();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let s = arg.s.as_str();
        if s == "--" {
            at += 1;
            break;
        }
        if s.starts_with("--") {
            at += if long.contains(&s) { 2 } else { 1 };
        } else if s.starts_with('-') && s.len() > 1 {
            // A value that is glued on needs no second word.
            let takes = s[1..].char_indices().find(|(_, c)| short.contains(*c));
            let glued = takes.is_some_and(|(at, c)| at + 1 + c.len_utf8() < s.len());
            at += if takes.is_some() && !glued { 2 } else { 1 };
        } else if is_assignment(s) && matches!(name, "sudo" | "doas") {
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            break;
        }
    }
    while own > 0 && at < args.len() {
        own -= 1;
        at += 1;
    }
    args.get(at..)
}

fn env(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let s = arg.s.as_str();
        let glued = s
            .strip_prefix("--split-string=")
            .or_else(|| s.strip_prefix("-S").filter(|rest| !rest.is_empty()));
        if let Some(text) = glued {
            return split_string(text, &args[at + 1..]);
        }
        match s {
            "-S" | "--split-string" | "-vS" | "-iS" => {
                let text = args.get(at + 1).map_or("", |text| text.s.as_str());
                return split_string(text, args.get(at + 2..).unwrap_or_default());
            }
            "-C" | "--chdir" if args.len() > at + 2 => {
                let mut words: Vec<_> = ["sh", "-c", "cd \"$0\" && \"$@\""]
                    .map(ExpandedText::known)
                    .into();
                words.extend(args[at + 1..].iter().cloned());
                return vec![WrappedCommand::Words(words)];
            }
            "-u" | "--unset" | "-a" | "--argv0" => at += 2,
            "--" => at += 1,
            _ if s.starts_with('-') || is_assignment(s) => at += 1,
            _ => return vec![WrappedCommand::Words(args[at..].to_vec())],
        }
    }
    Vec::new()
}

/// `env -S` splits and unquotes much as a shell does, so the shell reader reads it.
fn split_string(text: &str, rest: &[ExpandedText]) -> Vec<WrappedCommand> {
    let mut script = ExpandedText::known(text.trim_start());
    while let Some((first, after)) = script.s.split_once(char::is_whitespace)
        && (first.starts_with('-') || first == "env")
    {
        script.s = after.trim_start().to_owned();
    }
    if !rest.is_empty() {
        script.s.push(' ');
        script.push(&joined(rest));
    }
    if script.s.trim().is_empty() {
        Vec::new()
    } else {
        vec![WrappedCommand::Script(script)]
    }
}

fn is_assignment(s: &str) -> bool {
    s.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    })
}

fn xargs(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    let mut at = 0;
    let mut replace: Option<String> = None;
    while let Some(arg) = args.get(at) {
        let s = arg.s.as_str();
        if let Some(value) = s.strip_prefix("--replace=") {
            replace = Some(value.to_owned());
        }
        match s {
            "-I" | "-J" => {
                replace = args.get(at + 1).map(|text| text.s.clone());
                at += 2;
            }
            "-i" | "--replace" => {
                replace = Some("{}".to_owned());
                at += 1;
            }
            "-a" | "--arg-file" | "-d" | "--delimiter" | "-E" | "-L" | "-l" | "-n" | "-P"
            | "-s" | "--max-args" | "--max-procs" | "--max-lines" | "--max-chars"
            | "--process-slot-var" => at += 2,
            _ if s.starts_with("-I") => {
                replace = Some(s[2..].to_owned());
                at += 1;
            }
            _ if s.starts_with('-') => at += 1,
            _ => break,
        }
    }
    let words = args.get(at..).unwrap_or_default();
    if words.is_empty() {
        return Vec::new();
    }
    // With `-0`, `-d` or `-I` blanks do not separate.
    let whole_lines = replace.is_some()
        || args[..at].iter().any(|arg| {
            let s = arg.s.as_str();
            s.starts_with("-0")
                || s.starts_with("-d")
                || s == "--null"
                || s.starts_with("--delim")
                || s == "-r0"
        });
    let items: Vec<ExpandedText> = match &command.input.known {
        Some(text) => text
            .split(|c: char| {
                if whole_lines {
                    c == '\n' || c == '\0'
                } else {
                    c.is_whitespace() || c == '\0'
                }
            })
            .filter(|item| !item.is_empty())
            .take(64)
            .map(|item| ExpandedText {
                s: item.trim_matches(['\'', '"']).to_owned(),
                taint: command.input.taint,
                glob: false,
            })
            .collect(),
        None => vec![command.input.clone().into_text()],
    };
    let items: Vec<ExpandedText> = match arg_file(&args[..at]) {
        Some(_) => vec![ExpandedText::unknown(crate::text::TaintSet::FILE)],
        None => items,
    };
    match replace {
        Some(mark) if !mark.is_empty() => items
            .into_iter()
            .map(|item| {
                let words = words.iter().map(|word| {
                    let filled = word.s.contains(&mark);
                    ExpandedText {
                        s: word.s.replace(&mark, &item.s),
                        taint: if filled {
                            word.taint | item.taint
                        } else {
                            word.taint
                        },
                        glob: false,
                    }
                });
                WrappedCommand::Words(words.collect())
            })
            .collect(),
        _ => {
            let mut all = words.to_vec();
            all.extend(items);
            vec![WrappedCommand::Words(all)]
        }
    }
}

/// `xargs -a list`: the items come out of a file.
fn arg_file(own: &[ExpandedText]) -> Option<&ExpandedText> {
    own.iter().find(|arg| {
        arg.s == "-a"
            || arg.s.starts_with("--arg-file")
            || arg.s.starts_with("-a") && arg.s.len() > 2
    })
}

/// The list that xargs is told to take its items out of.
pub(super) fn list_of(command: &ReducedCommand) -> Option<String> {
    if command.program() != "xargs" {
        return None;
    }
    let arg = arg_file(command.args())?;
    match arg
        .s
        .strip_prefix("--arg-file=")
        .or(arg.s.strip_prefix("-a"))
    {
        Some("") | None => command.value_of(&arg.s).map(|file| file.s.clone()),
        Some(file) => Some(file.to_owned()),
    }
}

/// The same xargs with its list on standard input.
pub(super) fn fed_by(mut command: ReducedCommand, list: ByteFlow) -> ReducedCommand {
    let at = command.words.iter().position(|word| {
        word.s == "-a"
            || word.s == "--arg-file"
            || word.s.starts_with("--arg-file=")
            || word.s.starts_with("-a")
    });
    if let Some(at) = at {
        let takes_next = matches!(command.words[at].s.as_str(), "-a" | "--arg-file");
        command.words.remove(at);
        if takes_next && at < command.words.len() {
            command.words.remove(at);
        }
    }
    command.input = list;
    command
}

/// `-exec`, `-execdir`, `-ok` and fd's `-x`: the braces are whatever is found.
fn find(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    // fd is given its pattern first.
    let before = usize::from(command.program() != "find");
    let search = FileSearch::of(args);
    let items: Vec<String> = if before == 1 {
        let place = args
            .iter()
            .take_while(|arg| !matches!(arg.s.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))
            .filter(|arg| !arg.s.starts_with('-') && !is_value_of_fd(args, arg))
            .collect::<Vec<_>>();
        let all = place
            .first()
            .is_none_or(|pattern| matches!(pattern.s.as_str(), "." | "" | ".*" | "^"));
        let folder = place.get(1).map_or(".", |folder| folder.s.as_str());
        let chosen = args.iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "-e" | "--extension" | "-S" | "--changed-before"
            )
        });
        let ending = args
            .windows(2)
            .find(|pair| matches!(pair[0].s.as_str(), "-e" | "--extension"))
            .map(|pair| pair[1].s.trim_start_matches('.'));
        if let Some(ending) = ending.filter(|_| all) {
            vec![format!(
                "{}/{BELOW}/*.{ending}",
                folder.trim_end_matches('/')
            )]
        } else if all && !chosen {
            vec![format!("{}/**", folder.trim_end_matches('/'))]
        } else {
            vec![format!("{}/{BELOW}", folder.trim_end_matches('/'))]
        }
    } else {
        search
            .places
            .iter()
            .take(4)
            .flat_map(|place| search.found_below(place))
            .collect()
    };
    let mut inner = Vec::new();
    let mut at = 0;
    while at < args.len() {
        let starts = matches!(
            args[at].s.as_str(),
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        );
        let asks = matches!(args[at].s.as_str(), "-ok" | "-okdir")
            && args.get(at + 1).is_some_and(|program| program.s == "rm");
        if starts && !asks {
            let end = args[at + 1..]
                .iter()
                .position(|arg| arg.s == ";" || arg.s == "+")
                .map_or(args.len(), |end| at + 1 + end);
            for item in &items {
                let mut words: Vec<ExpandedText> = args[at + 1..end]
                    .iter()
                    .map(|word| ExpandedText {
                        s: word.s.replace("{}", item),
                        ..word.clone()
                    })
                    .collect();
                // fd hands over what it found last, wherever nothing says otherwise.
                if before == 1 && !args[at + 1..end].iter().any(|word| word.s.contains('{')) {
                    words.push(ExpandedText::known(item.clone()));
                }
                if !words.is_empty() {
                    inner.push(WrappedCommand::Words(words));
                }
            }
            at = end;
        }
        at += 1;
    }
    inner
}

/// `fd -t f`, `fd -e rs`, `fd -d 2`: the second word is no pattern.
fn is_value_of_fd(args: &[ExpandedText], word: &ExpandedText) -> bool {
    args.windows(2).any(|pair| {
        std::ptr::eq(&raw const pair[1], word)
            && matches!(
                pair[0].s.as_str(),
                "-t" | "--type"
                    | "-e"
                    | "--extension"
                    | "-d"
                    | "--max-depth"
                    | "-E"
                    | "--exclude"
                    | "-S"
                    | "--size"
                    | "-j"
                    | "--threads"
                    | "-o"
                    | "--owner"
            )
    })
}

/// Every option of bwrap is long, and each takes as many words as it says.
fn bwrap(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with("--")) {
        at += match arg.s.as_str() {
            "--" => return words_from(args, at + 1),
            "--setenv" | "--symlink" | "--chmod" => 3,
            s if s.contains("bind") => 3,
            "--dev" | "--proc" | "--tmpfs" | "--dir" | "--chdir" | "--uid" | "--gid"
            | "--unsetenv" | "--hostname" | "--seccomp" | "--perms" | "--size" | "--remount-ro"
            | "--mqueue" | "--lock-file" | "--cap-add" | "--cap-drop" | "--args" => 2,
            _ => 1,
        };
    }
    words_from(args, at)
}

fn words_from(args: &[ExpandedText], at: usize) -> Vec<WrappedCommand> {
    match args.get(at..) {
        Some(rest) if !rest.is_empty() => vec![WrappedCommand::Words(rest.to_vec())],
        _ => Vec::new(),
    }
}

fn flock(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    if let Some(at) = args
        .iter()
        .position(|arg| arg.s == "-c" || arg.s == "--command")
    {
        return args
            .get(at + 1)
            .map_or_else(Vec::new, |text| vec![WrappedCommand::Script(text.clone())]);
    }
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if matches!(arg.s.as_str(), "-w" | "--timeout" | "-E") {
            2
        } else {
            1
        };
    }
    match args.get(at + 1..) {
        Some(rest) if !rest.is_empty() => vec![WrappedCommand::Words(rest.to_vec())],
        _ => Vec::new(),
    }
}
