//! `$( … )`, `<( … )` and `>( … )`.

use std::rc::Rc;

use super::Walker;
use crate::effective::Effective;
use crate::syntax::{Kind, Node, Pipeline, Script, Word};
use crate::text::{Flow, Taint, Text};

impl Walker<'_> {
    pub(super) fn substitution(&mut self, script: &Rc<Script>) -> Flow {
        if self.depth >= super::DEPTH {
            self.doubt("it is nested too deeply to follow");
            return Flow::unknown(Taint::NONE);
        }
        // `$(<file)`
        if let [pipeline] = script.pipelines.as_slice()
            && let [
                Node {
                    kind: Kind::Simple(simple),
                    redirects,
                },
            ] = pipeline.stages.as_slice()
            && simple.words.is_empty()
            && simple.assigns.is_empty()
            && !redirects.is_empty()
        {
            let redirected = self.redirects(redirects);
            self.judge(Effective {
                words: vec![Text::known("cat")],
                reads: redirected.reads,
                writes: redirected.writes,
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
            return redirected.input.unwrap_or_default();
        }
        let script = Rc::clone(script);
        let mut flow = self.below("$( )", |walker| walker.subshell(&script, &Flow::default()));
        // `which a || which b` is one program.
        let finds = |pipeline: &Pipeline| match pipeline.stages.as_slice() {
            [
                Node {
                    kind: Kind::Simple(simple),
                    ..
                },
            ] => matches!(
                simple.words.first().and_then(Word::as_plain),
                Some("which" | "command" | "type")
            ),
            _ => false,
        };
        if script.pipelines.len() > 1 && script.pipelines.iter().all(finds) {
            flow.known = flow
                .known
                .and_then(|text| text.lines().next().map(str::to_owned));
        }
        flow
    }

    pub(super) fn process(&mut self, script: &Rc<Script>, reads: bool) -> Text {
        let script = Rc::clone(script);
        // What goes into `>( … )` is only known when it is written.
        let input = if reads {
            Flow::default()
        } else {
            Flow::unknown(Taint::NONE)
        };
        let flow = self.below("<( )", |walker| walker.subshell(&script, &input));
        let taint = if reads { flow.taint } else { Taint::NONE };
        self.processes
            .push(if reads { flow } else { Flow::default() });
        Text {
            s: format!("/dev/fd/<{}>", self.processes.len() - 1),
            taint,
            glob: false,
        }
    }
}
