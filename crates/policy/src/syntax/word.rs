//! Words: quoting and everything that expands inside them.

use std::rc::Rc;

use super::{ShellParser, ShellWord, SyntaxDoubt, WordPart, parse_at_depth};

impl ShellParser<'_> {
    pub(super) fn word(&mut self) -> Result<ShellWord, SyntaxDoubt> {
        self.nested(|parser| parser.word_parts(false))
    }

    /// Inside `[[ … ]]` extended globs and regular expressions may hold parentheses and bars.
    pub(super) fn test_word(&mut self) -> Result<ShellWord, SyntaxDoubt> {
        self.nested(|parser| parser.word_parts(true))
    }

    fn word_parts(&mut self, in_test: bool) -> Result<ShellWord, SyntaxDoubt> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        while let Some(c) = self.peek() {
            if self.looks_at("<(") || self.looks_at(">(") {
                flush(&mut plain, &mut parts);
                let reads = self.bump() == Some('<');
                self.bump();
                let script = Rc::new(self.script(&[")"])?);
                self.expect(")")?;
                parts.push(WordPart::Process { script, reads });
                continue;
            }
            if c == '('
                && (in_test || plain.ends_with(['?', '*', '+', '@', '!']))
                && !plain.is_empty()
            {
                self.pattern_group(&mut plain)?;
                continue;
            }
            if self.at_word_end() {
                break;
            }
            match c {
                '\'' | '"' | '\\' | '`' | '$' => {
                    let mut piece = self.piece()?;
                    // A lone `$` is text.
                    if let [WordPart::Plain(text)] = piece.as_slice() {
                        plain.push_str(text);
                    } else {
                        flush(&mut plain, &mut parts);
                        parts.append(&mut piece);
                    }
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

    /// One piece that starts with a quote, a backslash, a backtick or a dollar.
    pub(super) fn piece(&mut self) -> Result<Vec<WordPart>, SyntaxDoubt> {
        let part = match self.peek() {
            Some('\'') => WordPart::Literal(self.single_quoted()?),
            Some('"') => {
                self.bump();
                WordPart::Double(self.expanding_text(Some('"'))?)
            }
            Some('`') => self.backticks(false)?,
            Some('$') => {
                let mut plain = String::new();
                let mut parts = Vec::new();
                self.dollar(&mut plain, &mut parts, false)?;
                flush(&mut plain, &mut parts);
                return Ok(parts);
            }
            _ => {
                self.bump();
                // A lone backslash at the end of the text stands for itself.
                WordPart::Literal(self.bump().unwrap_or('\\').to_string())
            }
        };
        Ok(vec![part])
    }

    /// `@(a|b)` and its kin, kept as text: a pattern runs nothing by itself.
    fn pattern_group(&mut self, plain: &mut String) -> Result<(), SyntaxDoubt> {
        let mut open = 0_usize;
        while let Some(c) = self.bump() {
            plain.push(c);
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                '`' | '$' | '\n' => return Err(self.doubt("an expansion inside a pattern")),
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
        }
        Err(self.doubt("a pattern that does not end"))
    }

    fn single_quoted(&mut self) -> Result<String, SyntaxDoubt> {
        self.bump();
        let rest = &self.text[self.at..];
        let Some(end) = rest.find('\'') else {
            return Err(self.doubt("a quote that does not end"));
        };
        self.at += end + 1;
        Ok(rest[..end].to_owned())
    }

    /// Double-quoted text up to `end`, or a heredoc's text up to its end.
    pub(super) fn expanding_text(
        &mut self,
        end: Option<char>,
    ) -> Result<Vec<WordPart>, SyntaxDoubt> {
        self.nested(|parser| {
            let mut parts = Vec::new();
            let mut literal = String::new();
            loop {
                let Some(c) = parser.peek() else {
                    if end.is_some() {
                        return Err(parser.doubt("a quote that does not end"));
                    }
                    break;
                };
                if Some(c) == end {
                    parser.bump();
                    break;
                }
                match c {
                    '\\' => {
                        parser.bump();
                        match parser.peek() {
                            Some(next @ ('$' | '`' | '"' | '\\')) => {
                                parser.bump();
                                literal.push(next);
                            }
                            _ => literal.push('\\'),
                        }
                    }
                    '`' => {
                        push_literal(&mut literal, &mut parts);
                        parts.push(parser.backticks(true)?);
                    }
                    '$' => {
                        let mut text = String::new();
                        let mut inner = Vec::new();
                        parser.dollar(&mut text, &mut inner, true)?;
                        literal.push_str(&text);
                        if !inner.is_empty() {
                            push_literal(&mut literal, &mut parts);
                            parts.append(&mut inner);
                        }
                    }
                    _ => {
                        literal.push(c);
                        parser.bump();
                    }
                }
            }
            push_literal(&mut literal, &mut parts);
            Ok(parts)
        })
    }

    fn dollar(
        &mut self,
        plain: &mut String,
        parts: &mut Vec<WordPart>,
        quoted: bool,
    ) -> Result<(), SyntaxDoubt> {
        self.bump();
        if self.take("((") {
            let start = self.at;
            if let Ok(text) = self.arithmetic_text() {
                flush(plain, parts);
                parts.push(WordPart::Arithmetic(ShellWord(text)));
                return Ok(());
            }
            // `$( (a) | b )` written without the blank.
            self.at = start - 1;
            return self.substitution(plain, parts);
        }
        if self.take("(") {
            return self.substitution(plain, parts);
        }
        if self.take("[") {
            // The old spelling of arithmetic.
            flush(plain, parts);
            let mut text = String::new();
            while let Some(c) = self.bump() {
                if c == ']' {
                    break;
                }
                text.push(c);
            }
            parts.push(WordPart::Arithmetic(super::parse_expanding(
                &text,
                self.depth + 1,
            )?));
            return Ok(());
        }
        if self.looks_at("{") {
            flush(plain, parts);
            let param = self.nested(|parser| parser.braced_param())?;
            parts.push(WordPart::Param(Box::new(param)));
            return Ok(());
        }
        if !quoted && self.looks_at("'") {
            flush(plain, parts);
            parts.push(WordPart::Literal(self.ansi_c_quoted()?));
            return Ok(());
        }
        if !quoted && self.take("\"") {
            flush(plain, parts);
            parts.push(WordPart::Double(self.expanding_text(Some('"'))?));
            return Ok(());
        }
        match self.short_param() {
            Some(param) => {
                flush(plain, parts);
                parts.push(WordPart::Param(Box::new(param)));
            }
            None => plain.push('$'),
        }
        Ok(())
    }

    fn substitution(
        &mut self,
        plain: &mut String,
        parts: &mut Vec<WordPart>,
    ) -> Result<(), SyntaxDoubt> {
        flush(plain, parts);
        let script = Rc::new(self.script(&[")"])?);
        self.expect(")")?;
        parts.push(WordPart::Command(script));
        Ok(())
    }

    fn backticks(&mut self, quoted: bool) -> Result<WordPart, SyntaxDoubt> {
        self.bump();
        let mut inner = String::new();
        loop {
            match self.bump() {
                None => return Err(self.doubt("a backtick that does not end")),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                    Some('"') if quoted => inner.push('"'),
                    Some(c) => {
                        inner.push('\\');
                        inner.push(c);
                    }
                    None => inner.push('\\'),
                },
                Some(c) => inner.push(c),
            }
        }
        let script = parse_at_depth(&inner, self.depth + 1)?;
        Ok(WordPart::Command(Rc::new(script)))
    }

    /// Text up to the `))` that closes it.
    pub(super) fn arithmetic_text(&mut self) -> Result<Vec<WordPart>, SyntaxDoubt> {
        if self.no_arithmetic {
            return Err(self.doubt("arithmetic that does not end"));
        }
        self.nested(|parser| {
            let mut parts = Vec::new();
            let mut plain = String::new();
            let mut open = 0_usize;
            loop {
                let Some(c) = parser.peek() else {
                    parser.no_arithmetic = true;
                    return Err(parser.doubt("arithmetic that does not end"));
                };
                match c {
                    ')' if open == 0 => {
                        if !parser.take("))") {
                            return Err(parser.doubt("arithmetic that does not end"));
                        }
                        flush(&mut plain, &mut parts);
                        return Ok(parts);
                    }
                    '(' => open += 1,
                    ')' => open -= 1,
                    '`' => {
                        flush(&mut plain, &mut parts);
                        parts.push(parser.backticks(true)?);
                        continue;
                    }
                    '$' => {
                        parser.dollar(&mut plain, &mut parts, true)?;
                        continue;
                    }
                    '"' => {
                        parser.bump();
                        parts.push(WordPart::Double(parser.expanding_text(Some('"'))?));
                        continue;
                    }
                    _ => {}
                }
                plain.push(c);
                parser.bump();
            }
        })
    }

    fn ansi_c_quoted(&mut self) -> Result<String, SyntaxDoubt> {
        self.take("'");
        let rest = &self.text[self.at..];
        let mut end = 0;
        let bytes = rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'\'' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return Err(self.doubt("a quote that does not end"));
        }
        self.at += end + 1;
        Ok(crate::reduce::escapes::ansi_c(&rest[..end]))
    }
}

pub(super) fn flush(plain: &mut String, parts: &mut Vec<WordPart>) {
    if !plain.is_empty() {
        parts.push(WordPart::Plain(std::mem::take(plain)));
    }
}

fn push_literal(literal: &mut String, parts: &mut Vec<WordPart>) {
    if !literal.is_empty() {
        parts.push(WordPart::Literal(std::mem::take(literal)));
    }
}
