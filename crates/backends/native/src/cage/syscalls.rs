//! The system calls a sandbox may make, as data.
//!
//! An allowlist: a call that is not named here fails with EPERM, and one that did not exist when
//! this was written fails with ENOSYS, so that programs fall back to what they used before it.
//! Left out on purpose, because each opened a way out of some sandbox: `io_uring_*`,
//! `userfaultfd`, `bpf`, `perf_event_open`, `keyctl`, `add_key`, `request_key`, `ptrace`,
//! `process_vm_*`, `process_madvise`, `pidfd_getfd`, `kcmp`, the mount family, `pivot_root`,
//! `chroot`, `unshare`, `setns`, `open_by_handle_at`, `name_to_handle_at`, `fanotify_*`,
//! `memfd_secret`, `modify_ldt`, `move_pages`, modules, kexec, quotas, swap, clocks, `syslog`.
//! `io_setup` and huge pages are refused because each draws on one table of the whole host, which a
//! single sandbox could empty. Where no cgroup counts memory, more is refused: see [`FilterOptions`].

mod calls;
#[cfg(test)]
mod generic_table;
mod judged;
mod steps;

use calls::allowed;
use judged::judged;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use steps::{known_architecture, ranges, search, unknown_to_programs};

use super::step_failure::StepFailure;

/// What the filter depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterOptions {
    /// Pinned to CPUs, which may then not be left: nothing else bounds the time.
    pub(crate) pinned: bool,
    /// A cgroup counts System V segments, semaphores and queues. Where none does they are memory
    /// that nobody sees from outside: refused, or allowed in pieces so small that the kernel's own
    /// bounds on their number make a small sum.
    pub(crate) memory_is_counted: bool,
}

pub(crate) fn filter(allowance: FilterOptions) -> Result<(), StepFailure> {
    let program = program(allowance).map_err(|_| broken())?;
    apply_filter(&program).map_err(|_| broken())
}

fn broken() -> StepFailure {
    StepFailure::new(
        "load the system call filter",
        std::io::Error::last_os_error(),
    )
}

fn program(allowance: FilterOptions) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let judged = SeccompFilter::new(
        judged(allowance)?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        arch,
    )?;
    let judged: BpfProgram = judged.try_into()?;
    // Jumps are relative, so the judged calls can follow as they are.
    let mut program = known_architecture();
    program.extend(unknown_to_programs());
    program.extend(search(&ranges(allowed(allowance))));
    program.extend(judged);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_judged_is_not_allowed_unseen() {
        for memory_is_counted in [false, true] {
            let allowance = FilterOptions {
                pinned: false,
                memory_is_counted,
            };
            let allowed = allowed(allowance);
            for call in judged(allowance).unwrap().keys() {
                assert!(!allowed.contains(call), "{call}");
            }
        }
    }
}
