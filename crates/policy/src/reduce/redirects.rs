//! What a command's redirections read, write and feed it with.

use super::ScriptWalker;
use super::loops::reads_lines;
use crate::effective::ReducedCommand;
use crate::paths;
use crate::syntax::{NodeKind, RedirectOp, ShellRedirect};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

/// What a command's redirections do.
#[derive(Default)]
pub(super) struct RedirectEffects {
    pub(super) input: Option<ByteFlow>,
    pub(super) writes: Vec<ExpandedText>,
    pub(super) reads: Vec<ExpandedText>,
}

impl RedirectEffects {
    fn or(&mut self, other: Self) {
        for (mine, others) in [
            (&mut self.writes, other.writes),
            (&mut self.reads, other.reads),
        ] {
            for file in others {
                if !mine.contains(&file) {
                    mine.push(file);
                }
            }
        }
        if let (Some(mine), Some(other)) = (&mut self.input, other.input)
            && (mine.known != other.known || mine.taint != other.taint)
        {
            mine.known = None;
            mine.taint = mine.taint | other.taint;
        }
    }
}

impl ScriptWalker<'_> {
    /// A loop that is fed from a file nobody can name may print it. Where lines are read into a
    /// variable, its use tells whether a secret is printed.
    pub(super) fn compound_reads(&mut self, kind: &NodeKind, redirected: &RedirectEffects) {
        let by_line = matches!(kind, NodeKind::Loop { condition, .. } if reads_lines(condition));
        let secret =
            |file: &ExpandedText| paths::secret(&file.s, self.workdir(), self.context).is_some();
        let printed = |file: &ExpandedText| file.is_unbounded() || !by_line && secret(file);
        if redirected.reads.iter().any(printed) {
            self.judge(ReducedCommand {
                words: vec![ExpandedText::known("cat")],
                reads: redirected.reads.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..ReducedCommand::default()
            });
        }
    }

    /// What reading a file would deliver.
    pub(super) fn content_of(&self, file: &ExpandedText, stdin: &ByteFlow) -> ByteFlow {
        if let Some(number) = file.s.strip_prefix("/dev/fd/<")
            && let Ok(at) = number.trim_end_matches('>').parse::<usize>()
        {
            return self.processes.get(at).cloned().unwrap_or_default();
        }
        if matches!(
            file.s.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-"
        ) {
            return stdin.clone();
        }
        // `bash /dev/fd/3 3<<< …`: a text on another descriptor is kept as the input.
        let descriptor = file
            .s
            .strip_prefix("/dev/fd/")
            .or_else(|| file.s.strip_prefix("/proc/self/fd/"));
        if descriptor.is_some_and(|number| number.parse::<u8>().is_ok()) && stdin.known.is_some() {
            return stdin.clone();
        }
        if file.s.starts_with("/dev/tcp/") || file.s.starts_with("/dev/udp/") {
            return ByteFlow::unknown(TaintSet::NETWORK);
        }
        if let Some(content) = self.file(&file.s) {
            return content.clone();
        }
        let secret = paths::secret(&file.s, self.workdir(), self.context).is_some();
        let taint = if secret {
            TaintSet::FILE | TaintSet::SECRET
        } else {
            TaintSet::FILE
        };
        ByteFlow::unknown(taint | file.taint)
    }

    /// The files and the input that a compound command may have, whatever its variables are.
    pub(super) fn redirects_in_all_readings(
        &mut self,
        redirects: &[ShellRedirect],
    ) -> RedirectEffects {
        let mut all: Option<RedirectEffects> = None;
        self.in_all_readings(|walker| {
            let redirected = walker.redirects(redirects);
            match &mut all {
                Some(all) => all.or(redirected),
                None => all = Some(redirected),
            }
        });
        all.unwrap_or_default()
    }

    pub(super) fn redirects(&mut self, redirects: &[ShellRedirect]) -> RedirectEffects {
        let mut redirected = RedirectEffects::default();
        for redirect in redirects {
            match redirect.op {
                RedirectOp::HereDoc => {
                    let body = redirect
                        .heredoc
                        .as_ref()
                        .and_then(|body| body.get().cloned());
                    let text = self.text(&body.unwrap_or_default());
                    redirected.input = Some(flow_of(&text));
                }
                RedirectOp::HereString => {
                    let mut text = self.text(&redirect.target);
                    text.s.push('\n');
                    redirected.input = Some(flow_of(&text));
                }
                RedirectOp::Read => {
                    let file = self.text(&redirect.target);
                    redirected.input = Some(self.content_of(&file, &ByteFlow::default()));
                    redirected.reads.push(file);
                }
                RedirectOp::Write | RedirectOp::Append => {
                    redirected.writes.push(self.text(&redirect.target));
                }
                RedirectOp::ReadWrite => {
                    let file = self.text(&redirect.target);
                    redirected.reads.push(file.clone());
                    redirected.writes.push(file);
                }
                RedirectOp::Duplicate => {
                    let target = self.text(&redirect.target);
                    let descriptor = target.s.trim_end_matches('-');
                    if !descriptor.chars().all(|c| c.is_ascii_digit()) {
                        redirected.writes.push(target);
                    }
                }
            }
        }
        redirected
    }
}

fn flow_of(text: &ExpandedText) -> ByteFlow {
    if !text.is_unbounded() {
        ByteFlow {
            known: Some(text.s.clone()),
            taint: text.taint,
            present: true,
            ..ByteFlow::default()
        }
    } else {
        ByteFlow::unknown(text.taint)
    }
}
