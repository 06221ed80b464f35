//! The system calls a sandbox may make, as data.
//!
//! An allowlist: a call that is not named here fails with EPERM, and one that did not exist when
//! this was written fails with ENOSYS, so that programs fall back to what they used before it.
//! Left out on purpose, because each opened a way out of some sandbox: `io_uring_*`,
//! `userfaultfd`, `bpf`, `perf_event_open`, `keyctl`, `add_key`, `request_key`, `ptrace`,
//! `process_vm_*`, `process_madvise`, `pidfd_getfd`, `kcmp`, the mount family, `pivot_root`,
//! `chroot`, `unshare`, `setns`, `open_by_handle_at`, `name_to_handle_at`, `fanotify_*`,
//! `memfd_secret`, `modify_ldt`, `move_pages`, modules, kexec, quotas, swap, clocks, `syslog`.

mod calls;
#[cfg(test)]
mod generic_table;
mod judged;
mod steps;

use calls::allowed;
use judged::judged;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use steps::{known_architecture, ranges, search, unknown_to_programs};

use super::snag::Snag;
use crate::plan::Pin;

/// Who is pinned to a CPU may not leave it.
pub(crate) fn filter(pin: Option<&Pin>) -> Result<(), Snag> {
    let program = program(pin).map_err(|_| broken())?;
    apply_filter(&program).map_err(|_| broken())
}

fn broken() -> Snag {
    Snag::new(
        "load the system call filter",
        std::io::Error::last_os_error(),
    )
}

fn program(pin: Option<&Pin>) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let judged = SeccompFilter::new(
        judged()?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        arch,
    )?;
    let judged: BpfProgram = judged.try_into()?;
    // Jumps are relative, so the judged calls can follow as they are.
    let mut program = known_architecture();
    program.extend(unknown_to_programs());
    program.extend(search(&ranges(allowed(pin))));
    program.extend(judged);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_judged_is_not_allowed_unseen() {
        let allowed = allowed(None);
        for call in judged().unwrap().keys() {
            assert!(!allowed.contains(call), "{call}");
        }
    }
}
