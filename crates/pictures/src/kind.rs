//! What a picture or a document is, by its first bytes and not by what its sender calls it.

/// As in `image/png`; nothing for bytes that are none of what models take.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
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
    fn what_it_is_is_known_by_its_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8"), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.7"), Some("application/pdf"));
        for other in [
            &b"RIFF\0\0\0\0WAVE"[..],
            b"RIFF",
            b"<svg onload=x>",
            b"",
            b"\x89PNG",
        ] {
            assert_eq!(media_type(other), None);
        }
    }
}
