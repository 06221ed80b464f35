//! Here-documents: the operator comes first, the body after the next newline.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{
    RedirectOp, ShellParser, ShellRedirect, ShellWord, SyntaxDoubt, WordPart, parse_expanding,
};

pub(super) struct PendingHeredoc {
    delimiter: String,
    expands: bool,
    strips_tabs: bool,
    body: Rc<OnceCell<ShellWord>>,
}

impl ShellParser<'_> {
    pub(super) fn heredoc(
        &mut self,
        fd: Option<u32>,
        strips_tabs: bool,
    ) -> Result<ShellRedirect, SyntaxDoubt> {
        self.skip_blanks();
        let target = self.word()?;
        let mut delimiter = String::new();
        let mut expands = true;
        for part in &target.0 {
            match part {
                WordPart::Plain(text) => delimiter.push_str(text),
                WordPart::Literal(text) => {
                    expands = false;
                    delimiter.push_str(text);
                }
                WordPart::Double(parts) => {
                    expands = false;
                    for part in parts {
                        match part {
                            WordPart::Literal(text) | WordPart::Plain(text) => {
                                delimiter.push_str(text);
                            }
                            _ => return Err(self.doubt("a here-document with a computed end")),
                        }
                    }
                }
                _ => return Err(self.doubt("a here-document with a computed end")),
            }
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push(PendingHeredoc {
            delimiter,
            expands,
            strips_tabs,
            body: Rc::clone(&body),
        });
        Ok(ShellRedirect {
            fd,
            op: RedirectOp::HereDoc,
            target,
            heredoc: Some(body),
        })
    }

    /// Called right after a newline.
    pub(super) fn read_heredocs(&mut self) -> Result<(), SyntaxDoubt> {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.heredoc_text(&pending);
            let body = if pending.expands {
                parse_expanding(&text, self.depth + 1)?
            } else {
                ShellWord(vec![WordPart::Literal(text)])
            };
            let _ = pending.body.set(body);
        }
        Ok(())
    }

    fn heredoc_text(&mut self, pending: &PendingHeredoc) -> String {
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
