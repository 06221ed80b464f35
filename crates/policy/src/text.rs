//! Text that is known, or known but for holes.

use std::ops::BitOr;

/// Stands in a text where something is that only running the command would tell.
pub(crate) const HOLE: char = '\u{F8FF}';

/// What a word will be when the shell is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) s: String,
    pub(crate) taint: Taint,
    /// An unquoted `*`, `?` or `[` is in it.
    pub(crate) glob: bool,
}

/// Where bytes came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taint(u8);

impl Taint {
    pub(crate) const NONE: Self = Self(0);
    /// Downloaded.
    pub(crate) const NETWORK: Self = Self(1);
    /// Out of a file that holds a secret.
    pub(crate) const SECRET: Self = Self(2);
    /// Out of some file.
    pub(crate) const FILE: Self = Self(4);
    /// Decoded from something that was not readable.
    pub(crate) const DECODED: Self = Self(8);
    /// Out of the environment.
    pub(crate) const ENVIRONMENT: Self = Self(16);

    /// Printed by a tool whose output is meant for `eval`: `ssh-agent`, `direnv hook`.
    pub(crate) const SHELL_ENV: Self = Self(32);
    /// Out of a variable that is called like a secret.
    pub(crate) const NAMED: Self = Self(128);
    /// The project, packed.
    pub(crate) const ARCHIVE: Self = Self(64);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Taint {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Text {
    pub(crate) fn known(s: impl Into<String>) -> Self {
        Self {
            s: s.into(),
            ..Self::default()
        }
    }

    pub(crate) fn unknown(taint: Taint) -> Self {
        Self {
            s: HOLE.to_string(),
            taint,
            glob: false,
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.s.contains(HOLE)
    }

    pub(crate) fn push(&mut self, other: &Self) {
        self.s.push_str(&other.s);
        self.taint = self.taint | other.taint;
        self.glob |= other.glob;
    }

    /// For people and globs: a hole is an ellipsis.
    pub(crate) fn shown(&self) -> String {
        self.s.replace(HOLE, "…")
    }
}

/// Bytes on their way from one command to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    /// `None` if only running would tell.
    pub(crate) known: Option<String>,
    pub(crate) taint: Taint,
    /// Whether anything was connected at all.
    pub(crate) present: bool,
}

impl Flow {
    pub(crate) fn known(text: impl Into<String>) -> Self {
        Self {
            known: Some(text.into()),
            taint: Taint::NONE,
            present: true,
        }
    }

    pub(crate) fn unknown(taint: Taint) -> Self {
        Self {
            known: None,
            taint,
            present: true,
        }
    }

    pub(crate) fn into_text(self) -> Text {
        match self.known {
            Some(text) => Text {
                s: text.trim_end_matches('\n').to_owned(),
                taint: self.taint,
                glob: false,
            },
            None => Text::unknown(self.taint),
        }
    }
}
