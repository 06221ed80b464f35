//! The characters of a page, whatever it calls its encoding.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page names its encoding, if it does.
const MOST_LOOKED_AT: usize = 2048;

/// The text, and never a failure: what is no character becomes U+FFFD.
pub(super) fn decoded(bytes: &[u8], content_type: &str) -> String {
    // A mark at the beginning beats every name.
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding
            .decode_without_bom_handling(&bytes[mark..])
            .0
            .into_owned();
    }
    let named = label_of(content_type).and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = named
        .or_else(|| in_page(bytes))
        .unwrap_or_else(|| match is_utf8(bytes) {
            true => UTF_8,
            false => WINDOWS_1252,
        });
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// As browsers look for it: any `charset=` near the beginning.
fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let beginning = &bytes[..bytes.len().min(MOST_LOOKED_AT)];
    let beginning = String::from_utf8_lossy(beginning).to_ascii_lowercase();
    let encoding = Encoding::for_label(label_of(&beginning)?.as_bytes())?;
    // A page that could be read so far as to name UTF-16 is none of it.
    match encoding.is_ascii_compatible() {
        true => Some(encoding),
        false => Some(UTF_8),
    }
}

fn label_of(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start();
    let after = after.trim_start_matches(['"', '\'']);
    let is_label = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    let label: String = after
        .chars()
        .take_while(|c| is_label(*c))
        .take(40)
        .collect();
    (!label.is_empty()).then_some(label)
}

/// A body that was cut may end within a character.
fn is_utf8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_where_it_stands() {
        assert_eq!(decoded("größe".as_bytes(), "text/html"), "größe");
        assert_eq!(
            decoded(b"gr\xf6\xdfe", "text/html; charset=ISO-8859-1"),
            "größe"
        );
        assert_eq!(decoded(b"gr\xf6\xdfe", "text/html"), "größe");
        assert_eq!(
            decoded(b"<meta charset='koi8-r'>\xc1", "text/html"),
            "<meta charset='koi8-r'>а"
        );
        assert_eq!(decoded(b"\xff\xfea\0b\0", "text/html; charset=utf-8"), "ab");
        assert_eq!(
            decoded(b"\x82\xa0", "text/html; charset=\"Shift_JIS\""),
            "あ"
        );
    }

    #[test]
    fn a_wrong_name_does_no_harm() {
        assert_eq!(decoded("é".as_bytes(), "text/html; charset=klingon"), "é");
        assert_eq!(decoded(b"a\xf6b", "text/html; charset=utf-8"), "a\u{fffd}b");
        let text = decoded(b"<meta charset=utf-16le>plain", "text/html");
        assert!(text.ends_with("plain"), "{text}");
        assert_eq!(decoded(b"abc", "charset="), "abc");
        assert_eq!(decoded(&"é".as_bytes()[..1], "text/plain"), "\u{fffd}");
    }
}
