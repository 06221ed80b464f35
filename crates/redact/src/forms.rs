//! The ways a known value is printed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hermetic_types::Secret;
use zeroize::Zeroizing;

type SecretForm = Zeroizing<Vec<u8>>;

/// Shorter pieces of an encoding would match by chance. The shortest known value, of six bytes, leaves
/// seven characters that are its own in base64, wherever it stands.
const LEAST_ENCODED: usize = 7;

/// Longer values are not looked for as base64 within base64: each is nine more forms.
const LONGEST_TWICE_ENCODED: usize = 1024;

/// Lines of a value shorter than this stand only as part of the whole.
const LEAST_LINE: usize = 16;

/// All forms of all known values.
#[derive(Default)]
pub(crate) struct SecretForms {
    /// Matched byte for byte.
    pub(crate) plain: Vec<SecretForm>,
    /// Matched across line breaks.
    pub(crate) wrapped: Vec<SecretForm>,
}

impl SecretForms {
    pub(crate) fn add(&mut self, secret: &Secret) {
        let whole = secret.expose();
        self.add_value(whole);
        // A key of many lines is often shown with something in front of each line.
        if whole.contains('\n') {
            for line in whole.lines().map(str::trim) {
                if line.len() >= LEAST_LINE && !line.starts_with("-----") {
                    self.add_value(line);
                }
            }
        }
    }

    fn add_value(&mut self, value: &str) {
        let bytes = value.as_bytes();
        self.add_plain(bytes.to_vec());
        self.add_plain(value.chars().rev().collect::<String>().into_bytes());
        self.add_plain(percent_encoded(bytes, b"0123456789ABCDEF"));
        self.add_plain(percent_encoded(bytes, b"0123456789abcdef"));
        // As a form sends it: a space becomes a plus.
        let words = value.split(' ');
        let words = words.map(|word| percent_encoded(word.as_bytes(), b"0123456789ABCDEF"));
        self.add_plain(words.collect::<Vec<_>>().join(&b'+'));
        for escaped in json_escaped(value) {
            self.add_plain(escaped.into_bytes());
        }
        self.add_plain(value.replace('\'', r"'\''").into_bytes());
        self.add_plain(html_escaped(value).into_bytes());
        self.add_wrapped(hex(bytes, b"0123456789abcdef"));
        self.add_wrapped(hex(bytes, b"0123456789ABCDEF"));
        for before in 0..3 {
            let encoded = Zeroizing::new(base64_after(bytes, before));
            let url_safe = encoded
                .iter()
                .map(|byte| match byte {
                    b'+' => b'-',
                    b'/' => b'_',
                    other => *other,
                })
                .collect();
            self.add_twice_encoded(&encoded);
            self.add_wrapped(encoded.to_vec());
            self.add_wrapped(url_safe);
        }
    }

    /// Base64 within base64, as the login of a registry stands in a cluster's secret. Who knows the
    /// outer one has the value.
    fn add_twice_encoded(&mut self, once: &[u8]) {
        if once.len() > LONGEST_TWICE_ENCODED {
            return;
        }
        for before in 0..3 {
            let form = base64_after(once, before);
            // Of a short value too little would be left that is its own.
            if form.len() >= 2 * LEAST_ENCODED {
                self.wrapped.push(Zeroizing::new(form));
            }
        }
    }

    fn add_plain(&mut self, form: Vec<u8>) {
        self.plain.push(Zeroizing::new(form));
    }

    fn add_wrapped(&mut self, form: Vec<u8>) {
        // The filter wants the first three characters in one piece. Where a line ends within them,
        // the rest is found on the next line.
        if let Some(rest) = form.get(3..)
            && rest.len() >= 2 * LEAST_ENCODED
        {
            self.wrapped.push(Zeroizing::new(rest.to_vec()));
        }
        if form.len() >= LEAST_ENCODED {
            self.wrapped.push(Zeroizing::new(form));
        }
    }
}

/// The characters of an encoding that depend on `value` alone when it stands `before` bytes (modulo
/// three) into something larger.
fn base64_after(value: &[u8], before: usize) -> Vec<u8> {
    let mut padded = Zeroizing::new(vec![0; before]);
    padded.extend_from_slice(value);
    let encoded = STANDARD_NO_PAD.encode(&*padded).into_bytes();
    // A character holds six bits: the first ones and the last one may be shared with neighbours.
    let first = (before * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_vec()
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    value
        .iter()
        .flat_map(|byte| {
            [
                digits[usize::from(byte >> 4)],
                digits[usize::from(byte & 15)],
            ]
        })
        .collect()
}

fn percent_encoded(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(value.len() * 3);
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.push(b'%');
            encoded.extend(hex(&[*byte], digits));
        }
    }
    encoded
}

fn html_escaped(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// With and without the escapes that are optional in JSON.
fn json_escaped(value: &str) -> [String; 4] {
    let (mut least, mut slashes, mut ascii) = (String::new(), String::new(), String::new());
    // As encoders write it that have a web page in mind.
    let mut page = String::new();
    for letter in value.chars() {
        let short = match letter {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            _ => None,
        };
        match short {
            Some(escape) => {
                for form in [&mut least, &mut slashes, &mut ascii, &mut page] {
                    form.push_str(escape);
                }
            }
            None => {
                least.push(letter);
                if matches!(letter, '<' | '>' | '&') {
                    page.push_str(&format!("\\u{:04x}", u32::from(letter)));
                } else {
                    page.push(letter);
                }
                if letter == '/' {
                    slashes.push('\\');
                }
                slashes.push(letter);
                if letter.is_ascii() {
                    ascii.push(letter);
                } else {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        ascii.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
    }
    [least, slashes, ascii, page]
}
