//! Coming into the world and leaving it, also when somebody is killed on the way.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hermetic_modal::wire::NetworkAccessType;
use hermetic_sandbox::conformance::{DOORS, assert_closed, crash};
use hermetic_sandbox::{
    Backend, BackendError, FoundState, SandboxLifeline, SandboxPersistence, SandboxSpec,
};
use hermetic_types::InstallationId;
use serde_json::json;

use crate::lab::{self, begin, greet, open, sh, stories, until};

stories! {
    async fn what_is_tied_goes_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        until("it ended", async || lab.service.plane.cells().is_empty()).await;
    }

    async fn one_that_nobody_comes_back_to_ends_itself(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(1);
        let sandbox = lab.create(&spec).await;
        let _running = begin(&sandbox, "echo ready; sleep 600").await;
        sandbox.warden().close();
        drop(sandbox);
        until("it ended by itself", async || lab.service.plane.cells().is_empty()).await;
    }

    async fn it_is_sealed_tagged_and_bounded_as_asked(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let cells = lab.service.plane.cells();
        let made = &cells[0].definition;
        let access = made.network_access.as_ref().unwrap();
        assert_eq!(access.network_access_type(), NetworkAccessType::Blocked);
        assert_eq!(made.name.as_deref(), Some(format!("hermetic-{}", spec.id).as_str()));
        assert!(made.timeout_secs > 0 && made.idle_timeout_secs.is_some());
        assert_eq!(sh(&sandbox, "pwd; ls -A").await, "/workspace\n");
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    /// Whatever Modal's own isolation lets through, our list of system calls holds inside it.
    async fn every_door_is_closed(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_closed(&sh(&sandbox, &format!("python3 - <<'END'\n{DOORS}\nEND")).await);
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_caller_who_gives_up_leaves_nothing(lab: &Lab) {
        for millis in [1, 30, 200, 800] {
            let spec = lab.spec();
            let made = tokio::time::timeout(Duration::from_millis(millis), lab.modal.create(&spec)).await;
            if made.is_ok() {
                // Faster than the caller is impatient.
                lab.modal.destroy(&spec.id).await.unwrap();
                continue;
            }
            // Seen first or not, in the end it is gone; a later one of the name proves the end.
            until("nothing is left", async || {
                lab.service.plane.cells().is_empty() && lab.modal.create(&spec).await.is_ok()
            }).await;
            lab.modal.destroy(&spec.id).await.unwrap();
        }
    }

    async fn an_id_that_is_taken_is_not_given_again(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let again = lab.modal.create(&spec).await.unwrap_err();
        assert!(matches!(again, BackendError::Refused { .. }), "{again}");
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_stopped_one_is_a_snapshot_and_comes_back(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo one > note; echo two > /opt-note").await;
        lab.modal.stop(&spec.id).await.unwrap();
        lab.modal.stop(&spec.id).await.unwrap();
        assert!(lab.service.plane.cells().is_empty(), "a stopped one costs nothing");
        let key = format!("direct:{}", spec.id);
        let image = lab.snapshots()[&key].as_str().unwrap().to_owned();
        assert!(matches!(lab.modal.connect(&spec.id).await, Err(BackendError::NoSuchSandbox { .. })));

        // Another process of the same home, later.
        let later = lab.with(|_| {});
        let listed = later.list().await.unwrap();
        assert_eq!(listed[0].state, FoundState::Stopped);
        let sandbox = greet(&spec, later.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note /opt-note").await, "one\ntwo\n");
        // Coming back to one that runs is no second start.
        let again = greet(&spec, later.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&again, "cat note").await, "one\n");
        assert_eq!(lab.service.plane.cells().len(), 1);
        later.destroy(&spec.id).await.unwrap();
        assert!(!lab.service.plane.has_image(&image), "its snapshot is deleted");
        assert_eq!(lab.snapshots(), json!({}));
    }

    async fn one_that_never_was_neither_stops_nor_resumes(lab: &Lab) {
        let spec = lab.kept();
        for gone in [lab.modal.stop(&spec.id).await, lab.modal.resume(&spec).await.map(drop)] {
            assert!(matches!(gone, Err(BackendError::NoSuchSandbox { .. })), "{gone:?}");
        }
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_not_ours_is_not_touched(lab: &Lab) {
        let (home, other) = (tempfile::tempdir().unwrap(), InstallationId::random());
        let theirs = open(&lab.service, &other, &home, |_| {});
        let neighbour = lab::spec(&other);
        let link = theirs.create(&neighbour).await.unwrap();
        let neighbour_box = greet(&neighbour, link).await;
        let default = json!({"direct:default": "im-hermes"});
        let file = lab.home.path().join("modal_snapshots.json");
        std::fs::write(&file, default.to_string()).unwrap();

        let spec = lab.kept();
        lab.create(&spec).await;
        lab.modal.stop(&spec.id).await.unwrap();
        for found in lab.modal.list().await.unwrap() {
            lab.modal.destroy(&found.id).await.unwrap();
        }
        lab.modal.destroy(&neighbour.id).await.unwrap();
        lab.modal.destroy(&"default".parse().unwrap()).await.unwrap();
        assert_eq!(sh(&neighbour_box, "echo here").await, "here\n");
        assert_eq!(lab.snapshots(), default);
        theirs.destroy(&neighbour.id).await.unwrap();
    }

    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        let player = || {
            let mut player = Command::new(std::env::current_exe().unwrap());
            let words = [lab.installation.to_string(), lab.service.url.clone(), lab.home.path().display().to_string()];
            player
                .args(["--exact", "life::plays_the_gateway", "--nocapture"])
                .env(PLAYS, words.join(" "));
            player
        };
        crash::at_every_step(player, async |step| {
            // What was on its way when the maker died arrives, or not.
            until("everything is settled", async || {
                crash::settle(&lab.with(|_| {})).await;
                lab.service.plane.cells().is_empty()
            }).await;
            assert_eq!(lab.modal.list().await.unwrap(), [], "{step}");
            assert_eq!(lab.snapshots(), json!({}), "{step}");
        }).await;
    }
}

/// Set for a process that is to be killed: its installation, where its Modal is, and its home.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_GATEWAY";

/// Not a test of its own: what the story above kills.
#[tokio::test]
async fn plays_the_gateway() {
    let Ok(words) = std::env::var(PLAYS) else {
        return;
    };
    let [installation, url, home] = words.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let installation: InstallationId = installation.parse().unwrap();
    let modal = lab::at(url, &installation, Path::new(home), |_| {});
    crash::play(&modal, || SandboxSpec {
        persistence: SandboxPersistence::Kept,
        ..lab::spec(&installation)
    })
    .await;
}
