//! Shells started by name: their text comes from `-c`, a file or standard input.

use super::ScriptWalker;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ksh93",
    "mksh",
    "ash",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "pwsh",
    "powershell",
    "elvish",
    "yash",
    "xonsh",
    "nu",
];

pub(super) enum ShellInput {
    Text(ExpandedText, Vec<ExpandedText>),
    File(ExpandedText),
    Stdin,
}

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.strip_prefix('-').unwrap_or(name))
}

impl ShellInput {
    pub(super) fn of(command: &ReducedCommand) -> Option<Self> {
        if !is_shell(command.program()) {
            return None;
        }
        let args = command.args();
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let s = arg.s.as_str();
            if matches!(s, "--version" | "--help") {
                return None;
            }
            if matches!(s, "--rcfile" | "--init-file") {
                return args.get(at + 1).map(|file| Self::File(file.clone()));
            }
            if matches!(s, "-o" | "-O" | "+o" | "+O") {
                at += 2;
                continue;
            }
            if s == "--command" || s.eq_ignore_ascii_case("-command") {
                return Some(Self::Text(
                    args.get(at + 1)?.clone(),
                    args[at + 2..].to_vec(),
                ));
            }
            if s.starts_with('-') && !s.starts_with("--") && s[1..].contains('c') {
                let mut next = at + 1;
                while args.get(next).is_some_and(|arg| {
                    arg.s.starts_with('-') && arg.s != "--" && arg.s.len() < 4
                        || arg.s == "--login"
                        || arg.s == "--norc"
                        || arg.s == "--noprofile"
                }) {
                    next += 1;
                }
                if args.get(next).is_some_and(|arg| arg.s == "--") {
                    next += 1;
                }
                let text = args.get(next)?.clone();
                return Some(Self::Text(text, args[next + 1..].to_vec()));
            }
            if s == "-s" || s == "-" || s == "--" {
                if s == "--"
                    && let Some(file) = args.get(at + 1)
                {
                    return Some(Self::File(file.clone()));
                }
                return Some(Self::Stdin);
            }
            if s.starts_with('-') || s.starts_with('+') {
                if !s.starts_with("--") && s.contains('s') {
                    return Some(Self::Stdin);
                }
                at += 1;
                continue;
            }
            return Some(Self::File(arg.clone()));
        }
        Some(Self::Stdin)
    }
}

impl ScriptWalker<'_> {
    pub(super) fn shell(&mut self, shell: ShellInput, command: &ReducedCommand) -> ByteFlow {
        let name = command.program().to_owned();
        let mut outer = command.clone();
        outer.transparent = true;
        self.judge(outer);
        match shell {
            ShellInput::Text(text, args) => {
                let mut positional = args;
                if positional.is_empty() {
                    positional.push(ExpandedText::known(name.clone()));
                }
                let kept = self.positional.replace(positional);
                let flow = self.run_computed(&text, &format!("{name} -c"), &command.input);
                self.positional = kept;
                flow
            }
            ShellInput::File(file) => {
                if file.taint.has(TaintSet::NETWORK) && !file.s.starts_with("/dev/fd/<") {
                    self.judge_unknown_code(file.taint, &name);
                    return ByteFlow::unknown(file.taint);
                }
                if file.is_unbounded() {
                    self.find(HarmFinding::dangerous(
                        HarmCategory::Unknown,
                        format!(
                            "runs a file that cannot be known beforehand: {}",
                            file.shown()
                        ),
                    ));
                }
                let content = self.content_of(&file, &command.input);
                self.run_script_file(&file, &content, &name)
            }
            ShellInput::Stdin => {
                if command.input.present {
                    return self.run_flow(&command.input.clone(), &name);
                }
                self.opened_from_inside(&name);
                ByteFlow::unknown(TaintSet::NONE)
            }
        }
    }

    /// A shell that nobody types into, started by a program that is not for starting shells, is the
    /// end of a way around something.
    fn opened_from_inside(&mut self, name: &str) {
        const INSIDE: &[&str] = &[
            "python",
            "perl",
            "ruby",
            "node",
            "php",
            "lua",
            "awk",
            "script",
            "find",
            "fd",
            "xargs",
            "gdb",
            "start-stop-daemon",
            "git",
            "parallel",
            "capsh",
            "make",
            "expect",
        ];
        let inside = self.via.last().filter(|via| INSIDE.contains(&via.as_str()));
        if let Some(via) = inside.cloned() {
            self.find(HarmFinding::dangerous(
                HarmCategory::Injection,
                format!("opens a shell ({name}) from inside {via}"),
            ));
        }
    }

    fn run_script_file(&mut self, file: &ExpandedText, content: &ByteFlow, name: &str) -> ByteFlow {
        if content.known.is_some() || content.taint.has(TaintSet::NETWORK | TaintSet::DECODED) {
            return self.run_flow(content, name);
        }
        if file.s.starts_with("/dev/fd/<") {
            self.judge_unknown_code(content.taint, name);
        } else {
            self.run_own_file(&file.s);
        }
        if file.s.starts_with("/dev/tcp/") {
            self.find(HarmFinding::dangerous(
                HarmCategory::ReverseShell,
                "a shell fed from the network",
            ));
        }
        ByteFlow::unknown(TaintSet::NONE)
    }
}
