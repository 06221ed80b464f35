//! What still runs in a sandbox after an agent was told to stop.
//!
//! What an agent reports of its own work is its word: one may start a program and say nothing, or say that it has
//! ended. So the processes are looked at from beside it, before a prompt and after a stop.

use std::collections::BTreeSet;
use std::time::Duration;

use hermetic_warden::client::WardenServices;
use hermetic_warden::protocol::PathAt;
use tokio::time::{Instant, sleep};

/// For what an agent has told to end to be gone. An agent that ends its tools well is kept for the next message.
const SETTLING: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// The processes of a sandbox at one moment, by their numbers.
///
/// All of them and not those below the agent: one that detaches itself is below nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StandingProcesses(BTreeSet<u64>);

impl StandingProcesses {
    /// `None` where they cannot be seen.
    pub(crate) async fn of(warden: &WardenServices) -> Option<Self> {
        let listed = warden.list_dir(PathAt::anywhere("/proc")).await.ok()?;
        let names = listed.iter().map(|entry| entry.name.0.as_slice());
        Self::read(names)
    }

    /// The names in `/proc` that are numbers. Where there is none, it is not what it should be.
    fn read<'a>(names: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let numbers = names.filter_map(|name| std::str::from_utf8(name).ok()?.parse().ok());
        let found: BTreeSet<_> = numbers.collect();
        (!found.is_empty()).then_some(Self(found))
    }

    /// Whether nothing runs that did not then. Waits a moment for what is about to end.
    pub(crate) async fn are_all(&self, warden: &WardenServices) -> bool {
        let given_up = Instant::now() + SETTLING;
        loop {
            let Some(now) = Self::of(warden).await else {
                return false;
            };
            if now.0.is_subset(&self.0) {
                return true;
            }
            if Instant::now() >= given_up {
                return false;
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_the_numbers_and_no_number_is_no_answer() {
        let read =
            |names: &[&str]| StandingProcesses::read(names.iter().map(|name| name.as_bytes()));
        let before = read(&["1", "17", "self", "cpuinfo"]).unwrap();
        assert_eq!(before, read(&["17", "1"]).unwrap());
        assert_ne!(before, read(&["1", "17", "18"]).unwrap());
        assert_eq!(read(&["cpuinfo"]), None);
        assert_eq!(read(&[]), None);
    }
}
