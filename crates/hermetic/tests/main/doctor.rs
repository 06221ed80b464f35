//! `hermetic doctor --attack`.

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
    use std::process::Command;
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
