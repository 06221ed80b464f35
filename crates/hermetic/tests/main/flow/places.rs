//! A backend for one platform alone.

use serde_json::json;

use super::approvals::{Deed, name};
use super::doors::{post, webhook};
use super::lab::Lab;
use crate::hermetic::Hermetic;

const APART: &str = "gateway: {platforms: {webhook: {terminal_backend: local}}}\n";

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
