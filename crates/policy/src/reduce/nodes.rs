//! Walking the tree.

use std::rc::Rc;

use super::Walker;
use super::locals::Locals;
use super::pipelines::{bombs, connects_a_shell, counts, runs_itself};
use super::redirects::Redirected;
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::syntax::{Kind, Node, Pipeline, Script, Simple, Word};
use crate::text::{Flow, Taint, Text};

impl Walker<'_> {
    pub(super) fn script(&mut self, script: &Script, input: &Flow) -> Flow {
        let mut output = Flow::known("");
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

    fn pipeline(&mut self, pipeline: &Pipeline, input: Flow) -> Flow {
        let selves = pipeline
            .stages
            .iter()
            .filter(|stage| runs_itself(stage))
            .count();
        if selves > 0 && (pipeline.background || pipeline.stages.len() > 1) {
            self.find(Finding::floor(
                Category::ForkBomb,
                "starts itself again and again",
            ));
        }
        if connects_a_shell(pipeline) {
            self.find(Finding::dangerous(
                Category::ReverseShell,
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

    fn node(&mut self, node: &Node, input: Flow) -> Flow {
        if !self.step() {
            return Flow::unknown(Taint::NONE);
        }
        if let Kind::Simple(simple) = &node.kind {
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
            Kind::Simple(_) => Flow::default(),
            Kind::Subshell(script) => self.subshell(script, &input),
            Kind::Group(scripts) => {
                let mut output = Flow::known("");
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
            Kind::Loop { condition, body } => self.repeat(condition, body, &input),
            Kind::For { name, words, body } => self.for_loop(name, words.as_deref(), body, &input),
            Kind::Case { subject, arms } => {
                self.text(subject);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.text(pattern);
                    }
                    self.maybe(|walker| walker.script(body, &input));
                }
                Flow::unknown(Taint::NONE)
            }
            Kind::Function { name, body } => self.define(name, body),
            Kind::Arithmetic(word) => {
                let expression = self.text(word);
                self.calculate(&expression.s);
                Flow::known("")
            }
            Kind::Test(words) => {
                for word in words {
                    self.text(word);
                }
                Flow::known("")
            }
        };
        if !written.is_empty() {
            let left = Effective {
                writes: written.clone(),
                ..Effective::default()
            };
            self.remember(&left, &output);
            self.judge(Effective {
                writes: written,
                input: output.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
        }
        output
    }

    /// What is assigned inside is gone afterwards.
    pub(super) fn subshell(&mut self, script: &Script, input: &Flow) -> Flow {
        self.apart(|walker| {
            let traps = walker.traps.len();
            let output = walker.script(script, input);
            walker.spring_traps(traps);
            output
        })
    }

    fn simple(&mut self, simple: &Simple, redirected: Redirected, input: Flow) -> Flow {
        let declares = simple
            .words
            .first()
            .and_then(Word::as_plain)
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
        let output = self.run(Effective {
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

    fn assigns(&mut self, simple: &Simple) -> Vec<(String, Text)> {
        let mut assigns = Vec::new();
        for assign in &simple.assigns {
            let value = self.assign(assign);
            assigns.push((assign.name.clone(), value));
        }
        assigns
    }

    fn words(&mut self, simple: &Simple) -> Vec<Text> {
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
    fn define(&mut self, name: &str, body: &Rc<Script>) -> Flow {
        if bombs(body, name) {
            self.find(Finding::floor(
                Category::ForkBomb,
                "a function that starts itself again and again (fork bomb)",
            ));
            return Flow::known("");
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
        self.locals.push(Locals::of(self.branches));
        self.below(name, |walker| {
            walker.script(&body, &Flow::unknown(Taint::NONE))
        });
        self.locals.pop();
        self.jumps.truncate(jumps);
        self.calls.pop();
        self.positional = args;
        self.return_to(kept);
        let found = std::mem::replace(&mut self.deferred, outer).unwrap_or_default();
        self.uncalled.insert(name.to_owned(), found);
        Flow::known("")
    }
}

/// Builtins whose assignments stay.
fn is_declaration(name: &str) -> bool {
    matches!(
        name,
        "export" | "declare" | "typeset" | "local" | "readonly" | "alias"
    )
}
