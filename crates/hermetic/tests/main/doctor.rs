//! `hermetic doctor --attack`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::hermetic::Hermetic;

#[test]
fn everything_holds_in_a_sandbox_that_is_attacked() {
    let hermetic = Hermetic::new().variable("SECRET_OF_THE_LAUNCHER", "open sesame, please");
    if !hermetic.has_sandboxes("everything_holds_in_a_sandbox_that_is_attacked") {
        return;
    }
    let ended = hermetic.run(&["doctor", "--attack", "--backend", "native", "--json"]);
    let said = ended.json();
    let wrong: Vec<_> = said["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|attempt| attempt["state"] != "held")
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((ended.code, said["held"].as_bool()), (0, Some(true)));
    for attempt in [
        "using a capability",
        "a file of the host",
        "a process of a neighbour",
        "a variable of the launcher",
        "more memory than allowed",
        "something that outlives its sandbox",
    ] {
        assert!(ended.out.contains(attempt), "{attempt}: {}", ended.out);
    }
    let left = hermetic.run(&["sandbox", "list", "--json"]).json();
    assert_eq!(left.as_array().map(Vec::len), Some(0), "{left}");
}

/// The program that attacks, run where there is no seal at all: it has to notice.
#[test]
fn it_notices_where_nothing_holds() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("warden");
    std::fs::write(&program, hermetic_embedded::WARDEN).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let bait = folder.path().join("bait");
    std::fs::write(&bait, "").unwrap();
    let output = Command::new(&program)
        .args(["attack", "try", "host.token=worm"])
        .arg(format!("host.file={}", bait.display()))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for open in [
        "calling the kernel unfiltered\topen",
        "system calls that sandboxes were left by\topen",
        "a file of the host\topen",
    ] {
        assert!(said.contains(open), "{open}: {said}");
    }
    assert!(said.contains("a file of a neighbour\tuntried"), "{said}");
}

#[test]
fn where_there_is_no_boundary_it_says_so() {
    let ended = Hermetic::new().run(&["doctor", "--attack", "--backend", "local"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.out.contains("OPEN"), "{}", ended.out);
}

#[test]
fn planted_weaknesses_are_found_on_this_machine() {
    let config = "approvals: {mode: off}\n\
         terminal: {container_memory: 9000000000, container_disk: 9000000000}\n\
         gateway: {terminal_backend: local, disk_reserve: 10, dashboard: {host: 0.0.0.0}, \
         egress: {mode: open, allow_private: true}}\n\
         security: {redact_secrets: false}\n\
         telegram: {token: '1:a', allowed_users: ['*', '7']}\n";
    let hermetic = Hermetic::with(config).file(".env", "X=1\n");
    let dotenv = hermetic.path(".env");
    fs::set_permissions(dotenv, fs::Permissions::from_mode(0o644)).unwrap();
    let ended = hermetic.run(&["doctor", "--production", "--json"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    let said = ended.json();
    assert_eq!(said["ready"], false);
    let weak: Vec<_> = said["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["state"] == "weak")
        .map(|line| line["check"].as_str().unwrap())
        .collect();
    for check in [
        "sandbox",
        "egress",
        "approvals",
        "secrets",
        "limits",
        "people",
        "roles",
        "modes",
        "ports",
        "disk",
        "backups",
        "audit",
    ] {
        assert!(weak.contains(&check), "{check}: {weak:?}");
    }
    // What is mended is not called weak any more.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    assert_eq!(hermetic.run(&["backup", file.to_str().unwrap()]).code, 0);
    let dotenv = hermetic.path(".env");
    fs::set_permissions(dotenv, fs::Permissions::from_mode(0o600)).unwrap();
    // With a store, in a folder that nobody else can enter.
    assert_eq!(hermetic.run(&["pairing", "list"]).code, 0);
    let said = hermetic.run(&["doctor", "--production"]).out;
    assert!(!said.contains("WEAK    backups"), "{said}");
    assert!(!said.contains("WEAK    modes"), "{said}");
}

/// In a user namespace of the test's own, whose switch is off as a hardened host's is.
#[test]
fn a_machine_without_user_namespaces_is_told_which_switch_it_is() {
    let hermetic = Hermetic::new();
    let program = hermetic.command(&[]);
    let script = "echo 0 >/proc/sys/user/max_user_namespaces || exit 99; \
        exec setpriv --ambient-caps=-all --inh-caps=-all \"$@\"";
    let mut off = Command::new("unshare");
    off.args([
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        "--keep-caps",
    ])
    .args(["sh", "-c", script, "sh"])
    .arg(program.get_program())
    .args(["doctor", "--backend", "native"])
    .env("HERMES_HOME", hermetic.path(""));
    let ended = off.output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(99) || errors.contains("unshare:") {
        eprintln!("SKIP: a_machine_without_user_namespaces_is_told_which_switch_it_is: {errors}");
        return;
    }
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{said}{errors}");
    assert!(said.contains("MISSING namespaces"), "{said}");
    assert!(
        said.contains("sysctl -w user.max_user_namespaces=15000"),
        "{said}"
    );
}
