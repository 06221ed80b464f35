//! Walking the tree.

use std::rc::Rc;

use super::ScriptWalker;
use super::locals::FunctionLocals;
use super::pipelines::{bombs, connects_a_shell, counts, runs_itself};
use super::redirects::RedirectEffects;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::syntax::{NodeKind, Pipeline, ShellNode, ShellScript, ShellWord, SimpleCommand};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

impl ScriptWalker<'_> {
    pub(super) fn script(&mut self, script: &ShellScript, input: &ByteFlow) -> ByteFlow {
        let mut output = ByteFlow::known("");
        // Where the list of `&&` that is walked began.
        let mut folder = self.cwd.clone();
        for pipeline in &script.pipelines {
            if self.steps > super::STEPS {
                break;
            }
            let input = input.shared();
            let apart = pipeline.background || pipeline.stages.len() > 1;
            if !pipeline.conditional || pipeline.otherwise {
                self.keep_folder(folder.as_deref());
            }
            let flow = if apart {
                self.maybe(|walker| walker.pipeline(pipeline, input))
            } else if pipeline.conditional {
                self.maybe_next(|walker| walker.pipeline(pipeline, input))
            } else {
                self.pipeline(pipeline, input)
            };
            if !pipeline.conditional {
                folder = self.cwd.clone();
            }
            output = output.then(flow, super::LONGEST_TEXT);
        }
        self.keep_folder(folder.as_deref());
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: ByteFlow) -> ByteFlow {
        let selves = pipeline
            .stages
            .iter()
            .filter(|stage| runs_itself(stage))
            .count();
        if selves > 0 && (pipeline.background || pipeline.stages.len() > 1) {
            self.find(HarmFinding::floor(
                HarmCategory::ForkBomb,
                "starts itself again and again",
            ));
        }
        if connects_a_shell(pipeline) {
            self.find(HarmFinding::dangerous(
                HarmCategory::ReverseShell,
                "connects a shell to the network",
            ));
        }
        let mut flow = input;
        let unseen = self.unseen;
        self.unseen |= pipeline.stages.len() > 1 && pipeline.stages.last().is_some_and(counts);
        let piped = self.piped;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            self.piped = piped || at + 1 < pipeline.stages.len();
            // Each has a shell of its own, and the last one has it only sometimes.
            flow = if pipeline.stages.len() > 1 {
                self.maybe(|walker| walker.node(stage, flow))
            } else {
                self.node(stage, flow)
            };
        }
        self.piped = piped;
        self.unseen = unseen;
        flow
    }

    fn node(&mut self, node: &ShellNode, input: ByteFlow) -> ByteFlow {
        if !self.step() {
            return ByteFlow::unknown(TaintSet::NONE);
        }
        if let NodeKind::Simple(simple) = &node.kind {
            return self.in_all_readings(|walker| {
                walker.stand_in_older_folder();
                let redirected = walker.redirects(&node.redirects);
                let input = redirected.input.clone().unwrap_or_else(|| input.clone());
                walker.simple(simple, redirected, input)
            });
        }
        let redirected = self.redirects_in_all_readings(&node.redirects);
        let written = redirected.writes.clone();
        self.compound_reads(&node.kind, &redirected);
        let input = redirected.input.clone().unwrap_or(input);
        let output = match &node.kind {
            NodeKind::Simple(_) => ByteFlow::default(),
            NodeKind::Subshell(script) => self.subshell(script, &input),
            NodeKind::Group(scripts) => {
                let mut output = ByteFlow::known("");
                for (at, script) in scripts.iter().enumerate() {
                    output = if at == 0 {
                        self.script(script, &input)
                    } else {
                        self.maybe(|walker| walker.script(script, &input))
                    };
                }
                if scripts.len() > 1 {
                    output.known = None;
                }
                output
            }
            NodeKind::Loop { condition, body } => self.repeat(condition, body, &input),
            NodeKind::For { name, words, body } => {
                self.for_loop(name, words.as_deref(), body, &input)
            }
            NodeKind::Case { subject, arms } => {
                self.text(subject);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.text(pattern);
                    }
                    self.maybe(|walker| walker.script(body, &input));
                }
                ByteFlow::unknown(TaintSet::NONE)
            }
            NodeKind::Function { name, body } => self.define(name, body),
            NodeKind::Arithmetic(word) => {
                let expression = self.text(word);
                self.calculate(&expression.s);
                ByteFlow::known("")
            }
            NodeKind::Test(words) => {
                for word in words {
                    self.text(word);
                }
                ByteFlow::known("")
            }
        };
        if !written.is_empty() {
            let left = ReducedCommand {
                writes: written.clone(),
                ..ReducedCommand::default()
            };
            self.remember(&left, &output);
            self.judge(ReducedCommand {
                writes: written,
                input: output.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..ReducedCommand::default()
            });
        }
        output
    }

    /// What is assigned inside is gone afterwards.
    pub(super) fn subshell(&mut self, script: &ShellScript, input: &ByteFlow) -> ByteFlow {
        self.apart(|walker| {
            let traps = walker.traps.len();
            let output = walker.script(script, input);
            walker.spring_traps(traps);
            output
        })
    }

    fn simple(
        &mut self,
        simple: &SimpleCommand,
        redirected: RedirectEffects,
        input: ByteFlow,
    ) -> ByteFlow {
        let declares = simple
            .words
            .first()
            .and_then(ShellWord::as_plain)
            .is_some_and(is_declaration);
        let passing = !simple.words.is_empty() && !declares;
        // The words of `F=x cat "$F"` are made before F is set, and only for this command.
        let (words, assigns, kept) = if passing {
            let words = self.words(simple);
            let kept = self.as_they_are(simple);
            (words, self.assigns(simple), kept)
        } else {
            self.make_locals(simple);
            let assigns = self.assigns(simple);
            (self.words(simple), assigns, Vec::new())
        };
        let output = self.run(ReducedCommand {
            words,
            assigns,
            writes: redirected.writes,
            reads: redirected.reads,
            input,
            cwd: self.cwd.clone(),
            via: self.via.clone(),
            transparent: false,
            unseen: self.unseen,
        });
        self.put_back(kept);
        output
    }

    fn assigns(&mut self, simple: &SimpleCommand) -> Vec<(String, ExpandedText)> {
        let mut assigns = Vec::new();
        for assign in &simple.assigns {
            let value = self.assign(assign);
            assigns.push((assign.name.clone(), value));
        }
        assigns
    }

    fn words(&mut self, simple: &SimpleCommand) -> Vec<ExpandedText> {
        let mut words = Vec::new();
        for word in &simple.words {
            words.append(&mut self.fields(word));
            if words.len() > super::MOST_WORDS {
                self.doubt("it has too many words to follow");
                words.truncate(super::MOST_WORDS);
                break;
            }
        }
        words
    }

    /// A body is judged where it is defined: a persistent shell may call it later.
    fn define(&mut self, name: &str, body: &Rc<ShellScript>) -> ByteFlow {
        if bombs(body, name) {
            self.find(HarmFinding::floor(
                HarmCategory::ForkBomb,
                "a function that starts itself again and again (fork bomb)",
            ));
            return ByteFlow::known("");
        }
        self.functions.insert(name.to_owned(), Rc::clone(body));
        if self.branches > 0 {
            self.uncertain.insert(name.to_owned());
        } else {
            self.uncertain.remove(name);
        }
        let outer = self.deferred.replace(Vec::new());
        let kept = self.state();
        let args = self.positional.take();
        self.calls.push(name.to_owned());
        let body = Rc::clone(body);
        let jumps = self.jumps.len();
        self.locals.push(FunctionLocals::of(self.branches));
        self.below(name, |walker| {
            walker.script(&body, &ByteFlow::unknown(TaintSet::NONE))
        });
        self.locals.pop();
        self.jumps.truncate(jumps);
        self.calls.pop();
        self.positional = args;
        self.return_to(kept);
        let found = std::mem::replace(&mut self.deferred, outer).unwrap_or_default();
        self.uncalled.insert(name.to_owned(), found);
        ByteFlow::known("")
    }
}

/// Builtins whose assignments stay.
fn is_declaration(name: &str) -> bool {
    matches!(
        name,
        "export" | "declare" | "typeset" | "local" | "readonly" | "alias"
    )
}
