//! JSON-RPC with a program that may be hostile: what is said, and lines cut out of what it writes.

use serde_json::{Value, json};

pub fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Whether a text has more values than that, if it is JSON. Counted before it is parsed, because the memory is
/// taken by parsing.
pub fn has_more_values(json: &[u8], most: usize) -> bool {
    let (mut values, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' | b',' if !in_string => values += 1,
            _ => {}
        }
    }
    values > most
}

/// Cuts lines out of what arrives in pieces.
#[derive(Debug)]
pub struct LineCutter {
    most: usize,
    bytes: Vec<u8>,
    /// Where the next line begins, and up to where no end of it was found.
    begin: usize,
    looked_at: usize,
}

/// A line that is longer than any message may be.
#[derive(Debug, PartialEq, Eq)]
pub struct LineTooLong;

impl LineCutter {
    /// Lines of at most so many bytes, without their end.
    pub fn up_to(most: usize) -> Self {
        Self {
            most,
            bytes: Vec::new(),
            begin: 0,
            looked_at: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        // Once for each piece and not for each line: a piece may be all line ends.
        self.bytes.drain(..self.begin);
        self.looked_at -= self.begin;
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        let end = memchr::memchr(b'\n', &self.bytes[self.looked_at..]);
        let end = end.map_or(self.bytes.len(), |end| self.looked_at + end);
        // Also where it has an end: the last piece may have brought both.
        if end - self.begin > self.most {
            return Err(LineTooLong);
        }
        if end == self.bytes.len() {
            self.looked_at = end;
            return Ok(None);
        }
        let line = self.begin..end;
        self.begin = end + 1;
        self.looked_at = self.begin;
        Ok(Some(&self.bytes[line]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;

    #[test]
    fn lines_are_cut_wherever_the_bytes_were() {
        let mut cutter = LineCutter::up_to(MOST);
        let mut lines = Vec::new();
        for piece in ["{\"a\"", ":1}\n", "\n{\"b\":2}\nrest", "\n"] {
            cutter.push(piece.as_bytes());
            while let Some(line) = cutter.next_line().expect("short") {
                lines.push(String::from_utf8(line.to_vec()).expect("text"));
            }
        }
        assert_eq!(lines, ["{\"a\":1}", "", "{\"b\":2}", "rest"]);
    }

    #[test]
    fn a_line_without_end_is_given_up_when_no_message_is_as_long() {
        let mut cutter = LineCutter::up_to(MOST);
        cutter.push(b"before\n");
        for _ in 0..MOST {
            assert!(cutter.next_line().is_ok());
            cutter.push(b"x");
        }
        assert_eq!(cutter.next_line(), Ok(None));
        cutter.push(b"x");
        assert_eq!(cutter.next_line(), Err(LineTooLong));
        let mut cutter = LineCutter::up_to(MOST);
        cutter.push(&[b'x'; MOST + 1]);
        cutter.push(b"\n");
        assert_eq!(cutter.next_line(), Err(LineTooLong));
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert!(!has_more_values(br#"{"a":["b,[{",1]}"#, 3));
        assert!(has_more_values(br#"{"a":["\"",1]}"#, 2));
    }
}
