//! Pictures and files that a tool hands to the model beside its words.

/// A picture or a PDF file, whole. No redaction sees what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMedia {
    /// By its first bytes, as in `image/png`.
    pub media_type: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
}

impl ToolMedia {
    /// Nothing for bytes that are none of what models take.
    pub fn of(name: &str, bytes: Vec<u8>) -> Option<Self> {
        let media_type = media_type(&bytes)?;
        let name = name.rsplit('/').next().unwrap_or(name);
        Some(Self {
            media_type,
            name: name.chars().take(100).collect(),
            bytes,
        })
    }

    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = || bytes.get(8..12) == Some(b"WEBP");
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', ..] if is_webp() => "image/webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_is_known_by_its_bytes() {
        let kind =
            |bytes: &[u8]| ToolMedia::of("a/b.txt", bytes.to_vec()).map(|media| media.media_type);
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBPVP8"), Some("image/webp"));
        assert_eq!(kind(b"%PDF-1.7"), Some("application/pdf"));
        for other in [
            &b"RIFF\0\0\0\0WAVE"[..],
            b"RIFF",
            b"<svg onload=x>",
            b"",
            b"\x89PNG",
        ] {
            assert_eq!(kind(other), None);
        }
        assert_eq!(
            ToolMedia::of("a/b.png", b"GIF89a".to_vec()).unwrap().name,
            "b.png"
        );
    }
}
