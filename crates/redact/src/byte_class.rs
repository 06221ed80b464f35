//! Kinds of bytes that secrets are runs of, and a memory of the runs found.
//!
//! A text may hold thousands of places that each ask how far the same run goes (`eyJeyJeyJ…`).
//! Remembering the last run of each kind makes that one look at every byte instead of thousands.

use std::cell::Cell;

/// A kind of bytes that secrets are runs of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteClass {
    Alnum,
    Hex,
    /// Upper-case letters and digits.
    Upper,
    /// Letters, digits, `_`, `-`: what most keys are made of.
    Token,
    /// The same and dots.
    Dotted,
    /// The same as a token, and slashes.
    Path,
    /// What stands behind `Bearer`.
    Credential,
    /// A token with dots, slashes and padding in it.
    Padded,
    /// Base64 in either alphabet, with its padding.
    Base64,
    /// What `crypt` writes.
    Crypt,
    /// What a key that was drawn is made of.
    Drawn,
    /// A value that no quotes surround.
    Bare,
    /// The rest of a line.
    Line,
    /// The rest of a line, or of the string it stands in.
    Unquoted,
    /// A string up to its closing quote, an escape or the end of the line.
    InDouble,
    InSingle,
    InBacktick,
}

const CLASSES: usize = ByteClass::InBacktick as usize + 1;

/// Remembers the last run of each class: where it starts and where it stops being known, in the whole stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassRuns([Cell<(usize, usize)>; CLASSES]);

impl ByteClass {
    const ALL: [Self; CLASSES] = [
        Self::Alnum,
        Self::Hex,
        Self::Upper,
        Self::Token,
        Self::Dotted,
        Self::Path,
        Self::Credential,
        Self::Padded,
        Self::Base64,
        Self::Crypt,
        Self::Drawn,
        Self::Bare,
        Self::Line,
        Self::Unquoted,
        Self::InDouble,
        Self::InSingle,
        Self::InBacktick,
    ];

    #[inline]
    pub(crate) fn fits(self, byte: u8) -> bool {
        CLASSES_OF[usize::from(byte)] >> self as u32 & 1 == 1
    }

    const fn holds(self, byte: u8) -> bool {
        let is_break = matches!(byte, b'\r' | b'\n');
        let is_token = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Token => is_token,
            Self::Dotted => is_token || byte == b'.',
            Self::Path => is_token || byte == b'/',
            Self::Credential => {
                is_token
                    || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=' | b':')
                    || matches!(byte, b'!' | b'$' | b'%' | b'*' | b'|')
            }
            Self::Padded => is_token || matches!(byte, b'.' | b'/' | b'=' | b'+'),
            Self::Base64 => is_token || matches!(byte, b'+' | b'/' | b'='),
            Self::Crypt => is_token || matches!(byte, b'.' | b'/' | b'$' | b',' | b'=' | b'+'),
            Self::Drawn => is_token || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'%'),
            Self::Bare => {
                !byte.is_ascii_whitespace()
                    && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b')')
                    && !matches!(byte, b'}' | b']' | b'|' | b'<' | b'>' | b'#')
            }
            Self::Line => !is_break,
            Self::Unquoted => !is_break && !matches!(byte, b'"' | b'\'' | b'`'),
            Self::InDouble => !is_break && byte != b'"' && byte != b'\\',
            Self::InSingle => !is_break && byte != b'\'' && byte != b'\\',
            Self::InBacktick => !is_break && byte != b'`' && byte != b'\\',
        }
    }
}

/// A bit for each class that a byte belongs to: runs are long, and a look into a table is short.
static CLASSES_OF: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut class = 0;
        while class < CLASSES {
            if ByteClass::ALL[class].holds(byte) {
                table[byte as usize] |= 1 << ByteClass::ALL[class] as u32;
            }
            class += 1;
        }
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

impl ClassRuns {
    /// Where the run of `class` from `from` ends within `bytes`, which stand at `place` of the stream.
    pub(crate) fn end(&self, class: ByteClass, bytes: &[u8], from: usize, place: usize) -> usize {
        let memory = &self.0[class as usize];
        let (start, known) = memory.get();
        let asked = place + from;
        let within = (start..=known).contains(&asked);
        let resume = if within { known - place } else { from };
        let rest = bytes.get(resume..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !class.fits(*byte))
            .unwrap_or(rest.len());
        let end = resume + length;
        memory.set((if within { start } else { asked }, place + end));
        end
    }
}
