//! Server-sent events, from bytes cut anywhere.
//!
//! Lines end with LF, CR or CRLF; `data` lines of one event are joined; comments and other fields are
//! passed over. Bytes are kept as bytes until a line is whole, so a character may be cut in two.

/// Takes bytes, gives out the data of whole events.
#[derive(Debug)]
pub(crate) struct EventParser {
    line: Vec<u8>,
    /// The data of the event at hand; `None` until it has a data line.
    data: Option<Vec<u8>>,
    after_cr: bool,
    at_start: bool,
    most: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

impl EventParser {
    /// No event may be larger than `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            line: Vec::new(),
            data: None,
            after_cr: false,
            at_start: true,
            most,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, EventTooLarge> {
        let mut ready = Vec::new();
        for byte in bytes {
            let was_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if was_cr => {}
                b'\n' | b'\r' => ready.extend(self.end_line()),
                byte => self.line.push(*byte),
            }
            // Both together, and after each byte: an event that never ends is refused when it is
            // too large, not when it is whole.
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > self.most {
                return Err(EventTooLarge);
            }
        }
        Ok(ready)
    }

    /// The last event, where the server forgot the empty line after it.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let last = self.end_line();
        last.or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<String> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with("\u{feff}".as_bytes()) {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_event();
        }
        if let Some(value) = field(&line, b"data") {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        None
    }

    fn end_event(&mut self) -> Option<String> {
        let data = self.data.take()?;
        Some(String::from_utf8_lossy(&data).into_owned())
    }
}

/// The value if the line is of this field; one space after the colon does not belong to it.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = EventParser::new(1 << 20);
        let mut all: Vec<String> = pieces
            .iter()
            .flat_map(|piece| events.push(piece).expect("small"))
            .collect();
        all.extend(events.finish());
        all
    }

    #[test]
    fn torture() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("data: a\n\n", &["a"]),
            ("data:a\n\ndata:  b\n\n", &["a", " b"]),
            ("data: a\r\n\r\ndata: b\r\r", &["a", "b"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            (": comment\n\n: another\ndata: a\n\n", &["a"]),
            ("event: x\nid: 1\nretry: 5\ndata: a\n\n", &["a"]),
            ("data\n\n", &[""]),
            ("data:\n\n", &[""]),
            ("database: x\n\n", &[]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: a", &["a"]),
            ("data: a\n", &["a"]),
            ("\n\n\n\ndata: a\n\n\n\n", &["a"]),
            (
                "data: {\"x\":\"ö\u{1f600}\"}\n\n",
                &["{\"x\":\"ö\u{1f600}\"}"],
            ),
            ("DATA: a\n\n", &[]),
            (" data: a\n\n", &[]),
            ("data: [DONE]\n\n", &["[DONE]"]),
        ];
        for (input, expected) in table {
            assert_eq!(events(&[input.as_bytes()]), *expected, "{input:?}");
        }
    }

    #[test]
    fn an_event_without_end_is_bounded() {
        let mut events = EventParser::new(100);
        assert_eq!(events.push(&[b'x'; 101]), Err(EventTooLarge));
        let mut events = EventParser::new(100);
        let lines = b"data: 0123456789\n".repeat(20);
        assert_eq!(events.push(&lines), Err(EventTooLarge));
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same(
            lines in proptest::collection::vec("(data: |data:|: |event: |)[a-zö\u{1f600}]{0,5}(\n|\r|\r\n|\n\n|\r\n\r\n)", 0..12),
            cut in 1_usize..7,
        ) {
            let input = lines.concat();
            let pieces: Vec<&[u8]> = input.as_bytes().chunks(cut).collect();
            prop_assert_eq!(events(&pieces), events(&[input.as_bytes()]));
        }
    }
}
