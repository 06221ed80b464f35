//! One command: what is it really, what does it start, what does it print.

use super::ScriptWalker;
use super::locals::FunctionLocals;
use super::shells::ShellInput;
use super::wrappers::{self, WrappedCommand};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::programs;
use crate::text::{ByteFlow, ExpandedText, HOLE, TaintSet, is_hole};

impl ScriptWalker<'_> {
    pub(super) fn run(&mut self, mut command: ReducedCommand) -> ByteFlow {
        if !self.step() || self.depth >= super::DEPTH {
            self.doubt("it does too much to follow");
            return ByteFlow::unknown(TaintSet::NONE);
        }
        let Some(first) = command.words.first().cloned() else {
            return self.judge(command);
        };
        // Wrappers in wrappers hand the same words down again and again, and the tables hold words
        // against words.
        let (count, bytes) = command.size();
        self.spend_text(bytes + count * count / 4);
        // A shell that nobody types into knows no aliases: both readings count.
        if let Some(words) = self.alias(&command) {
            let mut aliased = command.clone();
            aliased.words = words;
            let aliases = std::mem::take(&mut self.aliases);
            self.run(aliased);
            self.aliases = aliases;
        }
        if first.glob {
            self.glob_program(&mut command);
        }
        // zsh's `=rm` is the path of `rm`.
        if first.s.len() > 1 && first.s.starts_with('=') {
            command.words[0].s.remove(0);
        }
        if let Some(plain) = without_prefix(command.program()) {
            command.words[0] = ExpandedText::known(plain);
        }
        self.with_arguments_unset(&command);
        let name = command.program().to_owned();
        if name.contains(is_hole) {
            return self.unknown_program(command, first.taint);
        }
        // A newline in an assignment prefix cannot hide: `x=y cmd` keeps its words.
        if let Some(body) = self.functions.get(&name).cloned() {
            if !self.uncertain.contains(&name) || self.calls.contains(&name) {
                return self.call(&name, &body, command);
            }
            // It may still be the program of that name.
            self.call(&name, &body, command.clone());
        }
        self.run_subscripts(&name, &command);
        if let Some(flow) = self.builtin(&name, &command) {
            return flow;
        }
        if let Some(shell) = ShellInput::of(&command) {
            return self.apart(|walker| walker.shell(shell, &command));
        }
        // A list that the same text wrote is known.
        if let Some(list) = wrappers::list_of(&command).and_then(|path| self.file(&path))
            && list.known.is_some()
        {
            let list = list.clone();
            command = wrappers::fed_by(command, list);
        }
        let inner = wrappers::inner(&command);
        if !inner.is_empty() {
            return self.wrapped(&command, inner);
        }
        if first.s.contains('/') {
            self.run_own_file(&first.s);
        }
        self.code(&command);
        self.carried(&command);
        self.run_own_project(&command);
        let output = self.output(&command);
        self.remember(&command, &output);
        self.judge(command);
        output
    }

    /// `test -v 'a[$(cmd)]'`: where a name or a number is expected, the shell runs what is in its index.
    fn run_subscripts(&mut self, name: &str, command: &ReducedCommand) {
        if !matches!(
            name,
            "test" | "[" | "let" | "printf" | "read" | "unset" | "declare" | "typeset"
        ) {
            return;
        }
        let texts: Vec<String> = command
            .args()
            .iter()
            .filter_map(|arg| arg.s.split_once("[$(").map(|(_, rest)| rest))
            .filter_map(|rest| rest.rsplit_once(")]").map(|(text, _)| text.to_owned()))
            .take(4)
            .collect();
        for text in texts {
            self.run_text(&text, "an index", &ByteFlow::default());
        }
    }

    /// `rm$IFS$9-rf` is `rm -rf` where nobody gave nine arguments: both readings count.
    fn with_arguments_unset(&mut self, command: &ReducedCommand) {
        let cut = |word: &ExpandedText| {
            word.taint.has(TaintSet::UNSET) && word.is_unbounded() && !word.is_hole()
        };
        if !command.words.iter().any(cut) {
            return;
        }
        let mut unset = command.clone();
        for word in unset.words.iter_mut().filter(|word| cut(word)) {
            word.s = word.s.replace(HOLE, "");
            word.taint = word.taint.without(TaintSet::UNSET | TaintSet::ARGUMENT);
        }
        self.run(unset);
    }

    /// Keeps the command and asks the tables about it.
    pub(super) fn judge(&mut self, command: ReducedCommand) -> ByteFlow {
        if self.shows_a_secret(&command) {
            self.find(HarmFinding::dangerous(
                HarmCategory::SecretRead,
                "prints a variable that is called like a secret",
            ));
        }
        let argument = command
            .words
            .iter()
            .chain(&command.writes)
            .chain(&command.reads)
            .any(|word| word.taint.has(TaintSet::ARGUMENT));
        for finding in programs::judge(&command, self.context) {
            match &mut self.deferred {
                Some(deferred) if argument && finding.category == HarmCategory::Unknown => {
                    deferred.push(finding);
                }
                _ => self.find(finding),
            }
        }
        if !command.words.is_empty() || !command.writes.is_empty() {
            self.reduced.commands.push(command);
        }
        ByteFlow::known("")
    }

    /// Printed for everybody, not handed on to a program that asks for it.
    fn shows_a_secret(&self, command: &ReducedCommand) -> bool {
        // What only another spelling of it is can be read as well.
        let spells = matches!(
            command.program(),
            "base64"
                | "base32"
                | "xxd"
                | "od"
                | "hexdump"
                | "hd"
                | "rev"
                | "cat"
                | "tr"
                | "tee"
                | "sed"
                | "cut"
                | "fold"
                | "qrencode"
        ) && command.input.taint.has(TaintSet::NAMED);
        let prints = matches!(command.program(), "echo" | "printf")
            && command
                .args()
                .iter()
                .any(|arg| arg.taint.has(TaintSet::NAMED));
        (prints || spells)
            && !self.piped
            && command.writes.is_empty()
            && !self.via.iter().any(|via| via == "$( )")
    }

    fn wrapped(&mut self, command: &ReducedCommand, inner: Vec<WrappedCommand>) -> ByteFlow {
        let label = command.program().to_owned();
        let mut output = ByteFlow::unknown(TaintSet::NONE);
        let contained = self.contained;
        let mut outer = command.clone();
        outer.transparent = wrappers::is_transparent(&label);
        self.judge(outer);
        for inner in inner {
            output = match inner {
                WrappedCommand::Words(words) => {
                    // The first process of the host is outside of every container.
                    self.contained &= !enters_host(command);
                    self.start(words, &label, command)
                }
                WrappedCommand::Contained(words) => {
                    self.contained = true;
                    self.start(words, &label, command)
                }
                WrappedCommand::Script(text) => {
                    self.apart(|walker| walker.run_computed(&text, &label, &command.input))
                }
                WrappedCommand::Stdin => {
                    self.apart(|walker| walker.run_flow(&command.input, &label))
                }
            };
            self.contained = contained;
        }
        if matches!(label.as_str(), "ssh" | "mosh" | "plink") {
            output.taint = output.taint | TaintSet::NETWORK;
        }
        output
    }

    fn start(&mut self, words: Vec<ExpandedText>, label: &str, outer: &ReducedCommand) -> ByteFlow {
        let via = label.to_owned();
        let outer = outer.clone();
        self.below(&via, |walker| {
            walker.run(ReducedCommand {
                words,
                via: walker.via.clone(),
                ..outer
            })
        })
    }

    /// Text that is about to be run as shell.
    pub(super) fn run_computed(
        &mut self,
        text: &ExpandedText,
        via: &str,
        input: &ByteFlow,
    ) -> ByteFlow {
        if text.is_known() {
            return self.run_text(&text.s, via, input);
        }
        let all = text.is_hole();
        if all || text.taint.has(TaintSet::NETWORK | TaintSet::DECODED) {
            self.judge_unknown_code(text.taint, via);
        }
        // What is readable around the holes still counts.
        let filled = text.s.replace(HOLE, "\"$__unknown\"");
        if all {
            ByteFlow::unknown(text.taint)
        } else {
            self.run_text(&filled, via, input)
        }
    }

    pub(super) fn run_flow(&mut self, input: &ByteFlow, via: &str) -> ByteFlow {
        match &input.known {
            Some(text) => {
                let text = text.clone();
                if input.taint.has(TaintSet::DECODED) {
                    self.judge_unknown_code(TaintSet::DECODED, via);
                }
                self.run_text(&text, via, &ByteFlow::default())
            }
            None => {
                self.judge_unknown_code(input.taint, via);
                ByteFlow::unknown(input.taint)
            }
        }
    }

    pub(super) fn judge_unknown_code(&mut self, taint: TaintSet, via: &str) {
        let known_tool =
            taint.has(TaintSet::SHELL_ENV) && !taint.has(TaintSet::NETWORK | TaintSet::DECODED);
        if known_tool {
            return;
        }
        if taint.has(TaintSet::NETWORK) {
            self.find(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                format!("runs what it downloads, with {via}"),
            ));
        } else if taint.has(TaintSet::DECODED) {
            self.find(HarmFinding::dangerous(
                HarmCategory::Disguise,
                format!("decodes something unreadable and runs it, with {via}"),
            ));
        } else if !taint.has(TaintSet::FILE)
            || matches!(via, "eval" | "trap")
            || via.ends_with(" -c")
        {
            self.find(HarmFinding::dangerous(
                HarmCategory::Disguise,
                format!("runs text with {via} that cannot be known beforehand"),
            ));
        }
    }

    fn unknown_program(&mut self, command: ReducedCommand, taint: TaintSet) -> ByteFlow {
        if taint.has(TaintSet::NETWORK) {
            self.find(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                "runs what it downloads",
            ));
        } else if taint.has(TaintSet::DECODED) {
            self.find(HarmFinding::dangerous(
                HarmCategory::Disguise,
                "decodes the name of the program it runs",
            ));
        } else if taint.has(TaintSet::ARGUMENT)
            && let Some(deferred) = &mut self.deferred
        {
            deferred.push(HarmFinding::dangerous(
                HarmCategory::Unknown,
                "which program a function runs cannot be known beforehand",
            ));
        } else {
            self.doubt("which program it runs cannot be known beforehand");
        }
        let args: Vec<ExpandedText> = command.args().to_vec();
        self.judge(command);
        // `$cmd rm -rf /` may be any wrapper: look at the rest as if it were one.
        if args
            .first()
            .is_some_and(|arg| programs::is_known(base_name(&arg.s)))
        {
            return self.start(args, "an unknown program", &ReducedCommand::default());
        }
        ByteFlow::unknown(TaintSet::NONE)
    }

    /// `/bin/r?` is `/bin/rm` on every machine that has one.
    fn glob_program(&mut self, command: &mut ReducedCommand) {
        let pattern = command.words[0].s.clone();
        if pattern.chars().all(|c| c == '[') || pattern == "[" || pattern == "[[" {
            return;
        }
        self.find(HarmFinding::dangerous(
            HarmCategory::Disguise,
            format!("names its program by a pattern: {pattern}"),
        ));
        // Longer than the path of any program.
        if pattern.len() > 64 {
            return;
        }
        let folders = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", ""];
        for name in programs::names() {
            for folder in folders {
                let path = format!("{folder}{name}");
                if super::glob::matches(&pattern, &path) {
                    command.words[0] = ExpandedText::known(path);
                    return;
                }
            }
        }
    }

    fn alias(&mut self, command: &ReducedCommand) -> Option<Vec<ExpandedText>> {
        let value = self.aliases.get(&command.words[0].s)?.clone();
        let mut words: Vec<ExpandedText> =
            value.split_whitespace().map(ExpandedText::known).collect();
        if words
            .first()
            .is_some_and(|word| word.s == command.words[0].s)
        {
            return None;
        }
        words.extend_from_slice(command.args());
        Some(words)
    }

    fn call(
        &mut self,
        name: &str,
        body: &std::rc::Rc<crate::syntax::ShellScript>,
        command: ReducedCommand,
    ) -> ByteFlow {
        if self.calls.iter().any(|called| called == name) {
            return ByteFlow::unknown(TaintSet::NONE);
        }
        self.uncalled.remove(name);
        let jumps = self.jumps.len();
        let kept = self.positional.replace(command.words.clone());
        self.calls.push(name.to_owned());
        let body = std::rc::Rc::clone(body);
        let input = command.input.clone();
        self.locals.push(FunctionLocals::of(self.branches));
        let output =
            self.leavable(|walker| walker.below(name, |walker| walker.script(&body, &input)));
        // No `break` leaves a function, and no `return` leaves its caller.
        self.jumps.truncate(jumps);
        if let Some(locals) = self.locals.pop() {
            self.put_back(locals.into_kept());
        }
        self.calls.pop();
        self.positional = kept;
        if !command.writes.is_empty() {
            self.judge(ReducedCommand {
                words: Vec::new(),
                input: output.clone(),
                ..command
            });
        }
        output
    }
}

/// GNU's tools where the machine has others of that name: `gfind` is `find`.
fn without_prefix(name: &str) -> Option<&str> {
    const GNU: &[&str] = &[
        "find", "rm", "shred", "dd", "mv", "cp", "chmod", "chown", "chgrp", "truncate", "xargs",
        "kill", "tee", "ln", "install", "unlink", "rmdir", "cat", "head", "tail", "env", "nice",
        "nohup", "timeout", "stdbuf", "chroot",
    ];
    name.strip_prefix('g').filter(|plain| GNU.contains(plain))
}

/// `nsenter -t 1 -m`.
fn enters_host(command: &ReducedCommand) -> bool {
    let target = |flag: &str| command.value_of(flag).is_some_and(|text| text.s == "1");
    command.program() == "nsenter"
        && (target("-t")
            || target("--target")
            || command.has_arg("-t1")
            || command.has_arg("--target=1"))
}
