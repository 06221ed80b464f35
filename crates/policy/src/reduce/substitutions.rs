//! `$( … )`, `<( … )` and `>( … )`.

use std::rc::Rc;

use super::ScriptWalker;
use crate::effective::ReducedCommand;
use crate::syntax::{NodeKind, Pipeline, ShellNode, ShellScript, ShellWord};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

impl ScriptWalker<'_> {
    pub(super) fn substitution(&mut self, script: &Rc<ShellScript>) -> ByteFlow {
        if self.depth >= super::DEPTH {
            self.doubt("it is nested too deeply to follow");
            return ByteFlow::unknown(TaintSet::NONE);
        }
        // `$(<file)`
        if let [pipeline] = script.pipelines.as_slice()
            && let [
                ShellNode {
                    kind: NodeKind::Simple(simple),
                    redirects,
                },
            ] = pipeline.stages.as_slice()
            && simple.words.is_empty()
            && simple.assigns.is_empty()
            && !redirects.is_empty()
        {
            let redirected = self.redirects(redirects);
            self.judge(ReducedCommand {
                words: vec![ExpandedText::known("cat")],
                reads: redirected.reads,
                writes: redirected.writes,
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..ReducedCommand::default()
            });
            return redirected.input.unwrap_or_default();
        }
        let script = Rc::clone(script);
        let mut flow = self.below("$( )", |walker| {
            walker.subshell(&script, &ByteFlow::default())
        });
        // `which a || which b` is one program.
        let finds = |pipeline: &Pipeline| match pipeline.stages.as_slice() {
            [
                ShellNode {
                    kind: NodeKind::Simple(simple),
                    ..
                },
            ] => matches!(
                simple.words.first().and_then(ShellWord::as_plain),
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

    pub(super) fn process(&mut self, script: &Rc<ShellScript>, reads: bool) -> ExpandedText {
        let script = Rc::clone(script);
        // What goes into `>( … )` is only known when it is written.
        let input = if reads {
            ByteFlow::default()
        } else {
            ByteFlow::unknown(TaintSet::NONE)
        };
        let flow = self.below("<( )", |walker| walker.subshell(&script, &input));
        let taint = if reads { flow.taint } else { TaintSet::NONE };
        self.processes
            .push(if reads { flow } else { ByteFlow::default() });
        ExpandedText {
            s: format!("/dev/fd/<{}>", self.processes.len() - 1),
            taint,
            glob: false,
        }
    }
}
