//! MarkdownV2 as the documentation describes it, strictly: what is reserved must be escaped, what
//! is opened must be closed in order.

use std::fmt;

/// What Telegram says after "can't parse entities: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotParse(String);

impl fmt::Display for CannotParse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text a reader would see.
pub fn visible_text(source: &str) -> Result<String, CannotParse> {
    let mut parser = Parser {
        rest: source,
        line_start: true,
        open: Vec::new(),
        seen: String::new(),
    };
    while !parser.rest.is_empty() {
        parser.step()?;
    }
    match parser.open.pop() {
        Some(open) => Err(CannotParse(format!("can't find end of the entity {open}"))),
        None => Ok(parser.seen),
    }
}

struct Parser<'a> {
    rest: &'a str,
    line_start: bool,
    open: Vec<&'static str>,
    seen: String,
}

impl Parser<'_> {
    fn step(&mut self) -> Result<(), CannotParse> {
        if self.line_start && self.rest.starts_with('>') {
            self.skip(1);
            self.line_start = false;
            return Ok(());
        }
        if self.rest.starts_with("```") {
            return self.verbatim("```");
        }
        if self.rest.starts_with('`') {
            return self.verbatim("`");
        }
        if self.rest.starts_with("](") && self.open.last() == Some(&"[") {
            return self.end_link();
        }
        if self.rest.starts_with('[') && !self.open.contains(&"[") {
            self.open.push("[");
            self.skip(1);
            self.line_start = false;
            return Ok(());
        }
        let sign = ["||", "__", "*", "_", "~"]
            .into_iter()
            .find(|sign| self.rest.starts_with(sign));
        if let Some(sign) = sign {
            return self.toggle(sign);
        }
        self.character()
    }

    fn toggle(&mut self, sign: &'static str) -> Result<(), CannotParse> {
        self.skip(sign.len());
        self.line_start = false;
        if self.open.last() == Some(&sign) {
            self.open.pop();
        } else if self.open.contains(&sign) {
            return Err(CannotParse(format!("entity {sign} is closed out of order")));
        } else {
            self.open.push(sign);
        }
        Ok(())
    }

    fn verbatim(&mut self, sign: &str) -> Result<(), CannotParse> {
        if !self.open.is_empty() {
            return Err(CannotParse("code inside of another entity".to_owned()));
        }
        self.skip(sign.len());
        if sign == "```"
            && let Some(end) = self.rest.find('\n')
            && self.rest[..end]
                .chars()
                .all(|c| !c.is_whitespace() && c != '`')
        {
            self.skip(end + 1);
        }
        loop {
            if self.rest.starts_with(sign) {
                self.skip(sign.len());
                self.line_start = false;
                return Ok(());
            }
            let Some(c) = self.rest.chars().next() else {
                return Err(CannotParse(format!("can't find end of the entity {sign}")));
            };
            if c == '`' {
                return Err(CannotParse("a backtick must be escaped in code".to_owned()));
            }
            self.take(c);
        }
    }

    fn end_link(&mut self) -> Result<(), CannotParse> {
        self.open.pop();
        self.skip(2);
        loop {
            let Some(c) = self.rest.chars().next() else {
                return Err(CannotParse("can't find end of a URL".to_owned()));
            };
            let escaped = c == '\\' && self.rest[1..].starts_with([')', '\\']);
            self.skip(c.len_utf8() + usize::from(escaped));
            if c == ')' {
                return Ok(());
            }
        }
    }

    fn character(&mut self) -> Result<(), CannotParse> {
        let Some(c) = self.rest.chars().next() else {
            return Ok(());
        };
        if "_*[]()~`>#+-=|{}.!".contains(c) {
            return Err(CannotParse(format!(
                "character '{c}' is reserved and must be escaped with the preceding '\\'"
            )));
        }
        self.take(c);
        Ok(())
    }

    /// A character, or the one a backslash escapes.
    fn take(&mut self, c: char) {
        let escaped = self.rest[c.len_utf8()..]
            .chars()
            .next()
            .filter(|next| c == '\\' && next.is_ascii() && !next.is_ascii_control());
        let shown = escaped.unwrap_or(c);
        self.skip(c.len_utf8() + escaped.map_or(0, char::len_utf8));
        self.seen.push(shown);
        self.line_start = shown == '\n';
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}

#[cfg(test)]
mod tests {
    use super::visible_text;

    #[test]
    fn what_telegram_shows() {
        for (source, seen) in [
            ("plain", "plain"),
            ("*bold* _it_ ~no~ ||psst||", "bold it no psst"),
            ("a\\.b\\!", "a.b!"),
            ("`x \\` y`", "x ` y"),
            ("```rust\nfn main() {}\n```", "fn main() {}\n"),
            ("[label](https://a.b/\\)c)", "label"),
            (">quoted\n>more", "quoted\nmore"),
            ("\\\\", "\\"),
        ] {
            assert_eq!(visible_text(source).as_deref(), Ok(seen), "{source}");
        }
    }

    #[test]
    fn what_telegram_refuses() {
        for source in [
            "a.b",
            "*open",
            "`open",
            "```\nopen",
            "*a _b* c_",
            "[x](y",
            "a > b",
            "-",
            "(",
            "*`x`*",
        ] {
            assert!(visible_text(source).is_err(), "{source} was accepted");
        }
    }
}
