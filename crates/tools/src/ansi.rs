//! Takes terminal control out of output: escape sequences as ECMA-48 has them, and stray control
//! characters. Tabs and line ends stay; a lone carriage return, which would have drawn over the line,
//! begins a new one.

/// What is left is what a person would have read.
pub(crate) fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            ESC => at = after_escape(bytes, at),
            b'\r' if bytes.get(at) == Some(&b'\n') => {}
            // Several of them draw over the same line.
            b'\r' if bytes.get(at) == Some(&b'\r') => {}
            b'\r' => out.push(b'\n'),
            b'\n' | b'\t' => out.push(byte),
            0..0x20 | 0x7f => {}
            _ => out.push(byte),
        }
    }
    out
}

const ESC: u8 = 0x1b;
const BELL: u8 = 0x07;

/// Where a sequence whose ESC stands before `at` has ended.
fn after_escape(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        None => at,
        Some(b'[') => after_control_sequence(bytes, at + 1),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => after_string(bytes, at + 1),
        Some(0x20..0x30) => {
            let rest = bytes[at..].iter();
            let between = rest.take_while(|byte| (0x20..0x30).contains(*byte)).count();
            (at + between + 1).min(bytes.len())
        }
        // A newline after a broken escape is still a newline.
        Some(0..0x20 | 0x7f..) => at,
        Some(_) => at + 1,
    }
}

/// Parameters, intermediates, one final byte; what is none of these ends it early.
fn after_control_sequence(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            0x20..0x40 => at += 1,
            0x40..0x7f => return at + 1,
            _ => return at,
        }
    }
    at
}

/// A string goes to BEL or `ESC \`. One that never ends was none: only its opening is dropped, or a
/// stray byte would hide everything after it.
fn after_string(bytes: &[u8], from: usize) -> usize {
    const LONGEST_ESCAPE_SEQUENCE: usize = 64 << 10;
    let window = &bytes[from..bytes.len().min(from + LONGEST_ESCAPE_SEQUENCE)];
    for (offset, byte) in window.iter().enumerate() {
        match *byte {
            BELL => return from + offset + 1,
            ESC if window.get(offset + 1) == Some(&b'\\') => return from + offset + 2,
            ESC => return from + offset,
            _ => {}
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        String::from_utf8(plain(text.as_bytes())).unwrap()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        for (text, left) in [
            ("a\tb\r\nc", "a\tb\nc"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Bx\x1b=y\x1b#8z", "xyz"),
            ("\x1bPq#0;data\x1b\\x", "x"),
            ("10%\r20%\r\r\n", "10%\n20%\n"),
            ("bell\x07 back\x08space\x7f", "bell backspace"),
            ("grün 猫 \x1b[38;5;1mé", "grün 猫 é"),
        ] {
            assert_eq!(shown(text), left, "{text:?}");
        }
    }

    #[test]
    fn broken_sequences_hide_nothing() {
        for (text, left) in [
            ("a\x1b", "a"),
            ("a\x1b[", "a"),
            ("a\x1b[1;\nb", "a\nb"),
            ("a\x1b]never ends\nb", "anever ends\nb"),
            ("a\x1b\nb", "a\nb"),
            ("a\x1b]0;x\x1b[31mb", "ab"),
        ] {
            assert_eq!(shown(text), left, "{text:?}");
        }
    }
}
