//! Coming into the world and leaving it, also when somebody is killed on the way.

use std::process::{Command, Stdio};
use std::time::Duration;

use hermetic_sandbox::{Backend, FoundState, Lifeline, Persistence};
use hermetic_types::InstallationId;

use crate::lab::{self, Lab, begin, greet, image, sh, stories, until};

/// Set for a process that is to be killed: its installation, and whether its sandbox is tied.
const CREATOR: &str = "HERMETIC_TEST_CREATOR";

stories! {
    async fn what_is_tied_goes_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = Lifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        until("the engine removed it", async || lab.docker.list().await.unwrap().is_empty()).await;
    }

    async fn one_that_nobody_comes_back_to_ends_itself(lab: &Lab) {
        for persistence in [Persistence::Ephemeral, Persistence::Kept] {
            let mut spec = lab.spec();
            spec.lifetime = Duration::from_secs(1);
            spec.persistence = persistence;
            let sandbox = lab.create(&spec).await;
            let _running = begin(&sandbox, "echo ready; sleep 600").await;
            sandbox.warden().close();
            drop(sandbox);
            let rest = match persistence {
                Persistence::Ephemeral => None,
                Persistence::Kept => Some(FoundState::Stopped),
            };
            until("it ended by itself", async || {
                let found = lab.docker.list().await.unwrap();
                found.first().map(|found| found.state) == rest
            }).await;
            lab.docker.destroy(&spec.id).await.unwrap();
        }
    }

    async fn a_caller_who_gives_up_leaves_nothing(lab: &Lab) {
        for millis in [1, 20, 60, 150, 400] {
            let spec = lab.spec();
            let made = tokio::time::timeout(Duration::from_millis(millis), lab.docker.create(&spec)).await;
            if made.is_ok() {
                // Faster than the caller is impatient.
                lab.docker.destroy(&spec.id).await.unwrap();
                continue;
            }
            // Seen first or not, in the end it is gone; a later one of the name proves the end.
            until("nothing is left", async || {
                lab.docker.list().await.unwrap().is_empty() && lab.docker.create(&spec).await.is_ok()
            }).await;
            lab.docker.destroy(&spec.id).await.unwrap();
        }
    }

    async fn a_stopped_one_has_no_process_and_comes_back(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = Persistence::Kept;
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo one > note; echo two > /opt/note").await;
        lab.docker.stop(&spec.id).await.unwrap();
        lab.docker.stop(&spec.id).await.unwrap();
        assert!(lab.docker.connect(&spec.id).await.is_err());
        let sandbox = greet(&spec, lab.docker.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note /opt/note").await, "one\ntwo\n");
        // Coming back to one that runs is no second start.
        let again = greet(&spec, lab.docker.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&again, "cat note").await, "one\n");
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn an_image_that_cannot_be_had_is_said_in_words(lab: &Lab) {
        let mut spec = lab.spec();
        spec.system = hermetic_sandbox::SystemView::Image("127.0.0.1:1/nowhere:none".to_owned());
        let error = lab.docker.create(&spec).await.unwrap_err();
        assert!(error.to_string().contains("127.0.0.1:1/nowhere:none"), "{error}");
        assert!(matches!(error, hermetic_sandbox::BackendError::Unavailable { .. }));
    }

    async fn readiness_says_what_holds(lab: &Lab) {
        let readiness = lab.docker.readiness().await;
        assert!(readiness.missing().is_none(), "{readiness:?}");
        let elsewhere = lab.with(|config| config.address = hermetic_docker::Address::Socket("/nowhere/docker.sock".into()));
        let readiness = elsewhere.docker.readiness().await;
        let missing = readiness.missing().expect("an engine is missing");
        assert_eq!(missing.name, "engine");
        assert!(missing.remedy.is_some());
    }

    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        crash_and_count(lab, "ledger").await;
    }

    async fn a_killed_creator_takes_its_tied_sandbox_along(lab: &Lab) {
        crash_and_count(lab, "creator").await;
    }
}

/// Kills a process at a different moment of its create each time, then of its run, and looks at
/// what is left.
async fn crash_and_count(lab: &Lab, bond: &str) {
    for round in 0..10 {
        let mut creator = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "life::creator", "--nocapture"])
            .env(CREATOR, format!("{} {bond}", lab.installation))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(40 + round * 70)).await;
        creator.kill().unwrap();
        creator.wait().unwrap();

        // An engine goes on with what it was asked last.
        until("nothing is half-made", async || {
            let found = lab.docker.list().await.unwrap();
            found.iter().all(|found| found.state != FoundState::Busy)
        })
        .await;
        if bond == "creator" {
            until("what was tied is dead", async || {
                let found = lab.docker.list().await.unwrap();
                found.iter().all(|found| found.state == FoundState::Broken)
            })
            .await;
        }
        for found in lab.docker.list().await.unwrap() {
            if found.state == FoundState::Running {
                let link = lab.docker.connect(&found.id).await.unwrap();
                let mut spec = lab.spec();
                spec.id = found.id.clone();
                assert_eq!(sh(&greet(&spec, link).await, "echo alive").await, "alive\n");
            }
            lab.docker.destroy(&found.id).await.unwrap();
        }
        until("nothing is left", async || {
            lab.docker.list().await.unwrap().is_empty()
        })
        .await;
    }
}

/// Not a story: the process that is killed in one.
#[tokio::test]
async fn creator() {
    let Ok(told) = std::env::var(CREATOR) else {
        return;
    };
    let (installation, bond) = told.split_once(' ').unwrap();
    let installation: InstallationId = installation.parse().unwrap();
    let docker = lab::open(&installation, |_| {});
    let mut spec = lab::spec(&installation);
    spec.system = hermetic_sandbox::SystemView::Image(image());
    spec.lifetime = Duration::from_secs(5);
    if bond == "creator" {
        spec.lifeline = Lifeline::Creator;
    }
    let sandbox = greet(&spec, docker.create(&spec).await.unwrap()).await;
    let _running = begin(&sandbox, "echo ready; sleep 600").await;
    std::future::pending::<()>().await;
}
