//! A file's text as a model sees it: without byte order mark, lines ending in LF.

const MARK: char = '\u{feff}';

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileText {
    pub(super) lines: String,
    marked: bool,
    /// Every line ends in CR LF.
    crlf: bool,
}

impl FileText {
    pub(super) fn plain(lines: String) -> Self {
        Self {
            lines,
            marked: false,
            crlf: false,
        }
    }

    /// `None` if it is not UTF-8.
    pub(super) fn read(bytes: Vec<u8>) -> Option<Self> {
        let whole = String::from_utf8(bytes).ok()?;
        let (marked, text) = match whole.strip_prefix(MARK) {
            Some(rest) => (true, rest.to_owned()),
            None => (false, whole),
        };
        let ends = text.matches('\n').count();
        let crlf = ends > 0 && text.matches("\r\n").count() == ends;
        let lines = if crlf {
            text.replace("\r\n", "\n")
        } else {
            text
        };
        Some(Self {
            lines,
            marked,
            crlf,
        })
    }

    /// The same kind of file with other lines.
    pub(super) fn with(&self, lines: String) -> Self {
        // What a model pastes from such a file may carry the ends along.
        let lines = if self.crlf {
            lines.replace("\r\n", "\n")
        } else {
            lines
        };
        Self { lines, ..*self }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        if self.marked {
            text.push(MARK);
        }
        if self.crlf {
            text.push_str(&self.lines.replace('\n', "\r\n"));
        } else {
            text.push_str(&self.lines);
        }
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_kind() {
        for bytes in [
            "a\nb\n",
            "a\r\nb\r\n",
            "\u{feff}a\r\nb",
            "a\r\nb\n",
            "",
            "a",
        ] {
            let text = FileText::read(bytes.into()).expect("UTF-8");
            assert_eq!(text.to_bytes(), bytes.as_bytes(), "{bytes:?}");
        }
        let text = FileText::read(b"\xef\xbb\xbfa\r\nb\r\n".to_vec()).expect("UTF-8");
        assert_eq!(text.lines, "a\nb\n");
        let other = text.with("a\nc\r\n".to_owned());
        assert_eq!(other.to_bytes(), b"\xef\xbb\xbfa\r\nc\r\n");
        assert_eq!(FileText::read(vec![0xff]), None);
    }
}
