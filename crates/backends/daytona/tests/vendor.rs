//! Daytona's own client drives the same service, so that the service is no mirror of ours.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::lab::{STORY_TIMEOUT, skip};
use crate::server::{KEY, Server};

/// The shapes were taken from it.
const PACKAGE: &str = "daytona==0.226.1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_client_drives_the_service() {
    const STORY: &str = "the_vendors_client_drives_the_service";
    if let Some(why) = skip() {
        return eprintln!("SKIP: {STORY}: {why}");
    }
    let Some(python) = python().await else {
        return eprintln!("SKIP: {STORY}: {PACKAGE} cannot be installed from PyPI");
    };
    let server = Server::start().await;
    let home = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vendor.py");
    let running = Command::new(python)
        .arg(script)
        .args([&server.url(), KEY])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        // A proxy of the machine's would see what is meant for loopback.
        .env("NO_PROXY", "127.0.0.1")
        .current_dir(home.path())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(STORY_TIMEOUT * 3, running).await;
    let output = output.expect("it ends").unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(out.contains("all of it worked"), "{out}\n{err}");
    assert_eq!(server.names(), Vec::<String>::new());
}

/// A Python that has the package, installed once into the target folder.
async fn python() -> Option<PathBuf> {
    let ready = Path::new(env!("CARGO_TARGET_TMPDIR")).join("daytona-0-226-1");
    let program = ready.join("bin/python");
    if program.exists() {
        return Some(program);
    }
    let made = ready.with_extension(format!("{}.part", std::process::id()));
    let folder = made.to_str()?;
    let inner = format!("{folder}/bin/python");
    let steps: [&[&str]; 2] = [
        &["python3", "-m", "venv", folder],
        &[&inner, "-m", "pip", "install", "-q", PACKAGE],
    ];
    for step in steps {
        let done = Command::new(step[0]).args(&step[1..]).output().await;
        if !done.as_ref().is_ok_and(|done| done.status.success()) {
            let _ = fs::remove_dir_all(&made);
            return None;
        }
    }
    // Somebody else may have been faster; then theirs is used.
    if fs::rename(&made, &ready).is_err() {
        let _ = fs::remove_dir_all(&made);
    }
    Some(program)
}
