//! Constructors that are for one purpose, held to it.
//!
//! A type proves that something was judged, and someone has to be able to make the proof. What no type can
//! say is that a person really typed a command: so the few places that may say so are listed here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::Workspace;

/// A call, and the only files that may make it, tests and benches included.
struct Reserved {
    call: &'static str,
    files: &'static [&'static str],
}

/// What a person typed comes from `hermetic exec`, or goes into a terminal of the dashboard.
const TYPED: Reserved = Reserved {
    call: "Cleared::typed_by_operator(",
    files: &[
        "crates/app/src/terminal_opener.rs",
        "crates/hermetic/src/commands/exec/judging.rs",
    ],
};

/// Whoever greets a warden may run anything. Outside of tests that is `sandbox`, which takes `Cleared`.
const GREETED: Reserved = Reserved {
    call: "Warden::greet(",
    files: &[
        "crates/sandbox/src/distant.rs",
        "crates/sandbox/src/finished.rs",
        "crates/sandbox/src/sandbox.rs",
        "crates/sandbox/src/trial.rs",
        "crates/testkit/src/backend/tests.rs",
    ],
};

/// A sandbox is made in one place, which sees it out when that fails; living ones are reached in two more.
const REACHED: Reserved = Reserved {
    call: "Sandbox::greet(",
    files: &[
        "crates/hermetic/src/commands/backup/workspaces.rs",
        "crates/hermetic/src/commands/sandbox.rs",
        "crates/sandbox/src/conformance/crash.rs",
        "crates/sandbox/src/conformance/lab.rs",
        "crates/sandbox/src/conformance/life.rs",
        "crates/session/src/making.rs",
    ],
};

#[test]
fn sandboxes_are_made_in_one_place() {
    let found = elsewhere(&REACHED, &["src"]);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn only_what_a_person_typed_is_cleared_as_typed() {
    let found = elsewhere(&TYPED, &["src", "tests", "benches", "examples"]);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn only_a_sandbox_holds_a_warden_that_runs_commands() {
    let found = elsewhere(&GREETED, &["src"]);
    assert!(found.is_empty(), "{found:#?}");
}

/// Files that make the call and may not. That the listed ones make it shows that the search works.
fn elsewhere(reserved: &Reserved, folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the repository");
    let mut callers = Vec::new();
    for package in &Workspace::ours().packages {
        // This package names the calls to look for them.
        if package.name != "promises" {
            for folder in folders {
                collect(&package.folder.join(folder), reserved.call, &mut callers);
            }
        }
    }
    let (allowed, found): (Vec<_>, Vec<_>) = callers
        .iter()
        .map(|file| file.strip_prefix(&root).expect("ours").to_owned())
        .partition(|file| reserved.files.iter().any(|name| file == Path::new(name)));
    assert_eq!(allowed.len(), reserved.files.len(), "{allowed:?}");
    found
}

fn collect(folder: &Path, call: &str, callers: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, call, callers);
        } else if path.extension().is_some_and(|kind| kind == "rs")
            && fs::read_to_string(&path).expect("text").contains(call)
        {
            callers.push(path);
        }
    }
}
