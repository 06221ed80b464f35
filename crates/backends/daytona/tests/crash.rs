//! A gateway that is killed, at every step of a sandbox's life.

use std::process::Command;

use hermetic_sandbox::conformance::crash;
use hermetic_sandbox::{Backend, SandboxPersistence, SandboxSpec};

use crate::lab::{self, stories, until};

/// Set for a process that is to be killed: its installation, and where its Daytona is.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_GATEWAY";

/// Not a test of its own: what the story below kills.
#[tokio::test]
async fn plays_the_gateway() {
    let Ok(words) = std::env::var(PLAYS) else {
        return;
    };
    let (installation, url) = words.split_once(' ').unwrap();
    let installation = installation.parse().unwrap();
    let daytona = lab::at(url.to_owned(), &installation, |_| {});
    crash::play(&daytona, || SandboxSpec {
        persistence: SandboxPersistence::Kept,
        ..lab::spec(&installation)
    })
    .await;
}

stories! {
    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        let player = || {
            let mut player = Command::new(std::env::current_exe().unwrap());
            player
                .args(["--exact", "crash::plays_the_gateway", "--nocapture"])
                .env(PLAYS, format!("{} {}", lab.installation, lab.server.url()));
            player
        };
        crash::at_every_step(player, async |step| {
            // What was on its way when the maker died arrives, or not.
            until("everything is settled", async || {
                crash::settle(&lab.with(|_| {})).await;
                lab.server.names().is_empty()
            }).await;
            assert_eq!(lab.daytona.list().await.unwrap(), [], "{step}");
        }).await;
    }
}
