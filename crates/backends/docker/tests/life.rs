//! Coming into the world and leaving it.

use std::time::Duration;

use crate::lab::{begin, greet, sh, stories, until};
use hermetic_sandbox::{Backend, FoundState, SandboxLifeline, SandboxPersistence};

stories! {
    async fn what_is_tied_goes_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        until("the engine removed it", async || lab.docker.list().await.unwrap().is_empty()).await;
    }

    async fn one_that_nobody_comes_back_to_ends_itself(lab: &Lab) {
        for persistence in [SandboxPersistence::Ephemeral, SandboxPersistence::Kept] {
            let mut spec = lab.spec();
            spec.lifetime = Duration::from_secs(1);
            spec.persistence = persistence;
            let sandbox = lab.create(&spec).await;
            let _running = begin(&sandbox, "echo ready; sleep 600").await;
            sandbox.warden().close();
            drop(sandbox);
            let rest = match persistence {
                SandboxPersistence::Ephemeral => None,
                SandboxPersistence::Kept => Some(FoundState::Stopped),
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
        spec.persistence = SandboxPersistence::Kept;
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
        let elsewhere = lab.with(|config| config.address = hermetic_docker::EngineAddress::Socket("/nowhere/docker.sock".into()));
        let readiness = elsewhere.docker.readiness().await;
        let missing = readiness.missing().expect("an engine is missing");
        assert_eq!(missing.name, "engine");
        assert!(missing.remedy.is_some());
    }
}
