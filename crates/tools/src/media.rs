//! Pictures and files that a tool hands to the model beside its words.

use hermetic_pictures::media_type;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_is_known_by_its_bytes() {
        let kind =
            |bytes: &[u8]| ToolMedia::of("a/b.txt", bytes.to_vec()).map(|media| media.media_type);
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(kind(b"<svg onload=x>"), None);
        assert_eq!(
            ToolMedia::of("a/b.png", b"GIF89a".to_vec()).unwrap().name,
            "b.png"
        );
    }
}
