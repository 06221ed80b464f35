//! The spellings in which an echoed secret can come back.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A form shorter than this would match by accident.
const LEAST: usize = 8;

pub(super) fn of(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let mut forms = vec![
        bytes.to_vec(),
        percent(
            bytes,
            |b| b.is_ascii_alphanumeric() || b"-._~".contains(&b),
            true,
        ),
        percent(
            bytes,
            |b| b.is_ascii_alphanumeric() || b"-._~".contains(&b),
            false,
        ),
        escaped(secret).into_bytes(),
        hex(bytes).into_bytes(),
        hex(bytes).to_ascii_uppercase().into_bytes(),
    ];
    for offset in 0..3 {
        forms.push(inner_base64(bytes, offset, |padded| {
            STANDARD_NO_PAD.encode(padded)
        }));
        forms.push(inner_base64(bytes, offset, |padded| {
            URL_SAFE_NO_PAD.encode(padded)
        }));
    }
    forms.retain(|form| form.len() >= LEAST);
    forms.sort();
    forms.dedup();
    forms
}

/// The characters that the secret alone decides, wherever in a longer text it was encoded.
fn inner_base64(secret: &[u8], offset: usize, encode: impl Fn(&[u8]) -> String) -> Vec<u8> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let encoded = encode(&padded).into_bytes();
    let start = (offset * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    encoded.get(start..end).unwrap_or_default().to_vec()
}

fn percent(bytes: &[u8], plain: impl Fn(u8) -> bool, upper: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in bytes {
        match (plain(byte), upper) {
            (true, _) => out.push(byte),
            (false, true) => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            (false, false) => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    out
}

/// As it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .trim_start_matches('"')
        .strip_suffix('"')
        .unwrap_or_default()
        .to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
