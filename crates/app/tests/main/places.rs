//! A backend for one platform alone.

use std::fs;

use hermetic_store::RowOwner;
use hermetic_testkit::model::Reply;
use hermetic_types::Secret;
use serde_json::json;

use crate::lab::{ALICE, Lab, WireLab, calls_terminal, has_sandboxes, post, webhook};

const APART: &str = "gateway: {platforms: {webhook: {terminal_backend: local}}}\n";

/// Telegram in sandboxes and the webhook on the host; nothing where there are no sandboxes.
async fn lab(test: &str, script: impl IntoIterator<Item = Reply>) -> Option<(WireLab, Secret)> {
    if !has_sandboxes(test).await {
        return None;
    }
    let (secret, access) = webhook();
    let builder = Lab::builder().script(script).configured_backends();
    let access = format!("TELEGRAM_ALLOWED_USERS=7\n{access}");
    let lab = WireLab::start(builder.config(APART).access(&access)).await;
    Some((lab, secret))
}

/// Says something to the webhook; its answer.
async fn say(lab: &Lab, secret: &Secret, text: &str) -> String {
    let body = json!({"chat": "ops", "user": "alice", "text": text}).to_string();
    post(lab.intake(), lab.clock(), secret, &body).await
}

#[tokio::test]
async fn each_platform_runs_where_its_configuration_says() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("host-file");
    fs::write(&file, "of the host").unwrap();
    let read = format!("cat {}", file.display());
    let script = [calls_terminal(&read), Reply::streams(&["sealed"])];
    let test = "each_platform_runs_where_its_configuration_says";
    let Some((lab, secret)) = lab(test, script).await else {
        return;
    };
    // On Telegram the model is told of a sandbox, and the host is not there.
    assert_eq!(lab.ask(ALICE, "read it").await, "sealed");
    assert_ne!(lab.tool_result(1)["exit_code"], 0);
    assert!(!lab.asked()[1].contains("of the host"));
    assert!(lab.asked()[0].contains("sandbox"), "{}", lab.asked()[0]);
    assert!(lab.ask(ALICE, "/status").await.contains("native (sealed)"));

    // The webhook is on the host, and says so.
    let read = say(&lab, &secret, &format!("/sh {read}")).await;
    assert!(read.contains("of the host"), "{read}");
    let status = say(&lab, &secret, "/status").await;
    assert!(status.contains("local (not sealed"), "{status}");
    // What a sandbox cannot undo is asked about there, and runs unasked in the sandbox.
    let loosens = "/sh chmod 777 /nonexistent/hermetic-test";
    let before = lab.sent_to(ALICE);
    let denies = async {
        lab.replies(ALICE, before + 1).await;
        lab.ask(ALICE, "/deny").await
    };
    let (judged, _) = tokio::join!(say(&lab, &secret, loosens), denies);
    assert!(judged.contains("A person said no"), "{judged}");
    let sealed = lab.ask(ALICE, loosens).await;
    assert!(sealed.contains("exit code 1"), "{sealed}");

    let entries = lab
        .store()
        .await
        .ledger()
        .entries(RowOwner::AnyGateway)
        .await;
    let mut found: Vec<_> = entries
        .unwrap()
        .iter()
        .map(|entry| (entry.conversation.to_string(), entry.backend.to_string()))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            ("agent:main:telegram:dm:7".to_owned(), "native".to_owned()),
            ("agent:main:webhook:dm:ops".to_owned(), "local".to_owned()),
        ]
    );
}

/// Otherwise its commands would run on the host, unasked: they were judged for a sandbox.
#[tokio::test]
async fn a_conversation_that_moves_into_a_sandbox_takes_nothing_of_the_host_along() {
    let test = "a_conversation_that_moves_into_a_sandbox_takes_nothing_of_the_host_along";
    let Some((mut lab, secret)) = lab(test, []).await else {
        return;
    };
    let where_am_i = "/sh readlink /proc/self/ns/user";
    let host = fs::read_link("/proc/self/ns/user").unwrap();
    let host = host.display().to_string();
    let said = say(&lab, &secret, where_am_i).await;
    assert!(said.contains(&host), "{said}");
    let file = lab.path("config.yaml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, config.replace(APART, "")).unwrap();
    lab.crash_and_start().await;
    let said = say(&lab, &secret, where_am_i).await;
    assert!(said.contains("user:[") && !said.contains(&host), "{said}");
    assert_eq!(lab.sandboxes().await.len(), 1);
}
