//! What is in the folder after whatever happened.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use hermetic_agent_programs::{
    AgentPreset, FetchError, InstallError, PackageClient, install, remove,
};

use crate::{Lab, PROGRAM, small_lock, small_preset};

#[test]
fn what_was_installed_can_be_checked_by_anybody() {
    let lab = Lab::new();
    let installed = lab.install(&lab.npm_with("one")).unwrap();
    assert_eq!((installed.files, installed.version.as_str()), (3, "1.0.0"));
    let folder = lab.folder();
    assert_eq!(folder.installed("small").unwrap().unwrap(), installed);
    assert!(folder.verify("small", &installed).unwrap().is_empty());
    let sums = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "../checksums"])
        .current_dir(folder.tree("small"))
        .status();
    assert!(sums.unwrap().success());

    fs::write(folder.tree("small").join(PROGRAM), "other").unwrap();
    let difference = folder.verify("small", &installed).unwrap();
    assert_eq!(difference.changed, [PROGRAM]);
    // The list itself is checked as well.
    let list = folder.root().join("small/checksums");
    fs::write(&list, fs::read_to_string(&list).unwrap() + "\n").unwrap();
    assert!(folder.verify("small", &installed).is_err());
}

#[test]
fn one_that_fails_leaves_the_one_before() {
    let lab = Lab::new();
    lab.install(&lab.npm_with("one")).unwrap();
    let half = "mkdir -p node_modules/small; echo half > node_modules/small/index.js; exit 1";
    assert!(lab.install(&lab.npm("npm-half", half)).is_err());
    assert_eq!(lab.words(), "one\n");
    assert_eq!(lab.names(), ["lock", "small"]);
    // One that ends well and brought nothing is none either.
    let empty = lab.install(&lab.npm("npm-empty", "true"));
    assert!(matches!(empty, Err(InstallError::NoProgram { .. })));
    assert_eq!(lab.words(), "one\n");
}

/// A sandbox that runs sees the folder it was shown, whatever its name is by now.
#[test]
fn the_one_before_stays_until_the_next_change() {
    let lab = Lab::new();
    let previous = lab
        .folder()
        .root()
        .join(".previous-small/tree")
        .join(PROGRAM);
    lab.install(&lab.npm_with("one")).unwrap();
    let shown = fs::File::open(lab.folder().tree("small")).unwrap();
    lab.install(&lab.npm_with("two")).unwrap();
    assert_eq!(lab.words(), "two\n");
    assert_eq!(fs::read_to_string(&previous).unwrap(), "one\n");
    let still = rustix::fs::openat(
        &shown,
        PROGRAM,
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    );
    assert!(still.is_ok());
    lab.install(&lab.npm_with("three")).unwrap();
    assert_eq!(fs::read_to_string(&previous).unwrap(), "two\n");
    let preset = small_preset(&small_lock("sha512-x"));
    assert!(remove(&lab.folder(), &preset).unwrap());
    assert_eq!(lab.names(), ["lock"]);
    assert!(!remove(&lab.folder(), &preset).unwrap());
}

#[test]
fn what_a_killed_one_left_is_never_used_and_swept_by_the_next() {
    let lab = Lab::new();
    let left = lab.folder().root().join(".staging-small/tree");
    fs::create_dir_all(left.join("node_modules/small")).unwrap();
    fs::write(left.join(PROGRAM), "half").unwrap();
    assert!(lab.folder().installed("small").unwrap().is_none());
    lab.install(&lab.npm_with("one")).unwrap();
    assert_eq!(lab.names(), ["lock", "small"]);
    assert_eq!(lab.words(), "one\n");
}

/// Each npm fails where it finds another one's mark.
#[test]
fn two_at_once_take_turns() {
    let lab = Lab::new();
    let mark = lab.path("mark");
    let script = format!(
        "mkdir {0}; mkdir -p node_modules/small; echo x > {PROGRAM}; rmdir {0}",
        mark.display()
    );
    let npm = lab.npm("npm-alone", &script);
    let ready = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                ready.wait();
                lab.install(&npm).unwrap();
            });
        }
    });
    let installed = lab.folder().installed("small").unwrap().unwrap();
    assert!(lab.folder().verify("small", &installed).unwrap().is_empty());
}

#[test]
fn what_went_wrong_is_said_with_a_remedy() {
    let lab = Lab::new();
    let full = lab.npm("npm-full", "echo 'npm error code ENOSPC' >&2; exit 1");
    let why = lab.install(&full).unwrap_err();
    assert!(matches!(why, InstallError::Fetch(FetchError::DiskFull)));
    assert!(why.remedy().contains("make room"));
    let none = PackageClient::new(&lab.path("no-such-npm"));
    let why = lab.install(&none).unwrap_err();
    assert!(matches!(why, InstallError::Fetch(FetchError::NoNpm)));
    assert!(why.remedy().contains("apt install npm"));

    let preset = AgentPreset {
        megabytes: 1 << 40,
        ..small_preset(&small_lock("sha512-x"))
    };
    let npm = lab.npm_with("one");
    let why = install(&lab.folder(), &preset, None, &npm, &mut |_| ()).unwrap_err();
    assert!(matches!(why, InstallError::NoRoom { .. }), "{why}");
    for version in ["", "latest", "1.0.0; rm", "-g", "file:.", &"1".repeat(99)] {
        let why = install(&lab.folder(), &preset, Some(version), &npm, &mut |_| ()).unwrap_err();
        assert!(matches!(why, InstallError::Version { .. }), "{version}");
    }
}

/// A package is strangers' bytes: what is no plain file is not shown to a sandbox.
#[test]
fn a_package_with_a_link_in_it_is_not_installed() {
    let lab = Lab::new();
    let script = format!(
        "mkdir -p node_modules/small; echo x > {PROGRAM}; ln -s /etc/shadow node_modules/small/link"
    );
    assert!(lab.install(&lab.npm("npm-link", &script)).is_err());
    assert_eq!(lab.names(), ["lock"]);
}

/// Secrets in our environment are not npm's business.
#[test]
fn npm_sees_little_of_our_environment() {
    let lab = Lab::new();
    let script = format!("mkdir -p node_modules/small; env > {PROGRAM}");
    lab.install(&lab.npm("npm-env", &script)).unwrap();
    let words = lab.words();
    assert!(words.contains("npm_config_ignore_scripts=true"), "{words}");
    // Every test process has this one.
    assert!(!words.contains("CARGO_MANIFEST_DIR"), "{words}");
}

/// A sandbox that is older than two updates still sees the tree it began with.
#[test]
fn while_a_gateway_runs_no_tree_is_taken_from_under_a_sandbox() {
    let lab = Lab::new();
    lab.install(&lab.npm_with("one")).unwrap();
    let seen = fs::File::open(lab.folder().tree("small")).unwrap();
    let preset = small_preset(&small_lock("sha512-x"));
    for words in ["two", "three", "four"] {
        let npm = lab.npm_with(words);
        install(&lab.folder().in_use(), &preset, None, &npm, &mut |_| ()).unwrap();
    }
    let program = format!("/proc/self/fd/{}/{PROGRAM}", seen.as_raw_fd());
    assert_eq!(fs::read_to_string(&program).unwrap(), "one\n");
    assert_eq!(lab.words(), "four\n");
    assert_eq!(
        lab.names(),
        [
            ".previous-small",
            ".previous-small.2",
            ".previous-small.3",
            "lock",
            "small"
        ]
    );
    // Once nobody looks, one is enough.
    lab.install(&lab.npm_with("five")).unwrap();
    assert_eq!(lab.names(), [".previous-small", "lock", "small"]);
    assert!(fs::read_to_string(&program).is_err());
}
