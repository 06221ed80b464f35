//! How large a sandbox is: the provider counts in whole cores and GiB.

use std::time::Duration;

use hermetic_sandbox::BackendError;
use hermetic_types::SandboxLimits;

/// The most disk the provider gives.
pub(crate) const MOST_DISK: u64 = 10;

/// Whose figure the disk limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWish {
    /// Ours: what the provider cannot give is left out.
    Default,
    /// The operator wrote it, and gets it or a refusal.
    Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SandboxSize {
    pub(crate) cores: u64,
    pub(crate) memory: u64,
    pub(crate) disk: u64,
}

impl SandboxSize {
    pub(crate) fn of(limits: &SandboxLimits, wish: DiskWish) -> Result<Self, BackendError> {
        let disk = gib(limits.disk_bytes);
        if disk > MOST_DISK && wish == DiskWish::Written {
            return Err(BackendError::Refused {
                what: format!("a disk of {disk} GiB"),
                why: format!(
                    "Daytona gives {MOST_DISK} GiB at most; write terminal.container_disk: 10GB, \
                     or leave it out"
                ),
            });
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float cast saturates, and the figure is a number of cores"
        )]
        let cores = limits.cpu.ceil() as u64;
        Ok(Self {
            cores: cores.max(1),
            memory: gib(limits.memory_bytes),
            disk: disk.min(MOST_DISK),
        })
    }
}

/// Minutes, rounded up: zero would be never.
pub(crate) fn minutes(lifetime: Duration) -> u64 {
    lifetime.as_secs().div_ceil(60).max(1)
}

fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(cpu: f64, memory_mib: u64, disk_mib: u64) -> SandboxLimits {
        SandboxLimits {
            cpu,
            memory_bytes: memory_mib << 20,
            disk_bytes: disk_mib << 20,
            ..SandboxLimits::default()
        }
    }

    #[test]
    fn sizes_are_rounded_up() {
        for (limits, cores, memory, disk) in [
            (limits(0.0, 1, 1), 1, 1, 1),
            (limits(1.0, 1024, 2048), 1, 1, 2),
            (limits(1.1, 1025, 2049), 2, 2, 3),
            (limits(f64::NAN, 5120, 10240), 1, 5, 10),
        ] {
            let size = SandboxSize::of(&limits, DiskWish::Written).unwrap();
            assert_eq!((size.cores, size.memory, size.disk), (cores, memory, disk));
        }
    }

    #[test]
    fn a_default_that_is_too_large_is_capped_and_a_wish_is_refused() {
        let large = limits(1.0, 1024, 51_200);
        assert_eq!(SandboxSize::of(&large, DiskWish::Default).unwrap().disk, 10);
        let refused = SandboxSize::of(&large, DiskWish::Written).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a disk of 50 GiB is refused: Daytona gives 10 GiB at most; write \
             terminal.container_disk: 10GB, or leave it out"
        );
    }

    #[test]
    fn a_lifetime_is_never_no_lifetime() {
        let figures = [(0, 1), (1, 1), (60, 1), (61, 2), (3600, 60)];
        for (seconds, expected) in figures {
            assert_eq!(minutes(Duration::from_secs(seconds)), expected);
        }
    }
}
