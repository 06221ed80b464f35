//! What a person can do about a step that failed.

use std::io;

use hermetic_sandbox::BackendError;

use super::surroundings::MachineSurroundings;

/// The steps that a host may be set up to forbid; everything else is a failure of ours.
pub(super) fn explain(step: &str, errno: i32) -> BackendError {
    let source = io::Error::from_raw_os_error(errno);
    let forbidden = matches!(
        source
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(
            rustix::io::Errno::PERM
                | rustix::io::Errno::ACCESS
                | rustix::io::Errno::NOSPC
                | rustix::io::Errno::USERS
                | rustix::io::Errno::NOSYS
                | rustix::io::Errno::INVAL
        )
    );
    let machine = MachineSurroundings::of_this_machine();
    let remedy = match step {
        _ if !forbidden => None,
        "make the namespaces" | "make the user namespace" => Some(machine.namespaces_remedy()),
        "mount /proc" => Some(match machine.container {
            Some(container) => container.remedy(),
            None => "/proc is partly covered here, as in a container: start that container with \
                     --security-opt systempaths=unconfined"
                .to_owned(),
        }),
        "load the system call filter" => {
            Some("use a kernel built with CONFIG_SECCOMP_FILTER".to_owned())
        }
        "restrict with landlock" => Some(machine.landlock_remedy()),
        _ => machine.profile_remedy(),
    };
    match remedy {
        Some(remedy) => BackendError::Unavailable {
            what: format!("cannot {step}: {source}"),
            remedy,
        },
        None => BackendError::failed(step, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_a_forbidden_layer() {
        let error = explain("make /usr", rustix::io::Errno::IO.raw_os_error());
        assert!(matches!(error, BackendError::Failed { .. }));
    }
}
