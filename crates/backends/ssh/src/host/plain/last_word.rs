//! The line that says how a command ended, told apart from what the command itself says.

/// Longer than any exit code is written.
const LONGEST_CODE: usize = 12;

/// Reads a command's stderr, whatever pieces it comes in. Never holds more than a line of ours is long.
#[derive(Debug)]
pub(super) struct LastWord {
    /// A line break, the word, a space.
    begin: Vec<u8>,
    held: Vec<u8>,
}

impl LastWord {
    pub(super) fn new(word: &str) -> Self {
        Self {
            begin: format!("\n{word} ").into_bytes(),
            held: Vec::new(),
        }
    }

    /// What of this is the command's own, and the exit code if our line is here. What comes after that is
    /// nobody's.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, Option<i32>) {
        self.held.extend_from_slice(bytes);
        let mut searched = 0;
        while let Some(at) = self.find(searched) {
            match code(&self.held[at + self.begin.len()..]) {
                ExitCodeWord::Is(code) => {
                    self.held.truncate(at);
                    return (std::mem::take(&mut self.held), Some(code));
                }
                ExitCodeWord::MayCome => return (self.held.drain(..at).collect(), None),
                // Somebody else's line that begins like ours.
                ExitCodeWord::IsNot => searched = at + 1,
            }
        }
        let free = self.held.len() - self.overlap().min(self.held.len() - searched);
        (self.held.drain(..free).collect(), None)
    }

    /// What is left when nothing more comes.
    pub(super) fn rest(self) -> Vec<u8> {
        self.held
    }

    fn find(&self, from: usize) -> Option<usize> {
        let length = self.begin.len();
        let found = self.held[from..]
            .windows(length)
            .position(|bytes| bytes == self.begin);
        found.map(|at| from + at)
    }

    /// How many of the last bytes may be the beginning of our line.
    fn overlap(&self) -> usize {
        let most = self.held.len().min(self.begin.len() - 1);
        let fits = |length: &usize| {
            self.begin
                .starts_with(&self.held[self.held.len() - length..])
        };
        (1..=most).rev().find(fits).unwrap_or(0)
    }
}

enum ExitCodeWord {
    Is(i32),
    MayCome,
    IsNot,
}

fn code(rest: &[u8]) -> ExitCodeWord {
    let digits = &rest[..rest.len().min(LONGEST_CODE)];
    match digits.iter().position(|byte| *byte == b'\n') {
        Some(end) => std::str::from_utf8(&digits[..end])
            .ok()
            .and_then(|text| text.parse().ok())
            .map_or(ExitCodeWord::IsNot, ExitCodeWord::Is),
        None if rest.len() < LONGEST_CODE && rest.iter().all(u8::is_ascii_digit) => {
            ExitCodeWord::MayCome
        }
        None => ExitCodeWord::IsNot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> (String, Option<i32>) {
        let mut reader = LastWord::new("word");
        let mut said = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            let (own, code) = reader.push(piece);
            said.extend(own);
            if code.is_some() {
                return (String::from_utf8(said).unwrap(), code);
            }
        }
        said.extend(reader.rest());
        (String::from_utf8(said).unwrap(), None)
    }

    #[test]
    fn the_last_line_is_found_however_it_was_cut() {
        for (text, said, code) in [
            ("one\ntwo\nword 42\n", "one\ntwo", Some(42)),
            ("\nword 0\nrest", "", Some(0)),
            ("\nword x\n\nword 7\n", "\nword x\n", Some(7)),
            ("\nword \nword 3\n", "\nword ", Some(3)),
            ("\n\nword 1\n", "\n", Some(1)),
            ("no end\nwor", "no end\nwor", None),
            (
                "\nword 99999999999999999\n",
                "\nword 99999999999999999\n",
                None,
            ),
        ] {
            for size in 1..=text.len() {
                assert_eq!(
                    read(text, size),
                    (said.to_owned(), code),
                    "{text:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn a_line_that_begins_like_ours_and_has_no_end_is_not_collected() {
        let mut reader = LastWord::new("word");
        let mut said = reader.push(b"\nword ").0.len();
        for _ in 0..1000 {
            said += reader.push(&[b'1'; 4096]).0.len();
            assert!(
                reader.held.len() < 64,
                "{} bytes are held",
                reader.held.len()
            );
        }
        assert!(said + reader.held.len() == 6 + 1000 * 4096);
        assert_eq!(reader.push(b"\nword 5\n").1, Some(5));
    }
}
