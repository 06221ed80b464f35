//! What a command's redirections read, write and feed it with.

use super::Walker;
use super::loops::reads_lines;
use crate::effective::Effective;
use crate::paths;
use crate::syntax::{Kind, Redirect, RedirectOp};
use crate::text::{Flow, Taint, Text};

/// What a command's redirections do.
#[derive(Default)]
pub(super) struct Redirected {
    pub(super) input: Option<Flow>,
    pub(super) writes: Vec<Text>,
    pub(super) reads: Vec<Text>,
}

impl Redirected {
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

impl Walker<'_> {
    /// A loop that is fed from a file nobody can name may print it. Where lines are read into a
    /// variable, its use tells whether a secret is printed.
    pub(super) fn compound_reads(&mut self, kind: &Kind, redirected: &Redirected) {
        let by_line = matches!(kind, Kind::Loop { condition, .. } if reads_lines(condition));
        let secret = |file: &Text| paths::secret(&file.s, self.workdir(), self.context).is_some();
        let printed = |file: &Text| file.is_unbounded() || !by_line && secret(file);
        if redirected.reads.iter().any(printed) {
            self.judge(Effective {
                words: vec![Text::known("cat")],
                reads: redirected.reads.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
        }
    }

    /// What reading a file would deliver.
    pub(super) fn content_of(&self, file: &Text, stdin: &Flow) -> Flow {
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
        if file.s.starts_with("/dev/tcp/") || file.s.starts_with("/dev/udp/") {
            return Flow::unknown(Taint::NETWORK);
        }
        if let Some(content) = self.file(&file.s) {
            return content.clone();
        }
        let secret = paths::secret(&file.s, self.workdir(), self.context).is_some();
        let taint = if secret {
            Taint::FILE | Taint::SECRET
        } else {
            Taint::FILE
        };
        Flow::unknown(taint | file.taint)
    }

    /// The files and the input that a compound command may have, whatever its variables are.
    pub(super) fn redirects_in_all_readings(&mut self, redirects: &[Redirect]) -> Redirected {
        let mut all: Option<Redirected> = None;
        self.in_all_readings(|walker| {
            let redirected = walker.redirects(redirects);
            match &mut all {
                Some(all) => all.or(redirected),
                None => all = Some(redirected),
            }
        });
        all.unwrap_or_default()
    }

    pub(super) fn redirects(&mut self, redirects: &[Redirect]) -> Redirected {
        let mut redirected = Redirected::default();
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
                    redirected.input = Some(self.content_of(&file, &Flow::default()));
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

fn flow_of(text: &Text) -> Flow {
    if !text.is_unbounded() {
        Flow {
            known: Some(text.s.clone()),
            taint: text.taint,
            present: true,
            ..Flow::default()
        }
    } else {
        Flow::unknown(text.taint)
    }
}
