//! A rough reader of other languages: names, strings and punctuation, with strings joined where
//! the code joins constants.

mod constants;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CodeToken {
    Name(String),
    Text(String),
    /// Backquoted: a command in Ruby, Perl and PHP, a template in JavaScript.
    Backquoted(String),
    Mark(char),
}

const MOST_TOKENS: usize = 4_000;
/// A quote that does not end by then is none; looking on would be quadratic.
const LONGEST_QUOTE: usize = 512;

pub(super) fn tokens(code: &str) -> Vec<CodeToken> {
    let chars: Vec<char> = code.chars().take(64 * 1024).collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() && tokens.len() < MOST_TOKENS {
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
        } else if c == '#' && (at == 0 || chars[at - 1] == '\n') {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '\'' || c == '"' || c == '`' {
            let triple = chars[at..].starts_with(&[c, c, c]);
            let open = if triple { 3 } else { 1 };
            let (text, next) = string(&chars, at + open, c, triple);
            tokens.push(if c == '`' {
                CodeToken::Backquoted(text)
            } else {
                CodeToken::Text(text)
            });
            at = next;
        } else if c == '_' || c.is_alphanumeric() {
            let from = at;
            while at < chars.len() && (chars[at] == '_' || chars[at].is_alphanumeric()) {
                at += 1;
            }
            let name: String = chars[from..at].iter().collect();
            if let Some((text, next)) = perl_quote(&name, &chars, at) {
                at = next;
                tokens.push(if name == "qx" {
                    CodeToken::Backquoted(text)
                } else {
                    CodeToken::Text(text)
                });
            } else {
                tokens.push(CodeToken::Name(name));
            }
        } else if c == '%' && matches!(chars.get(at + 1), Some('x' | 'q' | 'Q')) {
            match perl_quote("q", &chars, at + 2) {
                Some((text, next)) => {
                    tokens.push(if chars[at + 1] == 'x' {
                        CodeToken::Backquoted(text)
                    } else {
                        CodeToken::Text(text)
                    });
                    at = next;
                }
                None => {
                    tokens.push(CodeToken::Mark(c));
                    at += 1;
                }
            }
        } else {
            tokens.push(CodeToken::Mark(c));
            at += 1;
        }
    }
    fold(&constants::filled_in(fold(&tokens)))
}

/// `q(…)`, `qq{…}`, `qw/…/`, `qx(…)`.
fn perl_quote(name: &str, chars: &[char], at: usize) -> Option<(String, usize)> {
    if !matches!(name, "q" | "qq" | "qw" | "qx") {
        return None;
    }
    let open = *chars.get(at)?;
    let close = match open {
        '(' => ')',
        '{' => '}',
        '[' => ']',
        '/' | '|' | '!' | '~' => open,
        _ => return None,
    };
    let mut near = chars[at + 1..].iter().take(LONGEST_QUOTE);
    let end = near.position(|c| *c == close)?;
    Some((chars[at + 1..at + 1 + end].iter().collect(), at + end + 2))
}

fn string(chars: &[char], from: usize, quote: char, triple: bool) -> (String, usize) {
    let mut raw = String::new();
    let mut at = from;
    while at < chars.len() {
        if chars[at] == '\\' && at + 1 < chars.len() {
            raw.push('\\');
            raw.push(chars[at + 1]);
            at += 2;
            continue;
        }
        let closes = if triple {
            chars[at..].starts_with(&[quote, quote, quote])
        } else {
            chars[at] == quote
        };
        if closes {
            return (
                super::escapes::ansi_c(&raw),
                at + if triple { 3 } else { 1 },
            );
        }
        raw.push(chars[at]);
        at += 1;
    }
    (super::escapes::ansi_c(&raw), at)
}

/// Joins `'a' + 'b'`, `'a' . 'b'`, `'a' 'b'` and `chr(114)`; undoes `b64decode('…')` and friends.
fn fold(tokens: &[CodeToken]) -> Vec<CodeToken> {
    let tokens = fold_calls(tokens);
    let mut out: Vec<CodeToken> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let CodeToken::Text(next) = &tokens[at] {
            let joins = match out.as_slice() {
                [.., CodeToken::Text(_)] => 1,
                [.., CodeToken::Text(_), CodeToken::Mark('+' | '.')] => 2,
                _ => 0,
            };
            if joins > 0 {
                if joins == 2 {
                    out.pop();
                }
                if let Some(CodeToken::Text(text)) = out.last_mut() {
                    text.push_str(next);
                    at += 1;
                    continue;
                }
            }
        }
        out.push(tokens[at].clone());
        at += 1;
    }
    out
}

fn fold_calls(tokens: &[CodeToken]) -> Vec<CodeToken> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let folded = match &tokens[at..] {
            [
                CodeToken::Name(name),
                CodeToken::Mark('('),
                CodeToken::Name(number),
                CodeToken::Mark(')'),
                ..,
            ] if matches!(name.as_str(), "chr" | "fromCharCode" | "char") => number
                .parse::<u32>()
                .ok()
                .and_then(char::from_u32)
                .map(|c| (c.to_string(), 4)),
            [
                CodeToken::Name(name),
                CodeToken::Mark('('),
                CodeToken::Text(text),
                CodeToken::Mark(')'),
                ..,
            ] => decoded(name, text).map(|text| (text, 4)),
            [CodeToken::Name(name), CodeToken::Text(text), ..]
                if matches!(name.as_str(), "b" | "r" | "u" | "f") =>
            {
                Some((text.clone(), 2))
            }
            // `pack("H*", "…")`
            [
                CodeToken::Name(name),
                CodeToken::Mark('('),
                CodeToken::Text(format),
                CodeToken::Mark(','),
                CodeToken::Text(text),
                CodeToken::Mark(')'),
                ..,
            ] if name == "pack" && format.starts_with(['H', 'h']) => {
                super::decode::hex(text).map(|text| (text, 6))
            }
            // `Buffer.from('…', 'base64')`
            [
                CodeToken::Name(name),
                CodeToken::Mark('('),
                CodeToken::Text(text),
                CodeToken::Mark(','),
                CodeToken::Text(kind),
                CodeToken::Mark(')'),
                ..,
            ] if name == "from" => match kind.as_str() {
                "base64" => super::decode::base64(text).map(|text| (text, 6)),
                "hex" => super::decode::hex(text).map(|text| (text, 6)),
                _ => None,
            },
            // `String.fromCharCode(114, 109)`
            [CodeToken::Name(name), CodeToken::Mark('('), numbers @ ..]
                if name == "fromCharCode" =>
            {
                characters(numbers).map(|(text, taken)| (text, taken + 2))
            }
            // `b64decode(b'…')`
            [
                CodeToken::Name(name),
                CodeToken::Mark('('),
                CodeToken::Name(b),
                CodeToken::Text(text),
                CodeToken::Mark(')'),
                ..,
            ] if b == "b" => decoded(name, text).map(|text| (text, 5)),
            [
                CodeToken::Text(text),
                CodeToken::Mark('['),
                CodeToken::Mark(':'),
                CodeToken::Mark(':'),
                CodeToken::Mark('-'),
                CodeToken::Name(one),
                CodeToken::Mark(']'),
                ..,
            ] if one == "1" => Some((text.chars().rev().collect(), 7)),
            [
                CodeToken::Text(text),
                CodeToken::Mark('.'),
                CodeToken::Name(name),
                ..,
            ] if name == "reverse" => Some((text.chars().rev().collect(), 3)),
            _ => None,
        };
        match folded {
            Some((text, taken)) => {
                // `base64.b64decode('…')` is its text, without the module it came from.
                if matches!(tokens[at], CodeToken::Name(_)) {
                    drop_owner(&mut out);
                }
                out.push(CodeToken::Text(text));
                at += taken;
            }
            None => {
                out.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    out
}

/// Numbers up to the closing bracket, as the text they spell.
fn characters(tokens: &[CodeToken]) -> Option<(String, usize)> {
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            CodeToken::Name(number) => text.push(char::from_u32(number.parse().ok()?)?),
            CodeToken::Mark(',') => {}
            CodeToken::Mark(')') => return Some((text, at + 1)),
            _ => return None,
        }
    }
    None
}

fn drop_owner(out: &mut Vec<CodeToken>) {
    while let [.., CodeToken::Name(_), CodeToken::Mark('.')] = out.as_slice() {
        out.truncate(out.len() - 2);
    }
}

fn decoded(name: &str, text: &str) -> Option<String> {
    match name {
        "b64decode" | "atob" | "base64_decode" | "decode64" | "urlsafe_b64decode"
        | "decode_base64" | "standard_b64decode" | "decodestring" | "decodebytes" => {
            super::decode::base64(text)
        }
        "fromhex" | "unhexlify" | "hex2bin" => super::decode::hex(text),
        "b32decode" => super::decode::base32(text),
        "strrev" | "reversed" => Some(text.chars().rev().collect()),
        _ => None,
    }
}
