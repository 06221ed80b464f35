//! Killed in the middle: the gateway, and the processes of an instance.

use std::process::Stdio;
use std::time::Duration;

use hermetic_sandbox::{Backend, FoundState, Lifeline};

use crate::lab::{child_of, open, processes_of, spec, stories, until};

/// Set for a copy of this test that plays the gateway to be killed.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_GATEWAY";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plays_the_gateway() {
    let Some(role) = std::env::var(PLAYS).ok() else {
        return;
    };
    let mut words = role.splitn(3, ' ');
    let installation = words.next().unwrap().parse().unwrap();
    let tied = words.next().unwrap() == "tied";
    let backend = open(std::path::Path::new(words.next().unwrap()), &installation);
    loop {
        let mut spec = spec(&installation);
        if tied {
            spec.lifeline = Lifeline::Creator;
        }
        let link = backend.create(&spec).await.unwrap();
        backend.destroy(&spec.id).await.unwrap();
        drop(link);
    }
}

stories! {
    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        for (number, after) in [40, 150, 320, 500, 900].into_iter().enumerate() {
            let tied = ["ledger", "tied"][number % 2];
            let role = format!("{} {tied} {}", lab.installation, lab.folder.path().display());
            let mut gateway = tokio::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "crash::plays_the_gateway", "--nocapture"])
                .env(PLAYS, role)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Any moment will do; these are spread over a create and a destroy.
            tokio::time::sleep(Duration::from_millis(after)).await;
            gateway.kill().await.unwrap();

            let next = lab.reopened();
            until("nobody is at it any more", async || {
                let found = next.list().await.unwrap();
                found.iter().all(|found| found.state != FoundState::Busy)
            }).await;
            for found in next.list().await.unwrap() {
                next.destroy(&found.id).await.unwrap();
            }
            assert_eq!(next.list().await.unwrap(), []);
            let installation = lab.installation.to_string();
            until("every process is gone", async || processes_of(&installation).is_empty()).await;
        }
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
