//! A service that fails in the ways services do.

use std::time::Duration;

use hermetic_sandbox::{Backend, BackendError};
use hermetic_types::Secret;

use crate::lab::{sh, stories};
use crate::server::{Fault, How};

fn remedy(error: &BackendError) -> &str {
    match error {
        BackendError::Unavailable { remedy, .. } => remedy,
        other => panic!("not a matter of the provider's: {other}"),
    }
}

stories! {
    async fn a_key_that_is_not_accepted_is_said_in_words_and_not_shown(lab: &Lab) {
        let wrong = lab.with(|config| config.key = Secret::new("dtn_wrong"));
        let error = wrong.create(&lab.spec()).await.unwrap_err();
        assert_eq!(error.to_string(), "Daytona does not accept the API key");
        assert!(remedy(&error).contains("DAYTONA_API_KEY"));
        assert_eq!(lab.server.count("POST /api/sandbox"), 1, "asked again with the same key");
        assert!(!format!("{wrong:?} {error:?}").contains("dtn_wrong"));
    }

    async fn a_quota_that_is_used_up_is_said_with_what_to_do(lab: &Lab) {
        let said = "Total memory quota exceeded. Maximum allowed: 10GiB.";
        lab.server.fail(Fault { request: "POST /api/sandbox", how: How::Refuse { status: 403, said }, times: 1 });
        let error = lab.daytona.create(&lab.spec()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Daytona's quota does not allow to create the sandbox: {said}"));
        assert!(remedy(&error).contains("terminal.container_"));
        assert_eq!(lab.server.count("POST /api/sandbox"), 1);
    }

    async fn an_error_that_repeats_the_key_is_shown_without_it(lab: &Lab) {
        let said = "key dtn_test_key\u{1b}[31m may not\n\n do this";
        lab.server.fail(Fault { request: "POST /api/sandbox", how: How::Refuse { status: 403, said }, times: 1 });
        let error = lab.daytona.create(&lab.spec()).await.unwrap_err();
        assert_eq!(error.to_string(), "Daytona does not allow to create the sandbox: key *** [31m may not do this");
        assert!(remedy(&error).contains("permissions"));
    }

    async fn too_many_requests_are_waited_out(lab: &Lab) {
        for request in ["POST /api/sandbox", "GET /api/sandbox/*", "POST /toolbox/*/files/bulk-upload", "POST /toolbox/*/process/execute"] {
            lab.server.fail(Fault { request, how: How::Later { seconds: 1 }, times: 1 });
        }
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        assert_eq!(lab.server.count("POST /api/sandbox"), 2);
        lab.server.fail(Fault { request: "DELETE /api/sandbox/*", how: How::Later { seconds: 1 }, times: 1 });
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_wait_that_is_too_long_is_told_instead(lab: &Lab) {
        lab.server.fail(Fault { request: "POST /api/sandbox", how: How::Later { seconds: 86_400 }, times: 9 });
        let error = lab.daytona.create(&lab.spec()).await.unwrap_err();
        assert!(error.to_string().contains("no more requests"), "{error}");
        assert_eq!(lab.server.count("POST /api/sandbox"), 1);
    }

    async fn passing_failures_are_asked_again(lab: &Lab) {
        let how = How::Refuse { status: 503, said: "Service unavailable" };
        for request in ["POST /api/sandbox", "GET /api/sandbox/*", "POST /toolbox/*/files/bulk-upload", "POST /toolbox/*/process/execute", "POST /toolbox/*/process/pty"] {
            lab.server.fail(Fault { request, how, times: 2 });
        }
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        for request in ["POST /api/sandbox/*/stop", "POST /api/sandbox/*/start", "DELETE /api/sandbox/*", "GET /api/sandbox"] {
            lab.server.fail(Fault { request, how, times: 1 });
        }
        lab.daytona.stop(&spec.id).await.unwrap();
        lab.daytona.resume(&spec).await.unwrap();
        assert_eq!(lab.daytona.list().await.unwrap().len(), 1);
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_create_whose_answer_was_lost_is_not_made_twice(lab: &Lab) {
        for how in [How::DoneButLost, How::DoneButCut] {
            lab.server.fail(Fault { request: "POST /api/sandbox", how, times: 1 });
            let spec = lab.spec();
            let sandbox = lab.create(&spec).await;
            assert_eq!(sh(&sandbox, "echo here").await, "here\n");
            assert_eq!(lab.server.names(), [format!("hermes-{}", spec.id)]);
            lab.daytona.destroy(&spec.id).await.unwrap();
        }
        assert_eq!(lab.server.count("POST /api/sandbox"), 2);
    }

    async fn answers_lost_on_every_other_step_change_nothing(lab: &Lab) {
        let spec = lab.kept();
        for request in ["POST /toolbox/*/files/bulk-upload", "POST /toolbox/*/process/execute", "POST /toolbox/*/process/pty", "POST /api/sandbox/*/stop", "POST /api/sandbox/*/start", "DELETE /api/sandbox/*"] {
            lab.server.fail(Fault { request, how: How::DoneButLost, times: 1 });
        }
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        lab.daytona.stop(&spec.id).await.unwrap();
        let link = lab.daytona.resume(&spec).await.unwrap();
        assert_eq!(sh(&crate::lab::greet(&spec, link).await, "cat note").await, "mine\n");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn one_that_is_stuck_is_given_up_and_seen_out(lab: &Lab) {
        let hasty = lab.with(|config| {
            config.patience.build = Duration::from_millis(300);
            config.patience.state = Duration::from_secs(20);
        });
        lab.server.stick_in(Some("pulling_snapshot"));
        let error = hasty.create(&lab.spec()).await.unwrap_err();
        assert!(error.to_string().contains("still \"pulling_snapshot\""), "{error}");
        assert!(lab.server.names().is_empty(), "it is left at the provider");
    }

    async fn an_image_that_cannot_be_built_is_said_with_the_reason(lab: &Lab) {
        lab.server.stick_in(Some("build_failed"));
        let error = lab.daytona.create(&lab.spec()).await.unwrap_err();
        assert!(error.to_string().contains("build_failed"), "{error}");
        assert!(remedy(&error).contains("terminal.daytona_image"));
        assert!(lab.server.names().is_empty());
    }

    async fn a_service_that_is_not_there_is_said_in_words(lab: &Lab) {
        let elsewhere = lab.with(|config| {
            // Nobody listens on port 1 of this machine.
            config.url = "http://127.0.0.1:1/api".to_owned();
            config.patience.requests = Duration::from_millis(100);
        });
        let error = elsewhere.create(&lab.spec()).await.unwrap_err();
        assert!(error.to_string().starts_with("Daytona at 127.0.0.1 cannot be reached"), "{error}");
        assert!(remedy(&error).contains("DAYTONA_API_URL"));
        assert!(elsewhere.readiness().await.missing().is_some());
    }

    async fn a_network_that_was_not_blocked_is_no_sandbox(lab: &Lab) {
        lab.server.cloud.world().leaky = true;
        let error = lab.daytona.create(&lab.spec()).await.unwrap_err();
        assert!(matches!(&error, BackendError::Refused { what, .. } if what.contains("network")), "{error}");
        assert!(lab.server.names().is_empty());
    }

    async fn answers_that_make_no_sense_end_in_an_error(lab: &Lab) {
        let how = How::Say { body: "[{\"id\": 5}, \u{0}" };
        lab.server.fail(Fault { request: "GET /api/sandbox", how, times: 9 });
        assert!(lab.daytona.list().await.is_err());
        lab.server.fail(Fault { request: "GET /api/sandbox/*", how, times: 9 });
        assert!(lab.daytona.connect(&lab.spec().id).await.is_err());
        // A toolbox elsewhere without TLS would have the key.
        let toolbox = "{\"id\":\"x\",\"state\":\"started\",\"toolboxProxyUrl\":\"gopher://192.0.2.1\"}";
        lab.server.cloud.world().faults.clear();
        lab.server.fail(Fault { request: "POST /api/sandbox", how: How::Say { body: toolbox }, times: 1 });
        assert!(lab.daytona.create(&lab.spec()).await.is_err());
    }
}
