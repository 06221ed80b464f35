//! From lines of a file to lines that may be shown.

use hermetic_redact::Redactor;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines without secrets, each still under its own number.
///
/// They are redacted as one text, because a private key is many lines, and numbered afterwards. Where
/// several lines became one, the numbers in between are missing.
pub(super) fn redacted_lines(
    lines: &[(usize, String)],
    redactor: &Redactor,
) -> Vec<(usize, String)> {
    let texts: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    let clean = redactor.redact(texts.join("\n")).into_inner();
    let clean: Vec<&str> = clean.split('\n').collect();
    let numbered = |number: usize, text: &&str| (number, (*text).to_owned());
    if clean.len() == lines.len() {
        let numbers = lines.iter().map(|(number, _)| *number);
        return numbers
            .zip(&clean)
            .map(|(n, text)| numbered(n, text))
            .collect();
    }
    let mut shown = Vec::new();
    for step in capture_diff_slices(Algorithm::Myers, &texts, &clean) {
        match step {
            DiffOp::Delete { .. } => {}
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => {
                for at in 0..len {
                    shown.push(numbered(lines[old_index + at].0, &clean[new_index + at]));
                }
            }
            DiffOp::Insert {
                old_index,
                new_index,
                new_len,
            }
            | DiffOp::Replace {
                old_index,
                new_index,
                new_len,
                ..
            } => {
                for at in 0..new_len {
                    let number = lines.get(old_index + at).or(lines.last());
                    let number = number.map_or(0, |(number, _)| *number);
                    shown.push(numbered(number, &clean[new_index + at]));
                }
            }
        }
    }
    shown
}

/// How many characters a text takes in JSON.
pub(super) fn cost(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            '\u{0}'..='\u{1f}' => 6,
            _ => 1,
        })
        .sum()
}

/// A line of at most so many characters.
pub(super) fn shortened(line: &str, chars: usize) -> String {
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}... [truncated]", &line[..end]),
        None => line.to_owned(),
    }
}

/// Whether these first bytes are not of a text.
pub(super) fn is_binary(sample: &[u8]) -> bool {
    if sample.contains(&0) {
        return true;
    }
    let odd = |byte: &&u8| **byte < 32 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    sample.iter().filter(odd).count() * 10 > sample.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([], hermetic_redact::RedactorSettings::default())
    }

    #[test]
    fn lines_after_a_key_keep_their_numbers() {
        let key = [
            "before",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
            "QyNTUxOQAAACBT5nkqkqUIBdLVNBQBJXzMjFaPVEIHbGSNbcXzsBxfwwAAAJgAIqOnACKj",
            "-----END OPENSSH PRIVATE KEY-----",
            "after",
        ];
        let lines: Vec<_> = (7..).zip(key.map(str::to_owned)).collect();
        let shown = redacted_lines(&lines, &redactor());
        assert_eq!(shown.first(), Some(&(7, "before".to_owned())));
        assert_eq!(shown.last(), Some(&(12, "after".to_owned())));
        assert!(
            shown.iter().all(|(_, line)| !line.contains("b3Blbn")),
            "{shown:?}"
        );
    }

    #[test]
    fn cost_is_what_json_takes() {
        for text in ["plain", "a\"b\\c\nd\re\tf", "\u{1}\u{1f}", "ä€😀"] {
            let json = serde_json::to_string(text).expect("a string");
            let with_quotes = json.chars().count();
            // JSON has short forms for backspace and form feed; they only cost less.
            assert_eq!(cost(text) + 2, with_quotes, "{text:?}");
        }
    }

    #[test]
    fn what_is_text_and_what_is_not() {
        assert!(!is_binary("grüße\n\tzwei\r\n".as_bytes()));
        assert!(!is_binary(b"latin \xe4\xf6\xfc"));
        assert!(!is_binary(b""));
        assert!(is_binary(b"\x7fELF\x02\x01\x01\0"));
        assert!(is_binary(&[1, 2, 3, 4, b'a']));
    }
}
