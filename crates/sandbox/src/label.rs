//! What a backend writes beside a sandbox that lives where others look too: a container's labels, a pod's
//! annotations, a service's tags. The names differ from place to place; what is said is the same everywhere, so
//! that it is read as it was written.

use serde::{Deserialize, Serialize};

use crate::host::ProcessHandle;
use crate::{SandboxLifeline, SandboxPersistence};

const KEPT: &str = "kept";
const CREATOR: &str = "creator";

impl SandboxPersistence {
    /// Nothing is written of one that is not kept.
    pub fn label(self) -> Option<&'static str> {
        (self == Self::Kept).then_some(KEPT)
    }

    pub fn of_label(text: Option<&str>) -> Self {
        match text {
            Some(KEPT) => Self::Kept,
            _ => Self::Ephemeral,
        }
    }
}

impl SandboxLifeline {
    /// Nothing is written of one that outlives its creator.
    pub fn label(self) -> Option<&'static str> {
        (self == Self::Creator).then_some(CREATOR)
    }

    pub fn of_label(text: Option<&str>) -> Self {
        match text {
            Some(CREATOR) => Self::Creator,
            _ => Self::Ledger,
        }
    }
}

/// What can be said from here of the process that made a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MakerState {
    Alive,
    Gone,
    /// It ran on another machine, in another container of this one or before this one was started, or is not
    /// known.
    OutOfSight,
}

/// A process, and where its number means it. Two gateways in containers of one machine share its boot and have
/// numbers of their own: to each, the other's number is another's or nobody's.
#[derive(Serialize, Deserialize)]
struct SandboxMaker {
    #[serde(flatten)]
    process: ProcessHandle,
    #[serde(default)]
    pid_namespace: String,
}

impl SandboxMaker {
    fn own() -> Option<Self> {
        let own = i32::try_from(std::process::id()).ok()?;
        Some(Self {
            process: ProcessHandle::observe(own)?,
            pid_namespace: pid_namespace()?,
        })
    }
}

/// The kernel's name for it, of which there is one at a time.
fn pid_namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_string_lossy().into_owned())
}

impl MakerState {
    /// This process, as others find it. With it they tell a create under way from a dead one.
    pub fn label() -> Option<String> {
        serde_json::to_string(&SandboxMaker::own()?).ok()
    }

    pub fn of_label(text: Option<&str>) -> Self {
        let maker = text.and_then(|text| serde_json::from_str(text).ok());
        maker.map_or(Self::OutOfSight, |maker| Self::look(&maker))
    }

    fn look(maker: &SandboxMaker) -> Self {
        if pid_namespace().is_none_or(|own| own != maker.pid_namespace) {
            return Self::OutOfSight;
        }
        match maker.process.open() {
            Some(_) => Self::Alive,
            // A number of another boot says nothing of who has it now.
            None if maker.process.is_of_this_boot() => Self::Gone,
            None => Self::OutOfSight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_the_same() {
        for kept in [SandboxPersistence::Kept, SandboxPersistence::Ephemeral] {
            assert_eq!(SandboxPersistence::of_label(kept.label()), kept);
        }
        for lifeline in [SandboxLifeline::Creator, SandboxLifeline::Ledger] {
            assert_eq!(SandboxLifeline::of_label(lifeline.label()), lifeline);
        }
        let own = MakerState::label();
        assert_eq!(MakerState::of_label(own.as_deref()), MakerState::Alive);
        for unknown in [None, Some(""), Some("{}")] {
            assert_eq!(MakerState::of_label(unknown), MakerState::OutOfSight);
        }
    }

    #[test]
    fn of_a_maker_in_another_container_of_this_machine_nobody_knows_whether_it_lives() {
        let mut own = SandboxMaker::own().unwrap();
        assert_eq!(MakerState::look(&own), MakerState::Alive);
        // A number that nobody has.
        own.process.pid = i32::MAX;
        assert_eq!(MakerState::look(&own), MakerState::Gone);
        own.pid_namespace = "pid:[1]".to_owned();
        assert_eq!(MakerState::look(&own), MakerState::OutOfSight);
        let mut older = serde_json::to_value(&own).unwrap();
        older.as_object_mut().unwrap().remove("pid_namespace");
        let older = serde_json::from_value(older).unwrap();
        assert_eq!(MakerState::look(&older), MakerState::OutOfSight);
    }
}
