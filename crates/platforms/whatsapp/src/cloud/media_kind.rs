//! As what a file is sent.

use hermetic_chat::OutgoingFile;

const IMAGE_BYTES: usize = 5 << 20;
const SOUND_AND_FILM_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MediaKind {
    shown: Shown,
    mime: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Image,
    Video,
    Audio,
    Document,
}

/// By the ending of a name: what WhatsApp shows it as, and the kind of file that it is told.
const KINDS: &[(&str, Shown, &str)] = &[
    ("jpg", Shown::Image, "image/jpeg"),
    ("jpeg", Shown::Image, "image/jpeg"),
    ("png", Shown::Image, "image/png"),
    ("mp4", Shown::Video, "video/mp4"),
    ("3gp", Shown::Video, "video/3gpp"),
    ("aac", Shown::Audio, "audio/aac"),
    ("amr", Shown::Audio, "audio/amr"),
    ("mp3", Shown::Audio, "audio/mpeg"),
    ("m4a", Shown::Audio, "audio/mp4"),
    ("ogg", Shown::Audio, "audio/ogg"),
    ("opus", Shown::Audio, "audio/opus"),
    ("pdf", Shown::Document, "application/pdf"),
    ("doc", Shown::Document, "application/msword"),
    ("xls", Shown::Document, "application/vnd.ms-excel"),
    ("ppt", Shown::Document, "application/vnd.ms-powerpoint"),
    (
        "docx",
        Shown::Document,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        Shown::Document,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        Shown::Document,
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
            None if std::str::from_utf8(&file.bytes).is_ok() => (Shown::Document, "text/plain"),
            None => (Shown::Document, "application/octet-stream"),
        };
        let most = match shown {
            Shown::Image => IMAGE_BYTES,
            Shown::Video | Shown::Audio => SOUND_AND_FILM_BYTES,
            Shown::Document => usize::MAX,
        };
        let loses_its_caption = shown == Shown::Audio && file.caption.is_some();
        let shown = match file.bytes.len() > most || loses_its_caption {
            true => Shown::Document,
            false => shown,
        };
        Self { shown, mime }
    }

    pub(super) fn name(self) -> &'static str {
        match self.shown {
            Shown::Image => "image",
            Shown::Video => "video",
            Shown::Audio => "audio",
            Shown::Document => "document",
        }
    }

    pub(super) fn mime(self) -> &'static str {
        self.mime
    }

    pub(super) fn takes_a_name(self) -> bool {
        self.shown == Shown::Document
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hermetic_chat::Outgoing;

    use super::*;

    fn kind(
        name: &str,
        bytes: Vec<u8>,
        caption: Option<&'static str>,
    ) -> (&'static str, &'static str) {
        let kind = MediaKind::of(&OutgoingFile {
            name: name.to_owned(),
            bytes: Bytes::from(bytes),
            caption: caption.map(Outgoing::constant),
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
