//! A gateway that is killed in the middle of whatever it does, and the next one that settles it.
//!
//! The gateway to be killed is a copy of the test's own program that plays it; it says what it is
//! about to do, so that it is killed there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::story::{begin, sh};
use crate::{Backend, FoundState, Sandbox, SandboxSpec};

const STEPS: [&str; 5] = ["create", "run", "stop", "resume", "destroy"];
const SIGN: &str = "about to ";

/// Any moment of a step will do; these are spread over it.
const MOMENTS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(40),
    Duration::from_millis(200),
];

/// Every step of one sandbox's life after the other, for ever. `spec` is of a sandbox that is kept.
pub async fn play(backend: &dyn Backend, spec: impl Fn() -> SandboxSpec) {
    loop {
        let spec = spec();
        let greet = async |link| {
            let greeted = Sandbox::greet(&spec.id, backend.description(), link).await;
            greeted.expect("its warden answers")
        };
        say("create");
        let link = backend.create(&spec).await.expect("it is created");
        let sandbox = greet(link).await;
        say("run");
        sh(&sandbox, "echo mine > note").await;
        let running = begin(&sandbox, "echo ready; sleep 600").await;
        say("stop");
        backend.stop(&spec.id).await.expect("it is stopped");
        drop((running, sandbox));
        say("resume");
        let link = backend.resume(&spec).await.expect("it comes back");
        let sandbox = greet(link).await;
        assert_eq!(sh(&sandbox, "cat note").await, "mine\n");
        say("destroy");
        backend.destroy(&spec.id).await.expect("it is destroyed");
    }
}

/// Kills a player at every step, and has each death settled.
pub async fn at_every_step(player: impl Fn() -> Command, settle: impl AsyncFn(&str)) {
    for step in STEPS {
        for moment in MOMENTS {
            let mut gateway = player()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("a copy of this program starts");
            let said = gateway.stdout.take().expect("it is piped");
            let reached = tokio::task::spawn_blocking(move || {
                let sign = format!("{SIGN}{step}");
                let lines = BufReader::new(said).lines().map_while(Result::ok);
                lines.into_iter().any(|line| line.ends_with(&sign))
            });
            let reached = reached.await.expect("its lines are read");
            tokio::time::sleep(moment).await;
            gateway.kill().expect("it is killed");
            gateway.wait().expect("it is gone");
            assert!(reached, "it never came to {step}");
            settle(step).await;
        }
    }
}

/// What the next gateway does: everything that is left is seen, and destroyed by its name.
pub async fn settle(backend: &dyn Backend) {
    super::story::until("nobody is at it any more", async || {
        let found = backend.list().await.expect("sandboxes can be listed");
        found.iter().all(|found| found.state != FoundState::Busy)
    })
    .await;
    for found in backend.list().await.expect("sandboxes can be listed") {
        let destroyed = backend.destroy(&found.id).await;
        destroyed.unwrap_or_else(|error| panic!("{found:?}: {error}"));
    }
}

fn say(step: &str) {
    let _ = writeln!(std::io::stdout(), "{SIGN}{step}");
}
