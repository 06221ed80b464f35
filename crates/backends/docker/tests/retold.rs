//! The same stories, told again on another engine or over another way to one.
//!
//! This test program is started once more, with an environment that leads there.

use std::process::{Output, Stdio};

use tokio::process::Command;

/// The stories to tell: a chosen few in an ordinary check, all of them in a long one.
pub(crate) fn told<'a>(short: &'a [&'a str], whole: &'a [&'a str]) -> &'a [&'a str] {
    match hermetic_sandbox::conformance::long() {
        true => whole,
        false => short,
    }
}

/// Tells the stories whose names contain one of the words; all of them have to end well.
pub(crate) async fn retell(words: &[&str], environment: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args(words)
        .args(["--test-threads", "2", "--nocapture"])
        .args(["--skip", "retold"])
        // A variable of ours must not lead elsewhere.
        .env_remove("DOCKER_CONTEXT")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let Output {
        status,
        stdout,
        stderr,
    } = again.output().await.unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{environment:?}\n{said}\n{errors}");
    // A story that was left out there is left out here, in the same words.
    for line in errors.lines().filter(|line| line.starts_with("SKIP: ")) {
        eprintln!("{line}");
    }
    let told = said.lines().any(|line| line.ends_with("... ok"));
    assert!(told, "no story was told: {said}");
}
