//! Shell patterns: `*`, `?` and `[…]`.

/// Whether a pattern matches the whole text. Linear in their product, no recursion.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern = compile(pattern);
    let text: Vec<char> = text.chars().collect();
    matches_compiled(&pattern, &text)
}

enum GlobToken {
    Any,
    One,
    Char(char),
    Set(Vec<(char, char)>, bool),
}

fn matches_compiled(pattern: &[GlobToken], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(GlobToken::Any) => {
                retry = Some((p, t));
                p += 1;
                continue;
            }
            Some(token) if fits(token, text[t]) => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((star, from)) = retry else {
            return false;
        };
        retry = Some((star, from + 1));
        p = star + 1;
        t = from + 1;
    }
    pattern[p..]
        .iter()
        .all(|token| matches!(token, GlobToken::Any))
}

fn fits(token: &GlobToken, c: char) -> bool {
    match token {
        GlobToken::Any => true,
        GlobToken::One => true,
        GlobToken::Char(expected) => *expected == c,
        GlobToken::Set(ranges, negated) => {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
        }
    }
}

fn compile(pattern: &str) -> Vec<GlobToken> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '*' => tokens.push(GlobToken::Any),
            '?' => tokens.push(GlobToken::One),
            '[' => match set(&chars, at) {
                Some((token, end)) => {
                    tokens.push(token);
                    at = end;
                }
                None => tokens.push(GlobToken::Char('[')),
            },
            c => tokens.push(GlobToken::Char(c)),
        }
        at += 1;
    }
    tokens
}

fn set(chars: &[char], open: usize) -> Option<(GlobToken, usize)> {
    let mut at = open + 1;
    let negated = matches!(chars.get(at), Some('!' | '^'));
    if negated {
        at += 1;
    }
    let mut ranges = Vec::new();
    let first = at;
    loop {
        let c = *chars.get(at)?;
        if c == ']' && at > first {
            return Some((GlobToken::Set(ranges, negated), at));
        }
        if chars.get(at + 1) == Some(&'-') && chars.get(at + 2).is_some_and(|end| *end != ']') {
            ranges.push((c, chars[at + 2]));
            at += 3;
        } else {
            ranges.push((c, c));
            at += 1;
        }
    }
}

/// `${x/pattern/with}`. Patterns here are short; long texts are left alone.
pub(super) fn replace(text: &str, pattern: &str, with: &str, all: bool) -> String {
    if !pattern.contains(['*', '?', '[']) {
        if pattern.is_empty() {
            return text.to_owned();
        }
        return if all {
            text.replace(pattern, with)
        } else {
            text.replacen(pattern, with, 1)
        };
    }
    let chars: Vec<char> = text.chars().take(256).collect();
    let tokens = compile(pattern);
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let end = (at + 1..=chars.len())
            .rev()
            .find(|&end| matches_compiled(&tokens, &chars[at..end]));
        match end {
            Some(end) => {
                out.push_str(with);
                at = end;
                if !all {
                    break;
                }
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out.extend(&chars[at.min(chars.len())..]);
    out
}

pub(super) fn trim_start(text: &str, pattern: &str, longest: bool) -> String {
    let cuts: Vec<usize> = boundaries(text);
    let tokens = compile(pattern);
    let fits = |cut: &&usize| matches_compiled(&tokens, &chars(&text[..**cut]));
    let cut = if longest {
        cuts.iter().rev().find(fits)
    } else {
        cuts.iter().find(fits)
    };
    text[cut.copied().unwrap_or(0)..].to_owned()
}

pub(super) fn trim_end(text: &str, pattern: &str, longest: bool) -> String {
    let cuts: Vec<usize> = boundaries(text);
    let tokens = compile(pattern);
    let fits = |cut: &&usize| matches_compiled(&tokens, &chars(&text[**cut..]));
    let cut = if longest {
        cuts.iter().find(fits)
    } else {
        cuts.iter().rev().find(fits)
    };
    text[..cut.copied().unwrap_or(text.len())].to_owned()
}

fn boundaries(text: &str) -> Vec<usize> {
    if text.len() > 512 {
        return Vec::new();
    }
    text.char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect()
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}
