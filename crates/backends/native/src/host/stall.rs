//! A sandbox that stands still at the limit of its memory.
//!
//! The kernel ends a process of a group when nothing in it can be given up any more. Shared memory cannot be,
//! without swap, but the code of running programs can: it is thrown out and read again at once, and each such
//! round counts as progress. So for minutes nothing is ended and nothing gets on, while a processor and the
//! disk are kept busy. The kernel measures that (`memory.pressure`, cgroup version 2), so it is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it is asked. The figure is a mean of ten seconds.
const INTERVAL: Duration = Duration::from_secs(2);
/// Per cent of the time in which no process of the group got on for want of memory. One that only reads
/// pages of its own programs again and again has 30 to 50, since the reading itself is no waiting.
const STANDSTILL: f64 = 25.0;
/// How long that has to last. A program that fits into its memory after all has read what it needs by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known about one sandbox whose memory a group bounds.
#[derive(Debug)]
pub(super) struct MemoryStall {
    group: PathBuf,
    next: Option<Instant>,
    since: Option<Instant>,
}

impl MemoryStall {
    /// None where the kernel does not measure it.
    pub(super) fn of(groups: &[PathBuf]) -> Option<Self> {
        let group = groups.iter().find(|group| stalled_share(group).is_some())?;
        Some(Self {
            group: group.clone(),
            next: None,
            since: None,
        })
    }

    /// Whether it has stood still for so long that it will not get on by itself.
    pub(super) fn is_stuck(&mut self, now: Instant) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + INTERVAL);
        let stands = is_full(&self.group)
            && stalled_share(&self.group).is_some_and(|share| share >= STANDSTILL);
        if !stands {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) >= PATIENCE
    }
}

/// Of what it may have, more than nine tenths cannot be given up. A program that only reads large files is at
/// its limit all the time and waits for memory too, but gets on.
fn is_full(group: &Path) -> bool {
    let limit = fs::read_to_string(group.join("memory.max")).ok();
    let limit: Option<u64> = limit.and_then(|text| text.trim().parse().ok());
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let held = field(&stat, "anon ") + field(&stat, "shmem ");
    limit.is_some_and(|limit| held >= limit - limit / 10)
}

fn field(stat: &str, name: &str) -> u64 {
    let line = stat.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

/// Of the last ten seconds, the part in which all its processes waited for memory.
fn stalled_share(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("memory.pressure")).ok()?;
    let full = text
        .lines()
        .find_map(|line| line.strip_prefix("full avg10="))?;
    full.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of a group that may have 1,000 bytes.
    fn tell(group: &Path, held: u64, share: &str) {
        let stat = format!("anon 100\nfile 900\nshmem {}\nanon_thp 0\n", held - 100);
        let pressure = format!(
            "some avg10=99.00 avg60=1.00 avg300=0.00 total=5\nfull avg10={share} avg60=0.00 avg300=0.00 total=2\n"
        );
        for (name, text) in [
            ("memory.stat", stat.as_str()),
            ("memory.max", "1000\n"),
            ("memory.pressure", &pressure),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
    }

    #[test]
    fn who_stands_still_at_the_limit_for_long_is_stuck() {
        let group = tempfile::tempdir().unwrap();
        tell(group.path(), 950, "42.10");
        let mut stall = MemoryStall::of(&[PathBuf::from("/nowhere"), group.path().into()]).unwrap();
        let start = Instant::now();
        assert!(!stall.is_stuck(start));
        assert!(!stall.is_stuck(start + PATIENCE / 2));
        assert!(stall.is_stuck(start + PATIENCE));
    }

    #[test]
    fn whoever_gets_on_or_can_give_something_up_is_not() {
        let group = tempfile::tempdir().unwrap();
        for (held, share) in [(950, "3.00"), (500, "90.00")] {
            tell(group.path(), 950, "90.00");
            let mut stall = MemoryStall::of(&[group.path().into()]).unwrap();
            let start = Instant::now();
            assert!(!stall.is_stuck(start));
            tell(group.path(), held, share);
            assert!(!stall.is_stuck(start + PATIENCE));
            // From then on it is counted anew.
            tell(group.path(), 950, "90.00");
            assert!(!stall.is_stuck(start + 2 * PATIENCE));
            assert!(stall.is_stuck(start + 3 * PATIENCE));
        }
    }

    #[test]
    fn without_a_figure_or_a_limit_nobody_is_stuck() {
        let group = tempfile::tempdir().unwrap();
        assert!(MemoryStall::of(&[group.path().into()]).is_none());
        tell(group.path(), 950, "90.00");
        fs::write(group.path().join("memory.max"), "max\n").unwrap();
        let mut stall = MemoryStall::of(&[group.path().into()]).unwrap();
        let start = Instant::now();
        assert!(!stall.is_stuck(start) && !stall.is_stuck(start + 2 * PATIENCE));
    }
}
