//! `$name` and `${name…}` in all their forms.

use super::{ParamOp, ShellParameter, ShellParser, ShellWord, SyntaxDoubt, WordPart};
use crate::syntax::word::flush;

impl ShellParser<'_> {
    pub(super) fn short_param(&mut self) -> Option<ShellParameter> {
        let name = self.name();
        if !name.is_empty() {
            return Some(plain(name));
        }
        let c = self.peek()?;
        if c.is_ascii_digit() || "@*#?$!-".contains(c) {
            self.bump();
            return Some(plain(c.to_string()));
        }
        None
    }

    pub(super) fn braced_param(&mut self) -> Result<ShellParameter, SyntaxDoubt> {
        self.take("{");
        let length =
            self.looks_at("#") && !self.looks_at("#}") && !self.looks_at("#:") && self.take("#");
        let indirect = !length && self.looks_at("!") && !self.looks_at("!}") && self.take("!");
        let mut name = self.name();
        if name.is_empty() {
            name = self.digits();
        }
        if name.is_empty() {
            match self.peek() {
                Some(c) if "@*#?$!-".contains(c) => {
                    self.bump();
                    name.push(c);
                }
                _ => return Err(self.doubt("an expansion without a name")),
            }
        }
        let mut index = None;
        if self.take("[") {
            let from = self.at;
            while let Some(c) = self.peek() {
                if c == ']' {
                    break;
                }
                self.bump();
            }
            index = Some(self.text[from..self.at].to_owned());
            self.expect("]")?;
        }
        let mut inside = Vec::new();
        inside.extend(self.expansions_in(index.as_deref().unwrap_or_default())?);
        let op = self.param_op()?;
        if let ParamOp::Slice { from, length } = &op {
            inside.extend(self.expansions_in(from)?);
            inside.extend(self.expansions_in(length.as_deref().unwrap_or_default())?);
        }
        self.expect("}")?;
        Ok(ShellParameter {
            name,
            index,
            length,
            indirect,
            inside,
            op,
        })
    }

    fn param_op(&mut self) -> Result<ParamOp, SyntaxDoubt> {
        if self.looks_at("}") {
            return Ok(ParamOp::None);
        }
        for (token, make) in [
            (":-", ParamOp::Default as fn(ShellWord) -> ParamOp),
            (":=", ParamOp::Default),
            ("-", ParamOp::Default),
            ("=", ParamOp::Default),
            (":+", ParamOp::Alternative),
            ("+", ParamOp::Alternative),
            (":?", |_| ParamOp::Error),
            ("?", |_| ParamOp::Error),
            ("##", |word| ParamOp::TrimStart(word, true)),
            ("#", |word| ParamOp::TrimStart(word, false)),
            ("%%", |word| ParamOp::TrimEnd(word, true)),
            ("%", |word| ParamOp::TrimEnd(word, false)),
        ] {
            if self.take(token) {
                return Ok(make(self.operand("}")?));
            }
        }
        if self.take("//") {
            return self.replacement(true);
        }
        if self.take("/") {
            return self.replacement(false);
        }
        if self.take("^^") || self.take("^") || self.take(",,") || self.take(",") {
            let token = &self.text[..self.at];
            let upper = token.ends_with('^');
            let all = token.ends_with("^^") || token.ends_with(",,");
            self.operand("}")?;
            return Ok(ParamOp::Case { upper, all });
        }
        if self.take(":") {
            let from = self.raw_until(&[':', '}']);
            let length = self.take(":").then(|| self.raw_until(&['}']));
            return Ok(ParamOp::Slice { from, length });
        }
        self.operand("}")?;
        Ok(ParamOp::Other)
    }

    fn replacement(&mut self, all: bool) -> Result<ParamOp, SyntaxDoubt> {
        let pattern = self.operand("/}")?;
        let with = if self.take("/") {
            self.operand("}")?
        } else {
            ShellWord::default()
        };
        Ok(ParamOp::Replace { pattern, with, all })
    }

    /// Raw text that the shell expands before it takes it as a number.
    pub(super) fn expansions_in(&self, text: &str) -> Result<Option<ShellWord>, SyntaxDoubt> {
        if text.contains(['$', '`']) {
            super::parse_expanding(text, self.depth + 1).map(Some)
        } else {
            Ok(None)
        }
    }

    fn raw_until(&mut self, ends: &[char]) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            if ends.contains(&c) {
                break;
            }
            text.push(c);
            self.bump();
        }
        text
    }

    /// A word that may hold blanks, up to one of `ends`, which is not taken.
    fn operand(&mut self, ends: &str) -> Result<ShellWord, SyntaxDoubt> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        while let Some(c) = self.peek() {
            if ends.contains(c) {
                break;
            }
            match c {
                '\'' | '"' | '`' | '$' | '\\' => {
                    flush(&mut plain, &mut parts);
                    parts.append(&mut self.quoted_piece()?);
                }
                _ => {
                    plain.push(c);
                    self.bump();
                }
            }
        }
        flush(&mut plain, &mut parts);
        Ok(ShellWord(parts))
    }

    /// One quoted or expanding piece, by reading a word that stops after it.
    fn quoted_piece(&mut self) -> Result<Vec<WordPart>, SyntaxDoubt> {
        self.nested(|parser| parser.piece())
    }
}

fn plain(name: String) -> ShellParameter {
    ShellParameter {
        name,
        index: None,
        length: false,
        indirect: false,
        inside: Vec::new(),
        op: ParamOp::None,
    }
}
