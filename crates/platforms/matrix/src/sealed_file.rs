//! A file of an encrypted room: where it lies, and what opens it.

use serde_json::{Value, json};

/// What the name of such a file begins with, where a file's name is its address.
const SCHEME: &str = "sealed-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedFile {
    /// As in `mxc://example.org/abc`.
    pub(crate) url: String,
    key: String,
    start: String,
    hash: String,
}

impl SealedFile {
    /// What stands in a message.
    pub(crate) fn read(file: &Value) -> Option<Self> {
        let text = |value: &Value| {
            value
                .as_str()
                .filter(|text| is_base64(text))
                .map(str::to_owned)
        };
        let url = file.get("url")?.as_str()?;
        Some(Self {
            url: Some(url).filter(|url| is_address(url))?.to_owned(),
            key: text(file.get("key")?.get("k")?)?,
            start: text(file.get("iv")?)?,
            hash: text(file.get("hashes")?.get("sha256")?)?,
        })
    }

    /// All of it in one name, which is kept with the message.
    pub(crate) fn name(&self) -> String {
        let Self {
            url,
            key,
            start,
            hash,
        } = self;
        format!("{SCHEME}{url} {key} {start} {hash}")
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(SCHEME)?.split(' ').map(str::to_owned);
        let mut next = || parts.next();
        Some(Self {
            url: next().filter(|url| is_address(url))?,
            key: next()?,
            start: next()?,
            hash: next()?,
        })
    }

    /// As Matrix writes it.
    pub(crate) fn key(&self) -> Value {
        json!({
            "v": "v2", "iv": self.start, "hashes": { "sha256": self.hash },
            "key": { "kty": "oct", "key_ops": ["encrypt", "decrypt"], "alg": "A256CTR", "ext": true,
                "k": self.key },
        })
    }
}

fn is_address(url: &str) -> bool {
    url.starts_with("mxc://") && !url.contains(char::is_whitespace)
}

fn is_base64(text: &str) -> bool {
    let is_sign = |b: u8| b.is_ascii_alphanumeric() || b"+/-_=".contains(&b);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_after_it_was_a_name() {
        let file = json!({ "url": "mxc://a/b", "iv": "aXY", "v": "v2", "hashes": { "sha256": "aGFzaA" },
            "key": { "k": "a2V5" } });
        let sealed = SealedFile::read(&file).unwrap();
        assert_eq!(SealedFile::of_name(&sealed.name()), Some(sealed.clone()));
        assert_eq!(sealed.key()["key"]["k"], "a2V5");
        assert_eq!(SealedFile::of_name("mxc://a/b"), None);
        for (field, forged) in [
            ("url", json!("https://a/b")),
            ("url", json!("mxc://a/b c")),
            ("iv", json!("a b")),
            ("iv", json!("x".repeat(65))),
            ("hashes", json!({})),
        ] {
            let mut file = file.clone();
            file[field] = forged;
            assert_eq!(SealedFile::read(&file), None, "{field}");
        }
    }
}
