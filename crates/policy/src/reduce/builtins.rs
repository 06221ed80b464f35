//! Commands that the shell itself carries out.

use std::rc::Rc;

use super::ScriptWalker;
use super::locals::is_local;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::{ByteFlow, ExpandedText, HOLE, TaintSet, is_hole};

impl ScriptWalker<'_> {
    /// `None` if the name is no builtin that matters here.
    pub(super) fn builtin(&mut self, name: &str, command: &ReducedCommand) -> Option<ByteFlow> {
        let args = command.args();
        match name {
            "cd" | "pushd" => {
                self.judge(command.clone());
                self.change_folder(args);
                Some(ByteFlow::known(""))
            }
            "eval" => {
                let text = joined(args);
                self.judge(command.clone());
                Some(self.run_computed(&text, "eval", &command.input))
            }
            "source" | "." => Some(self.source(command)),
            "trap" => {
                let action = args
                    .iter()
                    .find(|arg| !arg.s.starts_with('-') || arg.s.len() > 2)?;
                self.judge(command.clone());
                if args.len() > 1 && !action.s.is_empty() {
                    self.traps.push(action.clone());
                }
                if args.iter().any(|arg| arg.s == "DEBUG") && action.s.contains("BASH_COMMAND") {
                    self.find(HarmFinding::dangerous(
                        HarmCategory::Persistence,
                        "records every command that is typed",
                    ));
                }
                Some(ByteFlow::known(""))
            }
            "alias" => {
                self.judge(command.clone());
                let named = args.iter().filter_map(|arg| arg.s.split_once('='));
                let pairs: Vec<(String, String)> = named
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .chain(
                        command
                            .assigns
                            .iter()
                            .map(|(name, value)| (name.clone(), value.s.clone())),
                    )
                    .collect();
                for (name, value) in pairs {
                    self.judge_alias(&name, &value);
                    if !value.contains(is_hole) {
                        self.run_text(&value, "alias", &ByteFlow::default());
                        self.aliases.insert(name, value);
                    }
                }
                Some(ByteFlow::known(""))
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.judge(command.clone());
                if command.short('n') && command.program() != "export" {
                    self.refer(command);
                }
                for arg in args {
                    if let Some((variable, value)) = arg.s.split_once('=') {
                        if is_local(name) {
                            self.make_local(variable, command.short('g'));
                        }
                        let value = ExpandedText {
                            s: value.to_owned(),
                            ..arg.clone()
                        };
                        self.set(variable, value);
                    }
                }
                if name != "export" && ['l', 'u', 'c', 'i'].iter().any(|flag| command.short(*flag))
                {
                    let given = command.assigns.iter().map(|(name, _)| name.as_str());
                    let bare = command.operands().map(|text| {
                        text.s
                            .split_once('=')
                            .map_or(text.s.as_str(), |(name, _)| name)
                    });
                    for name in given.chain(bare) {
                        self.transform(name);
                    }
                }
                let lists =
                    args.is_empty() || command.short('p') && command.operands().next().is_none();
                Some(ByteFlow::unknown(if lists {
                    TaintSet::ENVIRONMENT
                } else {
                    TaintSet::NONE
                }))
            }
            "set" => {
                self.judge(command.clone());
                if let Some(given) = arguments_of_set(args) {
                    let mut words = vec![ExpandedText::known("bash")];
                    words.extend_from_slice(given);
                    self.set_arguments(words);
                }
                Some(ByteFlow::unknown(if args.is_empty() {
                    TaintSet::ENVIRONMENT
                } else {
                    TaintSet::NONE
                }))
            }
            "mapfile" | "readarray" => {
                self.judge(command.clone());
                self.map_file(command);
                Some(ByteFlow::known(""))
            }
            "read" => {
                self.judge(command.clone());
                self.read(command);
                Some(ByteFlow::known(""))
            }
            "printf" if args.first().is_some_and(|arg| arg.s == "-v") => {
                let mut shown = command.clone();
                shown.words.drain(1..3.min(shown.words.len()));
                let text = self.output(&shown).into_text();
                if let Some(name) = args.get(1) {
                    self.set(&name.s, text);
                }
                Some(ByteFlow::known(""))
            }
            "hash" => {
                self.judge(command.clone());
                if command.short('p') {
                    self.find(HarmFinding::dangerous(
                        HarmCategory::Injection,
                        "makes a name stand for another program (hash -p)",
                    ));
                }
                Some(ByteFlow::known(""))
            }
            "shift" => {
                self.judge(command.clone());
                let by = match args.first() {
                    None => Some(1),
                    Some(number) => number.s.parse().ok(),
                };
                self.shift(by);
                Some(ByteFlow::known(""))
            }
            "let" => {
                self.judge(command.clone());
                for arg in args {
                    self.calculate(&arg.s);
                }
                Some(ByteFlow::known(""))
            }
            "getopts" => {
                self.judge(command.clone());
                if let Some(name) = args.get(1) {
                    self.set(&name.s, ExpandedText::unknown(TaintSet::ARGUMENT));
                }
                Some(ByteFlow::known(""))
            }
            "complete" | "compgen" => {
                self.judge(command.clone());
                if let Some(action) = command.value_of("-C").cloned() {
                    self.judge_alias("complete", &action.s);
                    self.run_computed(&action, name, &ByteFlow::default());
                }
                None
            }
            "return" | "break" | "continue" => {
                self.judge(command.clone());
                let loops = match args.first() {
                    // A function may be left out of any number of loops.
                    _ if name == "return" => usize::MAX,
                    None => 1,
                    Some(number) => number.s.parse().unwrap_or(usize::MAX),
                };
                self.jump(loops);
                Some(ByteFlow::known(""))
            }
            ":" | "true" | "false" | "[" | "test" | "wait" | "unalias" => {
                self.judge(command.clone());
                Some(ByteFlow::known(""))
            }
            "unset" => {
                for arg in args {
                    self.functions.remove(&arg.s);
                    if self.reading.is_none() {
                        Rc::make_mut(&mut self.arrays).remove(&arg.s);
                    }
                    self.set(&arg.s, ExpandedText::default());
                }
                self.judge(command.clone());
                Some(ByteFlow::known(""))
            }
            _ => None,
        }
    }

    /// A name that people type without thinking, leading elsewhere.
    fn judge_alias(&mut self, name: &str, value: &str) {
        const TRUSTED: &[&str] = &["sudo", "su", "doas", "ssh", "passwd", "gpg", "login"];
        let first = value.split_whitespace().next().unwrap_or_default();
        let elsewhere = TRUSTED.contains(&name) && crate::effective::base_name(first) != name;
        let anybodys =
            first.contains('/') && crate::paths::anybodys(first, self.workdir(), self.context);
        if value.contains(HOLE) || elsewhere || anybodys {
            self.find(HarmFinding::dangerous(
                HarmCategory::Injection,
                format!("makes the name {name} run something else"),
            ));
        }
    }

    /// `declare -n name=other`: from now on the one means the other.
    fn refer(&mut self, command: &ReducedCommand) {
        for (name, other) in &command.assigns {
            let elsewhere = self.references.get(name).is_some_and(|old| *old != other.s);
            // A function's own name had no other meaning before.
            if self.branches > 0 && (elsewhere || self.locals.is_empty()) {
                self.doubt("which variable a name stands for cannot be known beforehand");
            }
            Rc::make_mut(&mut self.vars).remove(name);
            if other.is_known() {
                self.references.insert(name.clone(), other.s.clone());
            } else {
                Rc::make_mut(&mut self.vars).insert(name.clone(), other.clone());
            }
        }
    }

    fn change_folder(&mut self, args: &[ExpandedText]) {
        let target = args
            .iter()
            .find(|arg| !arg.s.starts_with('-') || arg.s == "-");
        let folder = match target {
            None => self.context.home.clone(),
            Some(target) if !target.is_unbounded() && target.s != "-" => {
                crate::paths::absolute(&target.s, self.workdir())
            }
            Some(_) => HOLE.to_string(),
        };
        self.stand_in(folder);
    }

    fn source(&mut self, command: &ReducedCommand) -> ByteFlow {
        let Some(file) = command.args().iter().find(|arg| arg.s != "--").cloned() else {
            return ByteFlow::known("");
        };
        self.judge(command.clone());
        let content = self.content_of(&file, &command.input);
        if content.known.is_some() {
            return self.run_flow(&content, "source");
        }
        if content.taint.has(TaintSet::NETWORK) || file.taint.has(TaintSet::NETWORK) {
            self.find(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                "sources what it downloads",
            ));
        } else if content.taint.has(TaintSet::DECODED) {
            self.judge_unknown_code(content.taint, "source");
        }
        ByteFlow::unknown(TaintSet::NONE)
    }
}

/// What `set` gives to `$1` and the others, if it gives anything.
fn arguments_of_set(args: &[ExpandedText]) -> Option<&[ExpandedText]> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        match arg.s.as_str() {
            "--" => return Some(&args[at + 1..]),
            "-o" | "+o" => at += 2,
            s if s.len() > 1 && s.starts_with(['-', '+']) => at += 1,
            _ => return Some(&args[at..]),
        }
    }
    None
}

pub(super) fn joined(args: &[ExpandedText]) -> ExpandedText {
    let mut text = ExpandedText::default();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            text.s.push(' ');
        }
        text.push(arg);
    }
    text
}
