//! From raw bytes of a sandbox to text that may be shown.
//!
//! Escapes go first and secrets after them, because an escape in the middle would hide a secret.
//! Cutting comes last, because a secret cut in two is not recognised.

use hermetic_redact::{Redacted, Redactor};
use hermetic_sandbox::HeadTail;

use crate::ansi;

/// What is thrown away on both sides of a gap: half a secret may stand there.
const EDGE: usize = 8 << 10;

/// How many bytes of each stream are gathered to show so many characters of it.
pub(crate) fn gathered(chars: usize) -> usize {
    chars * 4 + 5 * EDGE
}

/// Both streams as one text of at most `chars` characters, without escapes and secrets.
pub(crate) fn shown(
    streams: [&HeadTail; 2],
    redactor: &Redactor,
    chars: usize,
) -> Redacted<String> {
    let whole: Vec<_> = streams
        .into_iter()
        .map(|stream| legible(stream, redactor))
        .filter(|text| !text.is_empty())
        .collect();
    let text = cut(whole.join("\n").trim(), chars);
    // The second pass only proves what the first did: there is no other way to a `Redacted`.
    redactor.redact(text)
}

fn legible(stream: &HeadTail, redactor: &Redactor) -> String {
    let clean = |bytes: &[u8]| {
        let plain = ansi::plain(bytes);
        redactor
            .redact(String::from_utf8_lossy(&plain))
            .into_inner()
    };
    if stream.omitted() == 0 {
        return clean(&stream.clone().into_bytes()).trim_end().to_owned();
    }
    let (head, tail) = (clean(stream.head()), clean(&stream.tail()));
    let head = &head[..head.floor_char_boundary(head.len().saturating_sub(EDGE))];
    let tail = &tail[tail.ceil_char_boundary(EDGE.min(tail.len()))..];
    let left_out = stream.omitted();
    format!(
        "{head}\n[… more than {left_out} bytes left out …]\n{}",
        tail.trim_end()
    )
}

/// The first 40 and the last 60 per cent of what is too long.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    let head = chars * 2 / 5;
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let (first, last) = (&text[..at(head)], &text[at(count - (chars - head))..]);
    format!(
        "{first}\n[… {} characters left out …]\n{last}",
        count - chars
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_types::Secret;

    fn stream(bytes: &[u8], bound: usize) -> HeadTail {
        let mut stream = HeadTail::new(bound);
        stream.push(bytes);
        stream
    }

    fn redactor() -> Redactor {
        Redactor::new(
            [Secret::new("correct-horse-battery")],
            hermetic_redact::RedactorSettings::default(),
        )
    }

    #[test]
    fn escapes_do_not_hide_a_secret() {
        let out = stream(
            b"\x1b[31mcorrect-\x1b[0mhorse-battery\x1b[0m \x1b]0;title\x07ok\r\n",
            1000,
        );
        let shown = shown([&out, &stream(b"", 10)], &redactor(), 100);
        assert_eq!(shown.as_str(), "[redacted] ok");
    }

    #[test]
    fn both_streams_are_there() {
        let (out, err) = (stream(b"one\n", 100), stream(b"two\n", 100));
        assert_eq!(shown([&out, &err], &redactor(), 100).as_str(), "one\ntwo");
    }

    #[test]
    fn half_a_secret_at_a_gap_does_not_show() {
        let bound = gathered(1000);
        let head = bound / 5 * 2;
        let mut bytes = vec![b'.'; head - 10];
        bytes.extend_from_slice(b"correct-horse-battery");
        bytes.extend(vec![b'.'; bound]);
        let shown = shown(
            [&stream(&bytes, bound), &stream(b"", 1)],
            &redactor(),
            bound,
        );
        assert!(!shown.as_str().contains("correct"), "half of it is shown");
        assert!(shown.as_str().contains("bytes left out"));
    }

    #[test]
    fn long_output_keeps_its_ends() {
        let text = cut(&format!("{}{}", "ä".repeat(100), "ö".repeat(100)), 50);
        assert!(
            text.starts_with(&"ä".repeat(20)) && text.ends_with(&"ö".repeat(30)),
            "{text}"
        );
        assert!(text.contains("[… 150 characters left out …]"), "{text}");
    }
}
