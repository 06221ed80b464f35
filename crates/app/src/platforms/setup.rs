//! What somebody is asked who sets a platform up.

use hermetic_types::Platform;

use super::PLATFORMS;

/// One platform's questions. The answers become lines of `.env`.
#[derive(Clone, Copy, Debug)]
pub struct PlatformSetup {
    pub platform: Platform,
    /// As people call it.
    pub title: &'static str,
    /// Where every step outside of this program stands.
    pub guide: &'static str,
    pub values: &'static [SetupValue],
    /// Lines that are written without a question.
    pub fixed: &'static [(&'static str, &'static str)],
    /// The variable that names who may write.
    pub allowlist: &'static str,
    /// How people are named in it, and where to find that.
    pub person: &'static str,
}

/// A value that a platform cannot do without, unless it has others.
#[derive(Clone, Copy, Debug)]
pub struct SetupValue {
    pub variable: &'static str,
    /// What it is and where it is found.
    pub what: &'static str,
    /// It is not shown while it is typed.
    pub is_secret: bool,
    /// The variables that together make this one needless.
    pub instead: &'static [&'static str],
}

/// Those of every platform that this build speaks and that can be set up by questions.
pub fn setups() -> impl Iterator<Item = &'static PlatformSetup> {
    PLATFORMS.iter().filter_map(|spoken| spoken.setup)
}
