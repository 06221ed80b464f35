//! Which kernels a sandbox can be built on.

use std::fs;

use hermetic_sandbox::BackendError;

/// The first with `mount_setattr`, by which a whole tree is made read-only in one step. Everything newer
/// that is used (Landlock, flags of memory files) is used where it is there.
const OLDEST: (u32, u32) = (5, 12);

/// Refuses a kernel that is older. One whose version makes no sense is tried.
pub(super) fn check() -> Result<(), BackendError> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    judge(release.trim())
}

fn judge(release: &str) -> Result<(), BackendError> {
    match version(release) {
        Some(found) if found < OLDEST => Err(BackendError::Unavailable {
            what: format!(
                "this kernel is Linux {release}, and a native sandbox needs {}.{} or later",
                OLDEST.0, OLDEST.1
            ),
            remedy: "boot a newer kernel, or let commands run elsewhere (terminal.backend: docker or ssh)"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_too_old_is_refused_by_its_name() {
        for old in [
            "4.18.0-553.el8_10.x86_64",
            "5.11.22",
            "3.10.0-1160.el7",
            "5.4",
        ] {
            let error = judge(old).unwrap_err();
            assert!(error.to_string().contains(old), "{error}");
            assert!(error.to_string().contains("5.12 or later"), "{error}");
        }
        for new in [
            "5.12.0",
            "5.14.0-503.el9.x86_64",
            "5.15.0-119-generic",
            "6.1.0-25-cloud-amd64",
            "6.12+rc1",
            "10.0",
            "",
            "a kernel of somebody's",
        ] {
            assert!(judge(new).is_ok(), "{new}");
        }
    }
}
