use std::path::Path;

use super::*;

/// A machine made of these files.
fn machine(files: &[(&str, &str)]) -> MachineSurroundings {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    MachineSurroundings::below(root.path(), Path::new("/usr/bin/hermetic"))
}

const RELEASE: &str = "proc/sys/kernel/osrelease";
const LSM: &str = "sys/kernel/security/lsm";

#[test]
fn ubuntus_restriction_is_named_with_the_file_that_lifts_it() {
    let ubuntu = machine(&[
        (RELEASE, "6.8.0-45-generic\n"),
        (
            "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1\n",
        ),
        ("proc/sys/kernel/unprivileged_userns_clone", "1\n"),
        ("proc/sys/user/max_user_namespaces", "63480\n"),
    ]);
    let remedy = ubuntu.namespaces_remedy();
    assert!(remedy.contains("/etc/apparmor.d/hermetic"), "{remedy}");
    assert!(
        remedy.contains("profile hermetic /usr/bin/hermetic"),
        "{remedy}"
    );
    assert_eq!(ubuntu.profile_remedy(), Some(remedy));
    assert!(
        ubuntu.to_string().contains("restricted by AppArmor"),
        "{ubuntu}"
    );
    let before = machine(&[(
        "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "0\n",
    )]);
    assert_eq!(before.profile_remedy(), None);
}

#[test]
fn a_switch_that_is_off_is_the_one_named_and_for_good() {
    for (file, switch) in [
        (
            "proc/sys/user/max_user_namespaces",
            "user.max_user_namespaces=15000",
        ),
        (
            "proc/sys/kernel/unprivileged_userns_clone",
            "kernel.unprivileged_userns_clone=1",
        ),
    ] {
        let remedy = machine(&[(RELEASE, "6.1.0-25-amd64"), (file, "0\n")]).namespaces_remedy();
        assert!(remedy.contains(&format!("sysctl -w {switch}")), "{remedy}");
        assert!(
            remedy.contains("/etc/sysctl.d/60-hermetic.conf"),
            "{remedy}"
        );
    }
}

#[test]
fn a_hardened_container_is_told_apart_by_its_engine() {
    let filtered = (
        "proc/self/status",
        "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n",
    );
    for (mark, kind, word) in [
        (".dockerenv", ContainerKind::Docker, "seccomp=unconfined"),
        ("run/.containerenv", ContainerKind::Podman, "unmask=ALL"),
        (
            "var/run/secrets/kubernetes.io/serviceaccount/token",
            ContainerKind::Kubernetes,
            "seccompProfile",
        ),
        ("dev/incus/sock", ContainerKind::Lxc, "nesting=true"),
    ] {
        let found = machine(&[(mark, ""), filtered]);
        assert_eq!(found.container, Some(kind));
        assert!(found.namespaces_remedy().contains(word), "{found:?}");
        assert!(!found.namespaces_remedy().contains("sysctl"), "{found:?}");
        // A switch that is off as well belongs to the host, where nobody inside can set it.
        let switched_off = machine(&[(mark, ""), ("proc/sys/user/max_user_namespaces", "0")]);
        let remedy = switched_off.namespaces_remedy();
        assert!(
            remedy.starts_with("on the host of this container"),
            "{remedy}"
        );
        assert!(
            remedy.contains("user.max_user_namespaces=15000") && remedy.contains(word),
            "{remedy}"
        );
        assert!(found.to_string().contains(&kind.to_string()), "{found}");
        assert!(found.to_string().contains("filter"), "{found}");
    }
    let proxmox = machine(&[("run/systemd/container", "lxc\n")]);
    assert!(proxmox.namespaces_remedy().contains("nesting=1"));
    let service = machine(&[filtered]);
    assert!(service.namespaces_remedy().contains("RestrictNamespaces="));
    let plain = machine(&[("proc/self/status", "Seccomp:\t0\n")]);
    assert!(!plain.to_string().contains("filter"), "{plain}");
}

#[test]
fn a_kernel_without_landlock_says_where_it_is_switched_on() {
    let off = machine(&[
        (RELEASE, "6.1.0-25-amd64"),
        (LSM, "lockdown,capability,yama,apparmor\n"),
    ]);
    let remedy = off.landlock_remedy();
    assert!(
        remedy.contains("lsm=landlock,lockdown,capability,yama,apparmor"),
        "{remedy}"
    );
    assert!(remedy.contains("/etc/default/grub"), "{remedy}");
    let old = machine(&[(RELEASE, "5.12.4"), (LSM, "capability")]).landlock_remedy();
    assert!(
        old.contains("a kernel since 5.13") && old.contains("5.12.4"),
        "{old}"
    );
    let refused = machine(&[
        (RELEASE, "6.1.0"),
        (LSM, "landlock,yama"),
        (".dockerenv", ""),
    ]);
    assert!(refused.landlock_remedy().contains("seccomp=unconfined"));
}

#[test]
fn wsl_is_known_by_its_kernel_and_mended_by_its_files() {
    let wsl = machine(&[
        (RELEASE, "5.15.153.1-microsoft-standard-WSL2\n"),
        (LSM, "capability"),
    ]);
    assert!(wsl.is_wsl && wsl.to_string().contains("WSL 2"), "{wsl}");
    assert!(wsl.landlock_remedy().contains(".wslconfig"));
    assert!(wsl.groups_remedy().unwrap().contains("/etc/wsl.conf"));
    assert_eq!(machine(&[(RELEASE, "6.1.0")]).groups_remedy(), None);
}

#[test]
fn a_machine_that_tells_nothing_is_none_of_these() {
    let empty = machine(&[]);
    assert_eq!((empty.container, empty.is_wsl), (None, false));
    assert!(empty.namespaces_remedy().starts_with("allow unprivileged"));
}
