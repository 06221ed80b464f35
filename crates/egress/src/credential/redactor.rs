//! Takes a secret out of a stream, wherever the stream is cut.
//!
//! Each found spelling is overwritten with stars of the same length, so that lengths and frames stay
//! true. Only the bytes that could be the beginning of a secret are held back: events still arrive the
//! moment they are sent.

use super::LEAST_BYTES;

/// One per direction and connection.
#[derive(Clone)]
pub(crate) struct Redactor {
    forms: Vec<Vec<u8>>,
    /// The end of what has come in so far, as long as a secret may begin there.
    held: Vec<u8>,
}

impl Redactor {
    pub(crate) fn new(forms: Vec<Vec<u8>>) -> Self {
        Self {
            forms,
            held: Vec::new(),
        }
    }

    /// What may be passed on after these bytes have come in.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut data = std::mem::take(&mut self.held);
        data.extend_from_slice(bytes);
        self.mask(&mut data);
        let keep = data.len() - self.open_end(&data);
        self.held = data.split_off(keep);
        data
    }

    /// The rest, when nothing more comes: what was held back is the beginning of a secret, and is shown
    /// only where it is too short to tell anything of it.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        if rest.len() >= LEAST_BYTES {
            rest.fill(b'*');
        }
        rest
    }

    /// A whole piece of text at once.
    pub(crate) fn mask(&self, data: &mut [u8]) {
        for form in &self.forms {
            let mut from = 0;
            while let Some(at) = find(&data[from..], form) {
                data[from + at..from + at + form.len()].fill(b'*');
                from += at + form.len();
            }
        }
    }

    /// How many bytes at the end are the beginning of some form.
    fn open_end(&self, data: &[u8]) -> usize {
        let longest = |form: &Vec<u8>| {
            let most = (form.len() - 1).min(data.len());
            (1..=most)
                .rev()
                .find(|&length| data.ends_with(&form[..length]))
                .unwrap_or(0)
        };
        self.forms.iter().map(longest).max().unwrap_or(0)
    }
}

fn find(data: &[u8], form: &[u8]) -> Option<usize> {
    let first = *form.first()?;
    let last_start = data.len().checked_sub(form.len())?;
    let mut from = 0;
    while from <= last_start {
        let at = data[from..=last_start].iter().position(|&b| b == first)? + from;
        if data[at..].starts_with(form) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "ghp_s3cr3t/with+\"odd\"";

    fn redactor() -> Redactor {
        Redactor::new(super::super::forms::of(SECRET))
    }

    fn through(text: &[u8], pieces: usize) -> Vec<u8> {
        let mut redactor = redactor();
        let mut out = Vec::new();
        for piece in text.chunks(pieces) {
            out.extend(redactor.push(piece));
        }
        out.extend(redactor.finish());
        out
    }

    #[test]
    fn every_spelling_is_found_at_every_cut() {
        let json = serde_json::Value::from(format!("x{SECRET}y")).to_string();
        let hex: String = SECRET.bytes().map(|b| format!("{b:02x}")).collect();
        for text in [
            format!("before {SECRET} after"),
            json,
            hex,
            format!("?token={}", "ghp_s3cr3t%2Fwith%2B%22odd%22"),
            STANDARD.encode(format!("x-access-token:{SECRET}")),
            STANDARD.encode(format!("ab{SECRET}cd")),
            URL_SAFE.encode(format!("a{SECRET}")),
        ] {
            for pieces in 1..=text.len() {
                let out = through(text.as_bytes(), pieces);
                assert_eq!(out.len(), text.len());
                let seen = String::from_utf8_lossy(&out);
                assert!(
                    seen.contains("********"),
                    "{text} in pieces of {pieces} became {seen}"
                );
                assert!(!seen.contains("s3cr3t"), "{seen}");
            }
        }
    }

    #[test]
    fn an_event_is_not_held_back() {
        let mut redactor = redactor();
        assert_eq!(redactor.push(b"data: hello\n\n"), b"data: hello\n\n");
        assert_eq!(redactor.push(b"data: ghp_s3c"), b"data: ");
        assert_eq!(redactor.push(b"on."), b"ghp_s3con.");
    }

    proptest! {
        #[test]
        fn other_bytes_pass_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..500), pieces in 1usize..50) {
            prop_assert_eq!(through(&bytes, pieces), bytes);
        }

        #[test]
        fn the_secret_never_passes(before in "[a-z_0-9]{0,40}", after in "[a-z_0-9]{0,40}", pieces in 1usize..30) {
            let text = format!("{before}{SECRET}{SECRET}{after}");
            let out = through(text.as_bytes(), pieces);
            prop_assert!(find(&out, SECRET.as_bytes()).is_none());
        }
    }
}
