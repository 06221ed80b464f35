//! Brace expansion: `{rm,-rf,/}` is three words.

use crate::syntax::{ShellWord, WordPart};

/// More words than this from one are not worth following.
const MOST_BRACE_WORDS: usize = 256;

/// Nor is a longer word than this: looking for closing braces is quadratic.
const LONGEST_BRACE_WORD: usize = 1_024;

/// Numbers in a range that is still written down one by one.
const LONGEST_RANGE: i64 = 1_000;

#[derive(Clone)]
enum BraceToken {
    Char(char),
    Part(WordPart),
}

/// `None` if there are more braces than are worth following.
pub(super) fn expand(word: &ShellWord) -> Option<Vec<ShellWord>> {
    let live = |mark: char| {
        word.0
            .iter()
            .any(|part| matches!(part, WordPart::Plain(text) if text.contains(mark)))
    };
    if !live('{') || !live('}') {
        return Some(vec![word.clone()]);
    }
    let mut bits = Vec::new();
    for part in &word.0 {
        match part {
            WordPart::Plain(text) => bits.extend(text.chars().map(BraceToken::Char)),
            other => bits.push(BraceToken::Part(other.clone())),
        }
    }
    if bits.len() > LONGEST_BRACE_WORD {
        return None;
    }
    let mut budget = MOST_BRACE_WORDS;
    let words = expand_bits(&bits, &mut budget, 0);
    (budget > 0).then(|| words.into_iter().map(|bits| join(&bits)).collect())
}

fn expand_bits(bits: &[BraceToken], budget: &mut usize, depth: usize) -> Vec<Vec<BraceToken>> {
    if depth > 8 || *budget == 0 {
        return vec![bits.to_vec()];
    }
    for open in 0..bits.len() {
        if !is(&bits[open], '{') {
            continue;
        }
        let Some((close, commas)) = closing(bits, open) else {
            continue;
        };
        let inner = &bits[open + 1..close];
        let choices: Vec<Vec<BraceToken>> = if commas.is_empty() {
            match range(inner) {
                Some(choices) => choices,
                None => continue,
            }
        } else {
            split(bits, open, close, &commas)
        };
        let mut words = Vec::new();
        for choice in choices {
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            let mut whole = bits[..open].to_vec();
            whole.extend(choice);
            whole.extend_from_slice(&bits[close + 1..]);
            words.extend(expand_bits(&whole, budget, depth + 1));
        }
        return words;
    }
    vec![bits.to_vec()]
}

fn closing(bits: &[BraceToken], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    for (at, bit) in bits.iter().enumerate().skip(open) {
        if is(bit, '{') {
            depth += 1;
        } else if is(bit, '}') {
            depth -= 1;
            if depth == 0 {
                return Some((at, commas));
            }
        } else if is(bit, ',') && depth == 1 {
            commas.push(at);
        }
    }
    None
}

fn split(bits: &[BraceToken], open: usize, close: usize, commas: &[usize]) -> Vec<Vec<BraceToken>> {
    let mut choices = Vec::new();
    let mut from = open + 1;
    for &end in commas.iter().chain([&close]) {
        choices.push(bits[from..end].to_vec());
        from = end + 1;
    }
    choices
}

/// `{1..3}` and `{a..c}`.
fn range(inner: &[BraceToken]) -> Option<Vec<Vec<BraceToken>>> {
    let text: String = inner
        .iter()
        .map(|bit| match bit {
            BraceToken::Char(c) => Some(*c),
            BraceToken::Part(_) => None,
        })
        .collect::<Option<_>>()?;
    let (from, to) = text.split_once("..")?;
    let to = to.split("..").next()?;
    let words: Vec<String> = if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        // So many are the number of everything, and are looked at as they are written.
        if high.saturating_sub(low) >= LONGEST_RANGE {
            return None;
        }
        (low..=high.min(low.saturating_add(31)))
            .map(|n| n.to_string())
            .collect()
    } else {
        let (from, to) = (single(from)?, single(to)?);
        (from.min(to)..=from.max(to))
            .map(String::from)
            .take(64)
            .collect()
    };
    Some(
        words
            .into_iter()
            .map(|word| word.chars().map(BraceToken::Char).collect())
            .collect(),
    )
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let c = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().is_none().then_some(c)
}

fn is(bit: &BraceToken, c: char) -> bool {
    matches!(bit, BraceToken::Char(found) if *found == c)
}

fn join(bits: &[BraceToken]) -> ShellWord {
    let mut parts = Vec::new();
    let mut plain = String::new();
    for bit in bits {
        match bit {
            BraceToken::Char(c) => plain.push(*c),
            BraceToken::Part(part) => {
                if !plain.is_empty() {
                    parts.push(WordPart::Plain(std::mem::take(&mut plain)));
                }
                parts.push(part.clone());
            }
        }
    }
    if !plain.is_empty() {
        parts.push(WordPart::Plain(plain));
    }
    ShellWord(parts)
}
