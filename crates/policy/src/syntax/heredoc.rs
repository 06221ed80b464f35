//! Here-documents: the operator comes first, the body after the next newline.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{Doubt, Parser, Part, Redirect, RedirectOp, Word, parse_expanding};

pub(super) struct Pending {
    delimiter: String,
    expands: bool,
    strips_tabs: bool,
    body: Rc<OnceCell<Word>>,
}

impl Parser<'_> {
    pub(super) fn heredoc(
        &mut self,
        fd: Option<u32>,
        strips_tabs: bool,
    ) -> Result<Redirect, Doubt> {
        self.skip_blanks();
        let target = self.word()?;
        let mut delimiter = String::new();
        let mut expands = true;
        for part in &target.0 {
            match part {
                Part::Plain(text) => delimiter.push_str(text),
                Part::Literal(text) => {
                    expands = false;
                    delimiter.push_str(text);
                }
                Part::Double(parts) => {
                    expands = false;
                    for part in parts {
                        match part {
                            Part::Literal(text) | Part::Plain(text) => delimiter.push_str(text),
                            _ => return Err(self.doubt("a here-document with a computed end")),
                        }
                    }
                }
                _ => return Err(self.doubt("a here-document with a computed end")),
            }
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending {
            delimiter,
            expands,
            strips_tabs,
            body: Rc::clone(&body),
        });
        Ok(Redirect {
            fd,
            op: RedirectOp::HereDoc,
            target,
            heredoc: Some(body),
        })
    }

    /// Called right after a newline.
    pub(super) fn read_heredocs(&mut self) -> Result<(), Doubt> {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.heredoc_text(&pending);
            let body = if pending.expands {
                parse_expanding(&text, self.depth + 1)?
            } else {
                Word(vec![Part::Literal(text)])
            };
            let _ = pending.body.set(body);
        }
        Ok(())
    }

    fn heredoc_text(&mut self, pending: &Pending) -> String {
        let mut text = String::new();
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let line = &rest[..end];
            self.at += end;
            let shown = if pending.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if shown.trim_end_matches(['\n', '\r']) == pending.delimiter {
                break;
            }
            text.push_str(shown);
        }
        text
    }
}
