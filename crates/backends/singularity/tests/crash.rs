//! Killed in the middle: the gateway, and the processes of an instance.

use std::path::{Path, PathBuf};
use std::process::Command;

use hermetic_sandbox::conformance::crash;
use hermetic_sandbox::{Backend, SandboxPersistence, SandboxSpec};

use crate::lab::{child_of, leftovers, open, processes_of, spec, stories, until};

/// Set for a copy of this test that plays the gateway to be killed.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_GATEWAY";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plays_the_gateway() {
    let Some(role) = std::env::var(PLAYS).ok() else {
        return;
    };
    let (installation, state) = role.split_once(' ').unwrap();
    let installation = installation.parse().unwrap();
    let backend = open(Path::new(state), &installation);
    crash::play(&backend, || SandboxSpec {
        persistence: SandboxPersistence::Kept,
        ..spec(&installation)
    })
    .await;
}

stories! {
    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        let player = || {
            let mut player = Command::new(std::env::current_exe().unwrap());
            player
                .args(["--exact", "crash::plays_the_gateway", "--nocapture"])
                .env(PLAYS, format!("{} {}", lab.installation, lab.folder.path().display()));
            player
        };
        crash::at_every_step(player, async |step| {
            let next = lab.reopened();
            crash::settle(&next).await;
            assert_eq!(next.list().await.unwrap(), [], "{step}");
            let installation = lab.installation.to_string();
            until("every process is gone", async || processes_of(&installation).is_empty()).await;
            assert_eq!(leftovers(lab.folder.path()), Vec::<PathBuf>::new(), "{step}");
        }).await;
    }

    async fn whichever_process_of_an_instance_dies_nothing_is_left(lab: &Lab) {
        for number in 0..3 {
            let spec = lab.spec();
            let sandbox = lab.create(&spec).await;
            let name = spec.id.to_string();
            let keeper = *processes_of(&name).first().expect("an instance has a keeper");
            let init = child_of(keeper).expect("and a first process");
            let cage = child_of(init).expect("which has a cage");
            let victim = [keeper, init, cage][number];
            let pid = rustix::process::Pid::from_raw(victim).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            drop(sandbox);
            lab.backend.destroy(&spec.id).await.unwrap();
            until("every process is gone", async || processes_of(&name).is_empty()).await;
            assert!(!std::path::Path::new(&format!("/proc/{init}/exe")).exists());
        }
    }
}
