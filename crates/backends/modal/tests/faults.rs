//! A Modal that stumbles, refuses and forgets.

use hermetic_sandbox::{Backend, BackendError, SystemView};
use hermetic_types::Secret;
use serde_json::json;
use tonic::Status;

use crate::lab::{Lab, distant, greet, sh, stories, until};
use crate::service::Fault::{After, Before, Cut};

fn away() -> Status {
    Status::unavailable("upstream connect error")
}

/// Begun while nobody is there; who comes back has let himself be asked in vain twice.
async fn absent<T>(lab: &Lab, act: impl Future<Output = T>) -> T {
    let faults = &lab.service.plane.faults;
    let before = faults.refused();
    faults.be_away(true);
    let back = async {
        until("it is asked in vain", async || {
            faults.refused() > before + 1
        })
        .await;
        faults.be_away(false);
    };
    tokio::join!(act, back).0
}

fn said(error: BackendError) -> (String, String) {
    match error {
        BackendError::Unavailable { what, remedy } => (what, remedy),
        other => panic!("no remedy comes with {other}"),
    }
}

stories! {
    async fn errors_that_pass_are_asked_again(lab: &Lab) {
        let faults = &lab.service.plane.faults;
        for method in [
            "AuthTokenGet", "AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate",
            "SandboxStdinWriteV2", "TaskExecStart", "TaskExecStdinWrite", "TaskExecStdioRead",
            "SandboxTagsSetV2", "SandboxListV2", "SandboxTerminateV2", "SandboxWaitV2",
        ] {
            faults.plan(method, Before(away()));
        }
        // Done all the same: asked again, it is not done twice.
        for method in ["SandboxStdinWriteV2", "TaskExecStart", "TaskExecStdinWrite", "SandboxTerminateV2"] {
            faults.plan(method, After(Status::internal("stream reset")));
        }
        faults.plan("ImageJoinStreaming", Cut(1, away()));
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo one; echo two").await, "one\ntwo\n");
        lab.modal.destroy(&spec.id).await.unwrap();
        assert!(lab.service.plane.cells().is_empty());
    }

    async fn a_create_that_was_heard_is_not_asked_for_twice(lab: &Lab) {
        lab.service.plane.faults.plan("SandboxCreateV2", After(away()));
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        assert_eq!(lab.service.plane.cells().len(), 1);
        assert_eq!(lab.service.count("SandboxCreateV2"), 1);
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_create_that_was_not_heard_is_asked_for_again(lab: &Lab) {
        lab.service.plane.faults.plan("SandboxCreateV2", Before(away()));
        let spec = lab.spec();
        lab.create(&spec).await;
        assert_eq!(lab.service.plane.cells().len(), 1);
        assert_eq!(lab.service.count("SandboxCreateV2"), 2);
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_limit_is_told_with_its_remedy_and_not_argued_with(lab: &Lab) {
        let full = Status::resource_exhausted("workspace has 100 sandboxes");
        lab.service.plane.faults.plan("SandboxCreateV2", Before(full));
        let (what, remedy) = said(lab.modal.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("workspace has 100 sandboxes"), "{what}");
        assert!(remedy.contains("limit"), "{remedy}");
        assert_eq!(lab.service.count("SandboxCreateV2"), 1);
    }

    async fn a_token_that_is_not_taken_is_told_with_its_remedy(lab: &Lab) {
        let stranger = lab.with(|config| config.credentials.token_secret = Secret::new("as-wrong"));
        let (what, remedy) = said(stranger.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("token") && !what.contains("as-wrong"), "{what}");
        assert!(remedy.contains("MODAL_TOKEN_SECRET"), "{remedy}");
        let readiness = stranger.readiness().await;
        assert!(readiness.missing().is_some_and(|layer| layer.remedy.is_some()));
        assert!(lab.modal.readiness().await.missing().is_none());
    }

    async fn nobody_there_is_told_too(lab: &Lab) {
        let nowhere = lab.with(|config| {
            config.address = hermetic_modal::ControlAddress::parse("http://127.0.0.1:1").unwrap();
        });
        let readiness = nowhere.readiness().await;
        let missing = readiness.missing().expect("it cannot be reached");
        assert!(missing.detail.contains("does not answer"), "{}", missing.detail);
    }

    async fn tokens_that_ran_out_are_renewed(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        lab.service.plane.expire();
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        assert_eq!(lab.modal.list().await.unwrap().len(), 1);
        lab.service.plane.expire();
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_stream_that_is_cut_goes_on_at_the_same_byte(lab: &Lab) {
        for pieces in [1, 3, 20, 50] {
            lab.service.plane.faults.plan("TaskExecStdioRead", Cut(pieces, away()));
        }
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let text = "seq 1000000 | tee >(md5sum >&2) | md5sum; seq 1000000";
        let finished = crate::lab::finish(&sandbox, text).await;
        assert_eq!(finished.code(), 0);
        assert_eq!(finished.stdout.total(), 36 + 6_888_896);
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_modal_that_goes_away_and_comes_back_costs_nothing(lab: &Lab) {
        let spec = lab.kept();
        let link = absent(lab, lab.modal.create(&spec)).await.unwrap();
        let sandbox = distant(&lab.modal, greet(&spec, link).await);
        let text = "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.2; done; echo mine > note";
        let finished = absent(lab, crate::lab::finish(&sandbox, text)).await;
        assert_eq!(finished.stdout.into_bytes(), b"1\n2\n3\n4\n5\n6\n7\n8\n");
        absent(lab, lab.modal.stop(&spec.id)).await.unwrap();
        let link = absent(lab, lab.modal.resume(&spec)).await.unwrap();
        assert_eq!(sh(&greet(&spec, link).await, "cat note").await, "mine\n");
        assert_eq!(lab.service.plane.cells().len(), 1);
        absent(lab, lab.modal.destroy(&spec.id)).await.unwrap();
        assert_eq!(lab.modal.list().await.unwrap(), []);
    }

    async fn a_link_that_is_lost_does_not_cost_the_command(lab: &Lab) {
        let spec = lab.spec();
        // Nothing that passes: this link is over.
        lab.service.plane.faults.plan("TaskExecStdioRead", Cut(6, Status::aborted("worker moved")));
        let sandbox = distant(&lab.modal, lab.create(&spec).await);
        let text = "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.3; done";
        let finished = crate::lab::finish(&sandbox, text).await;
        assert_eq!(finished.code(), 0);
        assert_eq!(finished.stdout.into_bytes(), b"1\n2\n3\n4\n5\n6\n7\n8\n");
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn an_image_that_cannot_be_had_is_said_in_words(lab: &Lab) {
        let mut spec = lab.spec();
        spec.system = SystemView::Image("registry.test/nowhere:none".to_owned());
        let (what, _) = said(lab.modal.create(&spec).await.unwrap_err());
        assert!(what.contains("registry.test/nowhere:none") && what.contains("manifest unknown"), "{what}");
    }

    async fn a_snapshot_that_modal_lost_gives_way_to_the_image(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        lab.modal.stop(&spec.id).await.unwrap();
        let key = format!("direct:{}", spec.id);
        lab.service.plane.drop_image(lab.snapshots()[&key].as_str().unwrap());
        let sandbox = greet(&spec, lab.modal.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "ls -A; echo fresh").await, "fresh\n");
        assert_eq!(lab.snapshots(), json!({}));
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_snapshot_is_not_given_up_for_an_error_that_passes(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        lab.modal.stop(&spec.id).await.unwrap();
        let full = Status::resource_exhausted("try later");
        lab.service.plane.faults.plan("SandboxCreateV2", Before(full));
        assert!(lab.modal.resume(&spec).await.is_err());
        let sandbox = greet(&spec, lab.modal.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note").await, "mine\n");
        lab.modal.destroy(&spec.id).await.unwrap();
    }

    async fn a_snapshot_that_fails_stops_nothing(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        let broken = Status::failed_precondition("the file system is busy");
        lab.service.plane.faults.plan("TaskSnapshotFilesystem", Before(broken));
        assert!(lab.modal.stop(&spec.id).await.is_err());
        assert_eq!(sh(&sandbox, "cat note").await, "mine\n");
        assert_eq!(lab.snapshots(), json!({}));
        lab.modal.destroy(&spec.id).await.unwrap();
    }
}
