//! Modal's own client, driving the server that our backend is tested against: it is no mirror of
//! ours alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::stories;

const PACKAGE: &str = "modal==1.6.3";

stories! {
    async fn modals_own_client_drives_the_same_server(lab: &Lab) {
        let name = "modals_own_client_drives_the_same_server";
        let Some(python) = tokio::task::spawn_blocking(move || python(name)).await.unwrap() else {
            return;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vendor.py");
        let played = tokio::process::Command::new(python)
            .arg(script)
            // Nothing of this machine's own Modal, if it has one, and no other address.
            .env("MODAL_SERVER_URL", &lab.service.url)
            .env("MODAL_CONFIG_PATH", lab.home.path().join("none.toml"))
            .env_remove("MODAL_TOKEN_ID")
            .env_remove("MODAL_TOKEN_SECRET")
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
        assert!(out.contains("all of it worked"), "{out}\n{err}");
        assert!(lab.service.count("SandboxCreateV2") == 2 && lab.service.count("TaskExecStart") >= 3);
    }
}

/// A Python that has the package, installed once into the target folder.
fn python(test: &str) -> Option<PathBuf> {
    let ready = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace('=', "-"));
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
        let done = Command::new(step[0]).args(&step[1..]).output();
        if !done.as_ref().is_ok_and(|done| done.status.success()) {
            let _ = fs::remove_dir_all(&made);
            eprintln!("SKIP: {test}: {PACKAGE} cannot be installed from PyPI");
            return None;
        }
    }
    // Somebody else may have been faster; then theirs is used.
    if fs::rename(&made, &ready).is_err() {
        let _ = fs::remove_dir_all(&made);
    }
    Some(program)
}
