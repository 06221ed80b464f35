//! Backslash escapes of `$'…'`, `echo -e` and `printf`.

/// `$'…'`.
pub(crate) fn ansi_c(text: &str) -> String {
    unescape(text, true)
}

/// `echo -e` and `printf`, where `\0nnn` is octal too.
pub(crate) fn echo(text: &str) -> String {
    unescape(text, false)
}

fn unescape(text: &str, quotes: bool) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let Some(escape) = chars.next() else {
            out.push(b'\\');
            break;
        };
        match escape {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'a' => out.push(7),
            'b' => out.push(8),
            'e' | 'E' => out.push(27),
            'f' => out.push(12),
            'v' => out.push(11),
            '\\' => out.push(b'\\'),
            '\'' | '"' | '?' if quotes => push(&mut out, escape),
            '0'..='7' => {
                let mut value = escape.to_digit(8).unwrap_or(0);
                let mut left = if escape == '0' && !quotes { 3 } else { 2 };
                while left > 0
                    && let Some(digit) = chars.peek().and_then(|c| c.to_digit(8))
                {
                    value = value * 8 + digit;
                    chars.next();
                    left -= 1;
                }
                out.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            'x' | 'u' | 'U' => {
                let limit = match escape {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let mut value = 0_u32;
                let mut digits = 0;
                while digits < limit
                    && let Some(digit) = chars.peek().and_then(|c| c.to_digit(16))
                {
                    value = value.wrapping_mul(16).wrapping_add(digit);
                    chars.next();
                    digits += 1;
                }
                if digits == 0 {
                    out.push(b'\\');
                    push(&mut out, escape);
                } else if escape == 'x' {
                    out.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
                } else {
                    push(&mut out, char::from_u32(value).unwrap_or('\u{FFFD}'));
                }
            }
            _ => {
                out.push(b'\\');
                push(&mut out, escape);
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn push(out: &mut Vec<u8>, c: char) {
    let mut buffer = [0; 4];
    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
}
