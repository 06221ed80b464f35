//! What a person can do about a step that failed.

use std::fs;
use std::io;

use hermetic_sandbox::BackendError;

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
    let remedy = match step {
        _ if !forbidden => None,
        "make the namespaces" | "make the user namespace" => Some(namespaces(&sysctl)),
        "mount /proc" => Some(
            "/proc is partly covered here, as in a container: start that container with \
             --security-opt systempaths=unconfined"
                .to_owned(),
        ),
        "load the system call filter" => {
            Some("use a kernel built with CONFIG_SECCOMP_FILTER".to_owned())
        }
        "restrict with landlock" => Some("boot with landlock in the lsm= list".to_owned()),
        _ => apparmor(&sysctl),
    };
    match remedy {
        Some(remedy) => BackendError::Unavailable {
            what: format!("cannot {step}: {source}"),
            remedy,
        },
        None => BackendError::failed(step, source),
    }
}

type ReadSysctl<'a> = dyn Fn(&str) -> Option<String> + 'a;

fn namespaces(sysctl: &ReadSysctl<'_>) -> String {
    if sysctl("user/max_user_namespaces").as_deref() == Some("0") {
        return "sysctl -w user.max_user_namespaces=15000".to_owned();
    }
    if sysctl("kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return "sysctl -w kernel.unprivileged_userns_clone=1".to_owned();
    }
    apparmor(sysctl).unwrap_or_else(|| {
        "allow unprivileged user namespaces (in a container: --security-opt seccomp=unconfined), \
         or raise the user.max_*_namespaces limits"
            .to_owned()
    })
}

/// Ubuntu since 23.10 lets a plain user make a namespace and then takes its powers away.
fn apparmor(sysctl: &ReadSysctl<'_>) -> Option<String> {
    let restricted = sysctl("kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1");
    restricted.then(|| {
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for \
         hermetic with `userns,` in it"
            .to_owned()
    })
}

fn sysctl(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_that_is_off_is_the_one_named() {
        let only = |wanted: &'static str, value: &'static str| {
            move |name: &str| (name == wanted).then(|| value.to_owned())
        };
        let off = only("user/max_user_namespaces", "0");
        assert_eq!(namespaces(&off), "sysctl -w user.max_user_namespaces=15000");
        let debian = only("kernel/unprivileged_userns_clone", "0");
        assert!(namespaces(&debian).contains("unprivileged_userns_clone=1"));
        let ubuntu = only("kernel/apparmor_restrict_unprivileged_userns", "1");
        assert!(namespaces(&ubuntu).contains("AppArmor profile"));
        assert!(apparmor(&|_| None).is_none());
    }

    #[test]
    fn a_full_disk_is_not_a_forbidden_layer() {
        let error = explain("make /usr", rustix::io::Errno::IO.raw_os_error());
        assert!(matches!(error, BackendError::Failed { .. }));
    }
}
