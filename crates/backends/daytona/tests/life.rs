//! Coming into the world, staying there and leaving it.

use std::time::Duration;

use hermetic_daytona::DiskWish;
use hermetic_sandbox::conformance::{DOORS, assert_closed, cleared};
use hermetic_sandbox::{
    Backend, BackendError, FoundState, NetworkMode, SandboxLifeline, SystemView,
};
use hermetic_types::{Command, InstallationId};
use serde_json::json;

use crate::lab::{begin, greet, open, sh, stories, until};

stories! {
    async fn a_sandbox_is_asked_for_as_it_was_wanted(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits.cpu = 1.5;
        spec.limits.memory_bytes = (2 << 30) + 1;
        spec.lifetime = Duration::from_secs(90);
        let sandbox = lab.create(&spec).await;
        let machine = lab.server.machine(&format!("hermes-{}", spec.id));
        let asked = machine.fact("asked");
        let told = |name: &str| asked[name].clone();
        assert_eq!(told("cpu"), 2);
        assert_eq!(told("memory"), 3);
        // The default is 50 GiB, which the provider does not have.
        assert_eq!(told("disk"), 10);
        assert_eq!(told("networkBlockAll"), true);
        assert_eq!(told("public"), false);
        assert_eq!(told("target"), "eu");
        assert_eq!(told("autoStopInterval"), 2);
        assert_eq!(told("autoDeleteInterval"), 0);
        assert_eq!(told("buildInfo"), json!({ "dockerfileContent": "FROM debian:12\n" }));
        let labels = told("labels");
        assert_eq!(labels["hermes_task_id"], spec.id.to_string());
        assert_eq!(labels["hermetic.installation"], lab.installation.to_string());
        assert_eq!(labels["hermetic.conversation"], "agent:main:telegram:dm:4711");
        // Nothing of the provider's own is in a command's environment, and no network but loopback.
        assert_eq!(sh(&sandbox, "env | grep -c DAYTONA; pwd; ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev").await, "0\n/workspace\n1\n");
        let hard = sh(&sandbox, "ulimit -Hn").await;
        assert_eq!(hard.trim(), spec.limits.open_files.to_string());
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_disk_that_the_provider_does_not_have_is_refused_when_it_was_written(lab: &Lab) {
        let strict = lab.with(|config| config.disk = DiskWish::Written);
        let error = strict.create(&lab.spec()).await.unwrap_err();
        assert!(matches!(&error, BackendError::Refused { why, .. } if why.contains("10 GiB at most")), "{error}");
        assert_eq!(lab.server.count("POST /api/sandbox"), 0);
    }

    async fn what_an_image_cannot_be_is_refused_before_anything_is_asked(lab: &Lab) {
        for system in [SystemView::Host, SystemView::Image("a\nRUN evil".to_owned()), SystemView::Image(String::new())] {
            let mut spec = lab.spec();
            spec.system = system;
            let error = lab.daytona.create(&spec).await.unwrap_err();
            assert!(matches!(error, BackendError::Refused { .. }), "{error}");
        }
        assert_eq!(lab.server.count("POST /api/sandbox"), 0);
    }

    async fn a_gateway_that_never_comes_back_leaves_no_bill(lab: &Lab) {
        let (gone, kept) = (lab.spec(), lab.kept());
        for spec in [&gone, &kept] {
            let sandbox = lab.create(spec).await;
            let _running = begin(&sandbox, "echo ready; sleep 600").await;
            sandbox.warden().close();
        }
        lab.server.let_idle_time_pass().await;
        let left = lab.daytona.list().await.unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!((&left[0].id, left[0].state), (&kept.id, FoundState::Stopped));
        lab.daytona.destroy(&kept.id).await.unwrap();
    }

    async fn one_that_was_stopped_under_our_feet_comes_back_with_its_files(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        lab.server.let_idle_time_pass().await;
        until("the link is seen to be gone", async || !sandbox.is_reachable()).await;
        let error = lab.daytona.connect(&spec.id).await.unwrap_err();
        assert!(matches!(error, BackendError::NoSuchSandbox { .. }), "{error}");
        let sandbox = greet(&spec, lab.daytona.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note").await, "mine\n");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn one_whose_warden_ended_gets_another(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note").await;
        // The sandbox runs on; only what we placed there is dead.
        let text = "kill -KILL $(pgrep -f 'sealed serve'); sleep 600";
        let command = cleared(Command::script(text));
        let _lost = sandbox.start(command).await;
        until("the link is seen to be gone", async || !sandbox.is_reachable()).await;
        let error = lab.daytona.connect(&spec.id).await.unwrap_err();
        assert!(matches!(error, BackendError::NoSuchSandbox { .. }), "{error}");
        let sandbox = greet(&spec, lab.daytona.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note").await, "mine\n");
        // Coming back to one that runs is no second start.
        let again = greet(&spec, lab.daytona.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&again, "cat note").await, "mine\n");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn stopping_what_is_not_kept_deletes_it(lab: &Lab) {
        let spec = lab.spec();
        lab.create(&spec).await;
        lab.daytona.stop(&spec.id).await.unwrap();
        assert!(lab.server.names().is_empty());
        assert!(matches!(lab.daytona.stop(&spec.id).await, Err(BackendError::NoSuchSandbox { .. })));
    }

    async fn what_is_tied_goes_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        until("no warden is there", async || lab.daytona.connect(&spec.id).await.is_err()).await;
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    /// Whatever Daytona's own isolation lets through, our list of system calls holds inside it.
    async fn every_door_is_closed(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_closed(&sh(&sandbox, &format!("python3 - <<'END'\n{DOORS}\nEND")).await);
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_caller_who_gives_up_leaves_nothing(lab: &Lab) {
        for millis in [1, 30, 100, 300] {
            let spec = lab.spec();
            let made = tokio::time::timeout(Duration::from_millis(millis), lab.daytona.create(&spec)).await;
            if made.is_ok() {
                lab.daytona.destroy(&spec.id).await.unwrap();
            }
            // Seen first or not, in the end it is gone; a later one of the name proves the end.
            until("nothing is left", async || {
                lab.server.names().is_empty() && lab.daytona.create(&spec).await.is_ok()
            }).await;
            lab.daytona.destroy(&spec.id).await.unwrap();
        }
    }

    async fn others_are_neither_seen_nor_touched(lab: &Lab) {
        let spec = lab.spec();
        lab.create(&spec).await;
        let name = format!("hermes-{}", spec.id);
        let stranger = open(&lab.server, &InstallationId::random(), |_| {});
        assert_eq!(stranger.list().await.unwrap(), []);
        stranger.destroy(&spec.id).await.unwrap();
        assert!(stranger.stop(&spec.id).await.is_err());
        assert!(stranger.resume(&spec).await.is_err());
        // The name is taken, and what has it is not ours to replace.
        let mut same = lab.spec();
        same.id = spec.id.clone();
        let error = stranger.create(&same).await.unwrap_err();
        assert!(matches!(&error, BackendError::Refused { why, .. } if why.contains("taken")), "{error}");
        assert_eq!(lab.server.names(), std::slice::from_ref(&name));
        // A service that does not filter changes nothing.
        lab.server.machine(&name).set("labels", json!({ "hermetic.installation": "someone else" }));
        assert_eq!(lab.daytona.list().await.unwrap(), []);
        lab.daytona.destroy(&spec.id).await.unwrap();
        assert_eq!(lab.server.names(), std::slice::from_ref(&name));
        let machine = lab.server.machine(&name);
        lab.server.cloud.destroy(&machine).await;
    }

    async fn a_long_list_is_read_to_its_end(lab: &Lab) {
        let specs: Vec<_> = (0..5).map(|_| lab.kept()).collect();
        for spec in &specs {
            lab.create(spec).await;
        }
        let listed = lab.daytona.list().await.unwrap();
        assert_eq!(listed.len(), 5);
        for found in listed {
            assert_eq!(found.state, FoundState::Running);
            lab.daytona.destroy(&found.id).await.unwrap();
        }
    }

    async fn bytes_leave_by_the_link_alone(lab: &Lab) {
        let mut spec = lab.spec();
        spec.network = NetworkMode::Proxied { port: 3128 };
        spec.env.insert("AWKWARD".to_owned(), "it's $(not) \"run\"\n".to_owned());
        let sandbox = lab.create(&spec).await;
        let said = sh(&sandbox, "printf %s \"$AWKWARD\"; (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 | grep -o unreachable | sort -u").await;
        assert_eq!(said, "it's $(not) \"run\"\nunreachable\n");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn readiness_says_what_holds_and_what_does_not(lab: &Lab) {
        let readiness = lab.daytona.readiness().await;
        assert!(readiness.missing().is_none(), "{readiness:?}");
        let wrong = lab.with(|config| config.key = hermetic_types::Secret::new("wrong"));
        let readiness = wrong.readiness().await;
        let missing = readiness.missing().expect("the key is missing");
        assert_eq!(missing.detail, "Daytona does not accept the API key");
        assert!(missing.remedy.as_ref().unwrap().contains("DAYTONA_API_KEY"));
    }
}
