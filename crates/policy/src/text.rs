//! Text that is known, or known but for holes.
//!
//! A hole is what only running the command would tell. Not every hole is the same: what `date`
//! prints is no path, what `find src` prints lies below `src`, and what a file says may be anything.
//! The three marks keep them apart, so that a question is asked about the last kind only.

use std::ops::BitOr;

/// Stands in a text where anything may be: a path from `/`, `..`, several words.
pub(crate) const HOLE: char = '\u{F8FF}';

/// Stands where a name or a number is: no slash, no `..`.
pub(crate) const NAME: char = '\u{F8FE}';

/// Stands where a path is that does not leave the folder written before it.
pub(crate) const BELOW: char = '\u{F8FD}';

pub(crate) fn is_hole(c: char) -> bool {
    matches!(c, HOLE | NAME | BELOW)
}

/// For people and globs: a hole is an ellipsis.
pub(crate) fn shown(text: &str) -> String {
    text.replace(is_hole, "…")
}

/// What a word will be when the shell is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpandedText {
    pub(crate) s: String,
    pub(crate) taint: TaintSet,
    /// An unquoted `*`, `?` or `[` is in it.
    pub(crate) glob: bool,
}

/// Where bytes came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaintSet(u16);

impl TaintSet {
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
    /// The number of every process.
    pub(crate) const EVERY_PROCESS: Self = Self(256);
    /// The name of every package.
    pub(crate) const EVERY_PACKAGE: Self = Self(32768);
    /// The name of every disk.
    pub(crate) const EVERY_DISK: Self = Self(512);
    /// An argument of a function whose call is not in sight.
    pub(crate) const ARGUMENT: Self = Self(1024);
    /// `$9` where nobody gave arguments: nothing at all, as a rule.
    pub(crate) const UNSET: Self = Self(2048);
    /// The number of a process that the machine relies on.
    pub(crate) const VITAL: Self = Self(8192);
    /// What a person copied a moment ago.
    pub(crate) const CLIPBOARD: Self = Self(16384);
    /// Known only if a variable has no value yet: `${x:-this}`.
    pub(crate) const OPEN: Self = Self(4096);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for TaintSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl ExpandedText {
    pub(crate) fn known(s: impl Into<String>) -> Self {
        Self {
            s: s.into(),
            ..Self::default()
        }
    }

    pub(crate) fn unknown(taint: TaintSet) -> Self {
        Self {
            s: HOLE.to_string(),
            taint,
            glob: false,
        }
    }

    /// A hole that is bounded as a [`TextShape`] says.
    pub(crate) fn shaped(shape: &TextShape, taint: TaintSet) -> Self {
        Self {
            s: shape.hole(),
            taint,
            glob: false,
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.s.contains(is_hole)
    }

    /// Whether anything may stand somewhere in it.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.s.contains(HOLE)
    }

    /// Whether nothing of it is known.
    pub(crate) fn is_hole(&self) -> bool {
        let s = self.s.trim();
        !s.is_empty() && s.chars().all(is_hole)
    }

    pub(crate) fn push(&mut self, other: &Self) {
        self.s.push_str(&other.s);
        self.taint = self.taint | other.taint;
        self.glob |= other.glob;
    }

    pub(crate) fn shown(&self) -> String {
        shown(&self.s)
    }
}

/// What can be said of a text that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TextShape {
    #[default]
    Anything,
    /// Names or numbers.
    Names,
    /// Paths that stay below this folder, or below wherever they are used if it is empty.
    Below(String),
}

impl TextShape {
    pub(crate) fn hole(&self) -> String {
        match self {
            Self::Anything => HOLE.to_string(),
            Self::Names => NAME.to_string(),
            Self::Below(folder) if folder.is_empty() => BELOW.to_string(),
            Self::Below(folder) => format!("{}/{BELOW}", folder.trim_end_matches('/')),
        }
    }

    /// The shape of a text that is the one or the other.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Names, Self::Below(folder)) | (Self::Below(folder), Self::Names)
                if folder.is_empty() =>
            {
                Self::Below(folder)
            }
            _ => Self::Anything,
        }
    }
}

/// Bytes on their way from one command to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteFlow {
    /// `None` if only running would tell.
    pub(crate) known: Option<String>,
    pub(crate) taint: TaintSet,
    /// Whether anything was connected at all.
    pub(crate) present: bool,
    /// What is known of it if it is not known itself.
    pub(crate) shape: TextShape,
    /// Several commands read from it in turn, so where the next one begins is not known.
    pub(crate) shared: bool,
}

impl ByteFlow {
    pub(crate) fn known(text: impl Into<String>) -> Self {
        Self {
            known: Some(text.into()),
            taint: TaintSet::NONE,
            present: true,
            shape: TextShape::Anything,
            shared: false,
        }
    }

    pub(crate) fn unknown(taint: TaintSet) -> Self {
        Self {
            known: None,
            taint,
            present: true,
            shape: TextShape::Anything,
            shared: false,
        }
    }

    pub(crate) fn shaped(shape: TextShape, taint: TaintSet) -> Self {
        Self {
            shape,
            ..Self::unknown(taint)
        }
    }

    /// This and then that.
    pub(crate) fn then(self, more: Self, longest: usize) -> Self {
        let taint = self.taint | more.taint;
        let shape = match (&self.known, &more.known) {
            (Some(text), None) if text.trim().is_empty() => more.shape,
            (None, Some(text)) if text.trim().is_empty() => self.shape,
            (None, None) => self.shape.or(more.shape),
            _ => TextShape::Anything,
        };
        let known = match (self.known, more.known) {
            (Some(mut all), Some(more)) if all.len() < longest => {
                all.push_str(&more);
                Some(all)
            }
            _ => None,
        };
        Self {
            known,
            taint,
            present: true,
            shape,
            shared: false,
        }
    }

    /// The same for several commands that read from it in turn.
    pub(crate) fn shared(&self) -> Self {
        let lines = self.known.as_deref().unwrap_or_default().trim_end();
        Self {
            shared: lines.contains('\n'),
            ..self.clone()
        }
    }

    pub(crate) fn into_text(self) -> ExpandedText {
        match self.known {
            Some(text) => ExpandedText {
                s: text.trim_end_matches('\n').to_owned(),
                taint: self.taint,
                glob: false,
            },
            None => ExpandedText::shaped(&self.shape, self.taint),
        }
    }
}
