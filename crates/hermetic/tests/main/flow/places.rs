//! A backend for one platform alone.

use hermetic_testkit::model::Reply;
use serde_json::json;

use super::approvals::{Deed, name};
use super::doors::{post, webhook};
use super::lab::{ALICE, Lab, calls_terminal};
use crate::hermetic::Hermetic;

const APART: &str = "gateway: {platforms: {webhook: {terminal_backend: local}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn each_platform_runs_where_its_configuration_says() {
    let test = "each_platform_runs_where_its_configuration_says";
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("host-file");
    std::fs::write(&file, "of the host").unwrap();
    let read = format!("cat {}", file.display());
    let script = [calls_terminal(&read), Reply::streams(&["sealed"])];
    let (secret, access) = webhook();
    let Some(lab) = Lab::start_with(test, script, APART, &access).await else {
        return;
    };
    // On Telegram the model is told of a sandbox, and the host is not there.
    assert_eq!(lab.ask(ALICE, "read it").await, "sealed");
    assert_ne!(lab.tool_result(1)["exit_code"], 0);
    assert!(!lab.asked()[1].contains("of the host"));
    assert!(lab.asked()[0].contains("sandbox"), "{}", lab.asked()[0]);
    assert!(lab.ask(ALICE, "/status").await.contains("native (sealed)"));

    // The webhook is on the host, and says so.
    let address = lab.said_address("webhook=");
    let say = |text: String| {
        let body = json!({"chat": "ops", "user": "alice", "text": text}).to_string();
        let (address, secret) = (address.clone(), secret.clone());
        async move { post(&address, &secret, &body).await }
    };
    let read = say(format!("/sh {read}")).await;
    assert!(read.contains("of the host"), "{read}");
    let status = say("/status".to_owned()).await;
    assert!(status.contains("local (not sealed"), "{status}");
    // What a sandbox cannot undo is asked about there, and runs unasked in the sandbox.
    let before = lab.sent_to(ALICE);
    let denies = async {
        lab.replies(ALICE, before + 1).await;
        lab.ask(ALICE, "/deny").await
    };
    let asks = say("/sh chmod 777 /nonexistent/hermetic-test".to_owned());
    let (judged, _) = tokio::join!(asks, denies);
    assert!(judged.contains("A person said no"), "{judged}");
    let sealed = lab
        .ask(ALICE, "/sh chmod 777 /nonexistent/hermetic-test")
        .await;
    assert!(sealed.contains("exit code 1"), "{sealed}");

    let listed = lab.run(&["sandbox", "list", "--json"]).json();
    let mut found: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["conversation"].as_str().unwrap().to_owned(),
                row["backend"].as_str().unwrap().to_owned(),
            )
        })
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
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_moves_into_a_sandbox_takes_nothing_of_the_host_along() {
    let test = "a_conversation_that_moves_into_a_sandbox_takes_nothing_of_the_host_along";
    let (secret, access) = webhook();
    let Some(mut lab) = Lab::start_with(test, [], APART, &access).await else {
        return;
    };
    let where_am_i =
        json!({"chat": "ops", "user": "alice", "text": "/sh readlink /proc/self/ns/user"});
    let host = std::fs::read_link("/proc/self/ns/user").unwrap();
    let host = host.display().to_string();
    let said = post(
        &lab.said_address("webhook="),
        &secret,
        &where_am_i.to_string(),
    )
    .await;
    assert!(said.contains(&host), "{said}");
    lab.kill();
    lab.configure("");
    lab.restart();
    let said = post(
        &lab.said_address("webhook="),
        &secret,
        &where_am_i.to_string(),
    )
    .await;
    assert!(said.contains("user:[") && !said.contains(&host), "{said}");
    assert_eq!(lab.sandboxes().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_on_a_webhook_is_asked_there_and_answers_by_name() {
    let test = "an_approver_on_a_webhook_is_asked_there_and_answers_by_name";
    let deed = Deed::new();
    let (secret, access) = webhook();
    let approvals = "approvals: {mode: manual, approvers: ['webhook:alice']}\n";
    let config = format!("{APART}{approvals}");
    let Some(lab) = Lab::start_with(test, [], &config, &access).await else {
        return;
    };
    assert!(lab.said().contains("WEBHOOK_SECRET"), "{}", lab.said());
    let address = lab.said_address("webhook=");
    let say = |user: &str, text: String| {
        let body = json!({"chat": "ops", "user": user, "text": text}).to_string();
        let (address, secret) = (address.clone(), secret.clone());
        async move { post(&address, &secret, &body).await }
    };
    let asked = say("alice", format!("/sh {}", deed.command())).await;
    assert!(asked.contains("may I run this?"), "{asked}");
    let id = name(&asked);
    // Messages of a webhook have no order.
    let told = say("alice", "/approve".to_owned()).await;
    assert!(
        told.contains(&id) && told.contains("cannot be told"),
        "{told}"
    );
    let not_his = say("bob", format!("/approve {id}")).await;
    assert!(not_his.contains("may approve"), "{not_his}");
    assert_eq!(deed.times(), 0);
    let yes = say("alice", format!("/approve {id}")).await;
    assert!(yes.contains("allowed once"), "{yes}");
    // The next command of the conversation runs when this one has ended.
    say("alice", "/sh true".to_owned()).await;
    assert_eq!(deed.times(), 1);
}

#[test]
fn kept_files_outlive_a_change_of_backend() {
    let home = Hermetic::with("");
    if !home.has_sandboxes("kept_files_outlive_a_change_of_backend") {
        return;
    }
    let exec = |backend: &str, text: &str| {
        let (by, session) = (["exec", "--backend", backend], ["--session", "work"]);
        home.run(&[&by[..], &session[..], &["--", "sh", "-c", text]].concat())
    };
    let wrote = exec("native", "echo mine > /workspace/note");
    assert_eq!(wrote.code, 0, "{}", wrote.err);
    let moved = exec("local", "true");
    assert_eq!(moved.code, 0, "{}", moved.err);
    assert!(moved.err.contains("kept in sandbox"), "{}", moved.err);
    assert!(moved.err.contains("sandbox destroy"), "{}", moved.err);
    let listed = home.run(&["sandbox", "list"]).out;
    assert!(listed.contains("set aside"), "{listed}");
    let back = exec("native", "cat /workspace/note");
    assert_eq!(back.out, "mine\n", "{}", back.err);
    let left = home.run(&["sandbox", "list", "--json"]).json();
    for row in left.as_array().unwrap() {
        home.run(&["sandbox", "destroy", row["id"].as_str().unwrap()]);
    }
}

#[test]
fn a_platforms_backend_that_is_missing_stops_the_start() {
    let config = "platforms: {webhook: {terminal_backend: docker}}\n";
    let (_, access) = webhook();
    let ended = Hermetic::with(config)
        .file(".env", &format!("{access}\n"))
        .variable("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .run(&["gateway", "run"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    let error = ended.err.split("error: ").nth(1).unwrap();
    let expected = "the engine at unix:///nowhere/docker.sock does not answer";
    assert!(error.contains(expected), "{error}");
    assert!(!ended.err.contains("ready"), "{}", ended.err);
}

#[test]
fn a_platforms_backend_is_proven_at_the_start() {
    let rootfs = tempfile::tempdir().unwrap();
    // A system without a shell, which only the webhook would use.
    let config = format!(
        "gateway: {{terminal_backend: local}}\nterminal: {{native_rootfs: '{}'}}\nplatforms: {{webhook: {{terminal_backend: native}}}}\n",
        rootfs.path().display()
    );
    let (_, access) = webhook();
    let hermetic = Hermetic::with(&config).file(".env", &format!("{access}\n"));
    if !hermetic.has_sandboxes("a_platforms_backend_is_proven_at_the_start") {
        return;
    }
    let ended = hermetic.run(&["gateway", "run"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("the native backend does not work"),
        "{}",
        ended.err
    );
}
