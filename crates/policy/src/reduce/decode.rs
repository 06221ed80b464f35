//! Decoders, actually run when their input is known.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(crate) fn base64(text: &str) -> Option<String> {
    let clean: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    let bytes = LENIENT.decode(clean).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn base32(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let value = match c.to_ascii_uppercase() {
            c @ 'A'..='Z' => u32::from(c) - u32::from('A'),
            c @ '2'..='7' => u32::from(c) - u32::from('2') + 26,
            _ => return None,
        };
        bits = (bits << 5 | value) & 0xffff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .replace("\\x", "")
        .replace("0x", "")
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .filter_map(|pair| u8::try_from(pair[0] * 16 + pair.get(1)?).ok())
        .collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn rev(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        out.extend(line.chars().rev());
        out.push('\n');
    }
    out
}

/// `tr`, with ranges and classes that matter for disguises.
pub(super) fn tr(text: &str, from: &str, to: Option<&str>, delete: bool) -> String {
    let from = set(from);
    if delete {
        return text.chars().filter(|c| !from.contains(c)).collect();
    }
    let to = set(to.unwrap_or_default());
    let Some(last) = to.last().copied() else {
        return text.to_owned();
    };
    text.chars()
        .map(|c| match from.iter().rposition(|f| *f == c) {
            Some(at) => to.get(at).copied().unwrap_or(last),
            None => c,
        })
        .collect()
}

fn set(text: &str) -> Vec<char> {
    let text = super::escapes::echo(text)
        .replace("[:lower:]", "a-z")
        .replace("[:upper:]", "A-Z")
        .replace("[:digit:]", "0-9")
        .replace("[:space:]", " \t\n")
        .replace("[:alpha:]", "a-zA-Z");
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if chars.get(at + 1) == Some(&'-') && at + 2 < chars.len() {
            out.extend((chars[at]..=chars[at + 2]).take(256));
            at += 3;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// `s/a/b/g` with plain text on both sides, at most anchored; other scripts are not followed.
pub(super) fn sed(text: &str, script: &str) -> Option<String> {
    let mut out = text.to_owned();
    for step in script.split(';') {
        let step = step.trim();
        let rest = step.strip_prefix('s')?;
        let mark = rest.chars().next()?;
        let fields: Vec<&str> = rest[mark.len_utf8()..].split(mark).collect();
        let [from, to, flags] = fields.as_slice() else {
            return None;
        };
        let bare = from.trim_start_matches('^').trim_end_matches('$');
        if bare.is_empty()
            || bare.contains(['\\', '[', '*', '.', '^', '$'])
            || to.contains(['\\', '&'])
        {
            return None;
        }
        out = if from.starts_with('^') || from.ends_with('$') {
            anchored(&out, from, to)
        } else if flags.contains('g') {
            out.replace(from, to)
        } else {
            out.replacen(from, to, 1)
        };
    }
    Some(out)
}

fn anchored(text: &str, from: &str, to: &str) -> String {
    let bare = from.trim_start_matches('^').trim_end_matches('$');
    let replaced = |line: &str| {
        let rest = if from.starts_with('^') {
            line.strip_prefix(bare).map(|rest| format!("{to}{rest}"))
        } else {
            line.strip_suffix(bare).map(|rest| format!("{rest}{to}"))
        };
        rest.unwrap_or_else(|| line.to_owned())
    };
    let lines: Vec<String> = text.split('\n').map(replaced).collect();
    lines.join("\n")
}
