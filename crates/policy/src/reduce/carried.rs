//! Commands that a tool carries which nobody knows as a wrapper.
//!
//! Wrappers are a table, and there is always one more: another way into a container, another fleet of
//! machines, another language. So whatever the words of a tool hold that reads as a command of the
//! floor is judged as if it ran. Only the worst is taken over: what else such a text would be asked
//! about may be no command at all.

use super::ScriptWalker;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding, HarmSeverity};
use crate::programs;
use crate::text::{ByteFlow, ExpandedText, TaintSet};

/// How many pieces of one command are looked at.
const MOST: usize = 6;
const LONGEST: usize = 2_000;

/// Programs by which the worst is done, if their own words say so.
const WORST: &[&str] = &[
    "rm",
    "dd",
    "mkfs",
    "shred",
    "wipefs",
    "blkdiscard",
    "sgdisk",
    "find",
    "chmod",
    "chown",
    "mv",
    "kill",
    "killall",
    "pkill",
    "sudo",
    "sh",
    "bash",
    "chroot",
    "nsenter",
    "systemctl",
    "truncate",
    "rsync",
    "parted",
];

/// Programs that stop the machine by their name alone.
const POWER: &[&str] = &["shutdown", "reboot", "poweroff", "halt", "init", "telinit"];

/// Words before a command, whoever says them.
const RUNS: &[&str] = &[
    "--",
    "exec",
    "run",
    "-c",
    "-e",
    "-x",
    "-a",
    "--exec",
    "--command",
    "--cmd",
    "--run",
    "shell",
    "ssh",
    "cmd",
    "-g",
    "--execute",
    "--eval",
    "host",
    "unshare",
    "chroot",
    "enter",
    "-ex",
    "-o",
];

/// What `s/…/command/e` puts in and runs.
fn replaced_and_run(script: &str) -> Option<String> {
    let rest = script.strip_prefix('s')?;
    let mark = rest.chars().next().filter(char::is_ascii_punctuation)?;
    let hidden = rest[mark.len_utf8()..].replace(&format!("\\{mark}"), "\u{0}");
    let mut fields = hidden.split(mark);
    let (_, put_in, flags) = (fields.next()?, fields.next()?, fields.next()?);
    flags
        .contains('e')
        .then(|| put_in.replace('\u{0}', &mark.to_string()))
}

impl ScriptWalker<'_> {
    pub(super) fn carried(&mut self, command: &ReducedCommand) {
        // The outer tool's words were tried from every place, so those of an inner one were, too.
        if self.via.iter().any(|via| via == "a tool") {
            return;
        }
        // What runs in a container of its own can only lose itself.
        let contained = matches!(
            command.program(),
            "docker"
                | "podman"
                | "nerdctl"
                | "docker-compose"
                | "podman-compose"
                | "buildah"
                | "kubectl"
                | "oc"
        ) && !command.has_arg("debug")
            && !command.has_arg("unshare");
        self.sent_files(command);
        let texts = contained || programs::takes_texts(command.program());
        let mut left = MOST;
        if !texts {
            self.carried_words(command, &mut left);
        }
        let values = command.assigns.iter().filter(|(name, _)| is_started(name));
        let mut pieces: Vec<String> = values
            .filter_map(|(_, value)| piece_of(&value.s, true))
            .collect();
        if !texts {
            let args = command.args();
            for (at, arg) in args.iter().enumerate() {
                let told = at > 0 && RUNS.contains(&args[at - 1].s.as_str());
                pieces.extend(piece_of(&arg.s, told));
            }
            if let Some(typed) = command.input.known.as_deref() {
                pieces.extend(piece_of(typed, false));
            }
        } else if command.program() == "git" {
            let settings = command
                .args()
                .iter()
                .filter_map(|arg| arg.s.split_once('='));
            pieces.extend(
                settings
                    .filter(|(name, _)| is_a_command_of_git(name))
                    .filter_map(|(_, value)| piece_of(value, true)),
            );
        }
        if matches!(command.program(), "sed" | "gsed") {
            let orders = command.args().iter().filter_map(|arg| {
                let order = arg
                    .s
                    .trim_start_matches(|c: char| c.is_ascii_digit() || c == '$');
                order.strip_prefix("e ")
            });
            pieces.extend(orders.filter_map(|text| piece_of(text, true)));
            let put_in = command
                .args()
                .iter()
                .filter_map(|arg| replaced_and_run(&arg.s));
            pieces.extend(put_in);
        }
        if !texts {
            self.carried_code(command);
            self.handed_over(command);
            self.given_files(command);
        }
        for piece in pieces.into_iter().take(left) {
            self.worst_of(|walker| {
                walker.run_text(&piece, "a tool", &ByteFlow::default());
            });
        }
    }

    /// `tool options rm -rf /etc`, wherever the command begins.
    fn carried_words(&mut self, command: &ReducedCommand, left: &mut usize) {
        let args = command.args();
        for (at, arg) in args.iter().enumerate().take(24) {
            let name = base_name(&arg.s);
            let told = at > 0 && RUNS.contains(&args[at - 1].s.as_str());
            let power = POWER.contains(&name) && (told || arg.s.starts_with("/sbin/"));
            let worst = is_worst(name) && at + 1 < args.len();
            if !power && !worst || *left == 0 {
                continue;
            }
            *left -= 1;
            let words: Vec<ExpandedText> = args[at..].to_vec();
            let cwd = self.cwd.clone();
            self.worst_of(|walker| {
                walker.below("a tool", |walker| {
                    walker.run(ReducedCommand {
                        words,
                        via: walker.via.clone(),
                        cwd,
                        ..ReducedCommand::default()
                    });
                });
            });
        }
    }

    /// `tool -e '(delete-directory "/etc")'`, in a language that nobody reads here.
    fn carried_code(&mut self, command: &ReducedCommand) {
        const GIVES: &[&str] = &[
            "-e",
            "-E",
            "-c",
            "-x",
            "-g",
            "--eval",
            "--expr",
            "--execute",
            "-a",
            "--code",
        ];
        let args = command.args();
        let given = args
            .windows(2)
            .filter(|pair| GIVES.contains(&pair[0].s.as_str()));
        let codes: Vec<String> = given
            .map(|pair| pair[1].s.as_str())
            .filter(|code| {
                code.contains('/') && code.contains(['"', '\'', '=']) && code.len() < LONGEST
            })
            .take(2)
            .map(str::to_owned)
            .collect();
        for code in codes {
            self.spend_text(code.len());
            let tokens = super::literals::tokens(&code);
            self.worst_of(|walker| walker.whole_code(&code, &tokens, "a tool's language"));
        }
    }

    /// `env > /tmp/e; curl -T /tmp/e …`: a file of secrets that the same text gathered.
    fn sent_files(&mut self, command: &ReducedCommand) {
        if self.files.is_empty() {
            return;
        }
        let gathered = TaintSet::ENVIRONMENT | TaintSet::SECRET;
        let sends = programs::sent_files(command)
            .iter()
            .any(|file| self.file(file).is_some_and(|flow| flow.taint.has(gathered)));
        if sends {
            let program = command.program();
            self.find(HarmFinding::dangerous(
                HarmCategory::Exfiltration,
                format!("sends away what it gathered before, with {program}"),
            ));
        }
    }

    /// `tool <(echo 'removeDir("/etc")')`, and a file that the same text wrote: code for a tool whose
    /// language nobody reads here.
    fn given_files(&mut self, command: &ReducedCommand) {
        let written = |arg: &&ExpandedText| {
            arg.s.starts_with("/dev/fd/<") || !self.files.is_empty() && self.file(&arg.s).is_some()
        };
        let files: Vec<ExpandedText> = command
            .operands()
            .filter(written)
            .take(2)
            .cloned()
            .collect();
        for file in files {
            let Some(code) = self.content_of(&file, &command.input).known else {
                continue;
            };
            if code.len() > LONGEST || !code.contains('(') {
                continue;
            }
            self.spend_text(code.len());
            let tokens = super::literals::tokens(&code);
            self.worst_of(|walker| walker.whole_code(&code, &tokens, "a tool's language"));
        }
    }

    /// `tool --post-hook 'curl … | sh'`: an option that says of its value that it is a command.
    fn handed_over(&mut self, command: &ReducedCommand) {
        let args = command.args();
        let mut given: Vec<String> = Vec::new();
        for (at, arg) in args
            .iter()
            .enumerate()
            .filter(|(_, arg)| arg.s.starts_with("--"))
        {
            let (name, value) = match arg.s.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.s.as_str(), args.get(at + 1).map(|next| next.s.as_str())),
            };
            let text = value.filter(|text| text.contains([' ', '|', ';']) && text.len() < LONGEST);
            if is_for_a_command(name) {
                given.extend(text.map(str::to_owned));
            }
        }
        for text in given.into_iter().take(2) {
            self.kept_of(is_an_attack, |walker| {
                walker.run_text(&text, "a tool", &ByteFlow::default());
            });
        }
    }

    /// Walks something that may be a command, and keeps only the worst that is found.
    pub(super) fn worst_of(&mut self, walk: impl FnOnce(&mut Self)) {
        self.kept_of(is_the_worst, walk);
    }

    fn kept_of(&mut self, keep: fn(&HarmFinding) -> bool, walk: impl FnOnce(&mut Self)) {
        if self.depth + 2 >= super::DEPTH {
            return;
        }
        let (findings, doubts, commands) = (
            self.reduced.findings.len(),
            self.reduced.doubts.len(),
            self.reduced.commands.len(),
        );
        let files = self.files.clone();
        self.apart(walk);
        self.files = files;
        self.reduced.doubts.truncate(doubts);
        self.reduced.commands.truncate(commands);
        let mut at = 0;
        self.reduced.findings.retain(|finding| {
            at += 1;
            at <= findings || keep(finding)
        });
    }
}

fn is_the_worst(finding: &HarmFinding) -> bool {
    finding.severity == HarmSeverity::Floor
        || finding.category == HarmCategory::Destruction && finding.reason.contains(": /")
}

/// What is no accident of a text that was taken for a command.
fn is_an_attack(finding: &HarmFinding) -> bool {
    is_the_worst(finding)
        || matches!(
            finding.category,
            HarmCategory::RemoteCode
                | HarmCategory::ReverseShell
                | HarmCategory::SecretRead
                | HarmCategory::Exfiltration
                | HarmCategory::Persistence
                | HarmCategory::Privilege
        )
}

/// `--exec`, `--pre-hook`, `--proxy-command`, `--on-success`.
fn is_for_a_command(option: &str) -> bool {
    const ENDS: &[&str] = &[
        "exec", "hook", "command", "cmd", "script", "callback", "run",
    ];
    let name = option.trim_start_matches('-');
    let last = name.rsplit('-').next().unwrap_or(name);
    ENDS.contains(&last) || name.starts_with("exec-") || name.starts_with("on-")
}

fn is_worst(name: &str) -> bool {
    WORST.contains(&name) || name.starts_with("mkfs.")
}

/// Variables whose value other programs start.
fn is_started(name: &str) -> bool {
    ["PAGER", "EDITOR", "VISUAL", "BROWSER", "SHELL"]
        .iter()
        .any(|end| name.ends_with(end))
        || name.ends_with("_COMMAND")
        || name.ends_with("_SSH")
        || name.ends_with("ASKPASS")
        || name == "PROMPT_COMMAND"
        || name == "RSYNC_RSH"
}

fn is_a_command_of_git(name: &str) -> bool {
    let name = name.to_lowercase();
    [
        "command",
        "pager",
        "editor",
        "helper",
        "driver",
        "textconv",
        "program",
        "fsmonitor",
        "askpass",
        "upload-pack",
        "receive-pack",
        "alias.",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// The command of the floor that a text holds: at its start, or where a quote, a bracket or a separator
/// lets one begin. Prose that mentions one is none.
fn piece_of(text: &str, told: bool) -> Option<String> {
    if text.len() > LONGEST || text.len() < 6 {
        return None;
    }
    let bytes = text.as_bytes();
    let mut begins = true;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if begins && byte.is_ascii_alphabetic() {
            let end = bytes[at..]
                .iter()
                .position(|b| !(b.is_ascii_alphanumeric() || *b == b'.'))
                .map_or(bytes.len(), |length| at + length);
            let word = &text[at..end];
            let rest = &bytes[end..];
            let worst = is_worst(word) && rest.first() == Some(&b' ');
            let quoted = at > 0 && matches!(bytes[at - 1], b'"' | b'\'' | b'`');
            let power = POWER.contains(&word)
                && !matches!(word, "init" | "halt")
                && (at == 0 && told || quoted && before_is_a_call(&bytes[..at - 1]));
            if worst || power {
                // From its start the whole text is the command, with whatever quotes it has.
                if at == 0 || text[..at].bytes().all(|b| b"!/ :".contains(&b) || told) {
                    return Some(text[at..].to_owned());
                }
                let closed = rest
                    .iter()
                    .position(|b| b"\"'`;)}]\n".contains(b))
                    .map_or(bytes.len(), |length| end + length);
                return Some(text[at..closed].to_owned());
            }
            at = end;
            begins = bytes.get(at) == Some(&b'/');
            continue;
        }
        // After `sudo ` and a folder the name goes on.
        begins = match byte {
            b'"' | b'\'' | b'`' | b'(' | b'{' | b'[' | b';' | b'|' | b'&' | b'!' | b'=' | b'\n'
            | b'/' => true,
            b' ' => begins,
            _ => false,
        };
        at += 1;
    }
    None
}

/// `system("poweroff")`: the quote stands in a call.
fn before_is_a_call(before: &[u8]) -> bool {
    matches!(before.last(), Some(b'(' | b'[' | b','))
        || before.ends_with(b"system ")
        || before.ends_with(b"exec ")
        || before.ends_with(b"command ")
}
