//! As what a file is sent.

use hermetic_chat::OutgoingFile;

const IMAGE_BYTES: usize = 5 << 20;
const SOUND_AND_FILM_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MediaKind {
    shown: MediaDisplay,
    mime: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MediaDisplay {
    Image,
    Video,
    Audio,
    Document,
}

/// By the ending of a name: what WhatsApp shows it as, and the kind of file that it is told.
const KINDS: &[(&str, MediaDisplay, &str)] = &[
    ("jpg", MediaDisplay::Image, "image/jpeg"),
    ("jpeg", MediaDisplay::Image, "image/jpeg"),
    ("png", MediaDisplay::Image, "image/png"),
    ("mp4", MediaDisplay::Video, "video/mp4"),
    ("3gp", MediaDisplay::Video, "video/3gpp"),
    ("aac", MediaDisplay::Audio, "audio/aac"),
    ("amr", MediaDisplay::Audio, "audio/amr"),
    ("mp3", MediaDisplay::Audio, "audio/mpeg"),
    ("m4a", MediaDisplay::Audio, "audio/mp4"),
    ("ogg", MediaDisplay::Audio, "audio/ogg"),
    ("opus", MediaDisplay::Audio, "audio/opus"),
    ("pdf", MediaDisplay::Document, "application/pdf"),
    ("doc", MediaDisplay::Document, "application/msword"),
    ("xls", MediaDisplay::Document, "application/vnd.ms-excel"),
    (
        "ppt",
        MediaDisplay::Document,
        "application/vnd.ms-powerpoint",
    ),
    (
        "docx",
        MediaDisplay::Document,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        MediaDisplay::Document,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        MediaDisplay::Document,
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
];

impl MediaKind {
    pub(super) fn of(file: &OutgoingFile) -> Self {
        let ending = file.name.rsplit_once('.').map(|(_, ending)| ending);
        let ending = ending.unwrap_or_default().to_ascii_lowercase();
        let known = KINDS.iter().find(|(known, ..)| *known == ending);
        let (shown, mime) = match known {
            Some((_, shown, mime)) => (*shown, *mime),
            // Meta takes a fixed list of kinds; code and notes are plain text to it.
            None if std::str::from_utf8(&file.bytes).is_ok() => {
                (MediaDisplay::Document, "text/plain")
            }
            None => (MediaDisplay::Document, "application/octet-stream"),
        };
        let most = match shown {
            MediaDisplay::Image => IMAGE_BYTES,
            MediaDisplay::Video | MediaDisplay::Audio => SOUND_AND_FILM_BYTES,
            MediaDisplay::Document => usize::MAX,
        };
        let loses_its_caption = shown == MediaDisplay::Audio && file.caption.is_some();
        let shown = match file.bytes.len() > most || loses_its_caption {
            true => MediaDisplay::Document,
            false => shown,
        };
        Self { shown, mime }
    }

    pub(super) fn name(self) -> &'static str {
        match self.shown {
            MediaDisplay::Image => "image",
            MediaDisplay::Video => "video",
            MediaDisplay::Audio => "audio",
            MediaDisplay::Document => "document",
        }
    }

    pub(super) fn mime(self) -> &'static str {
        self.mime
    }

    pub(super) fn takes_a_name(self) -> bool {
        self.shown == MediaDisplay::Document
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hermetic_chat::OutgoingText;

    use super::*;

    fn kind(
        name: &str,
        bytes: Vec<u8>,
        caption: Option<&'static str>,
    ) -> (&'static str, &'static str) {
        let kind = MediaKind::of(&OutgoingFile {
            name: name.to_owned(),
            bytes: Bytes::from(bytes),
            caption: caption.map(OutgoingText::constant),
        });
        (kind.name(), kind.mime())
    }

    #[test]
    fn a_file_is_sent_as_what_whatsapp_can_show() {
        assert_eq!(kind("a.PNG", vec![1], None), ("image", "image/png"));
        assert_eq!(
            kind("a.png", vec![1; IMAGE_BYTES + 1], None),
            ("document", "image/png")
        );
        assert_eq!(kind("a.mp3", vec![1], None), ("audio", "audio/mpeg"));
        assert_eq!(
            kind("a.mp3", vec![1], Some("hear")),
            ("document", "audio/mpeg")
        );
        assert_eq!(
            kind("main.rs", b"fn main() {}".to_vec(), None),
            ("document", "text/plain")
        );
        assert_eq!(
            kind("a.zip", vec![0xff], None),
            ("document", "application/octet-stream")
        );
        assert_eq!(
            kind("a.pdf", vec![0xff], None),
            ("document", "application/pdf")
        );
    }
}
