//! The whole flow with containers for sandboxes.

use hermetic_testkit::model::Reply;

use super::lab::{ALICE, BOB, Lab, notes};
use crate::docker::containers;

/// Nothing where there is no engine with the test image.
async fn start(test: &str, script: impl IntoIterator<Item = Reply>) -> Option<Lab> {
    let image = std::env::var("HERMETIC_TEST_IMAGE").ok();
    let (Some(image), Some(_)) = (image, containers("none")) else {
        eprintln!("SKIP: {test}: no engine with a test image; `cargo xtask test` provides one");
        return None;
    };
    let more = format!("gateway: {{terminal_backend: docker, sandbox_image: '{image}'}}\n");
    let engine = std::env::var("DOCKER_HOST").unwrap_or_default();
    let engine = [("DOCKER_HOST", engine.as_str())];
    Lab::start_in(test, script, &more, "TELEGRAM_ALLOWED_USERS=7,8", &engine).await
}

fn left(lab: &Lab) -> Vec<String> {
    let id = std::fs::read_to_string(lab.path("hermetic/installation")).unwrap();
    containers(id.trim()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_from_its_own_container() {
    let script = notes("cat /etc/hostname; ls /sys/class/net");
    let test = "a_message_is_answered_from_its_own_container";
    let Some(mut lab) = start(test, script).await else {
        return;
    };
    lab.noted("hermetic\nlo").await;
    assert_eq!(left(&lab).len(), 1);

    // Somebody else has another, and the next message finds what the last one left.
    let bobs = lab.ask(BOB, "/sh ls; echo done").await;
    assert_eq!(bobs.trim(), "done");
    let ids = [
        lab.ask(ALICE, "/sh id -u").await,
        lab.ask(BOB, "/sh id -u").await,
    ];
    assert!(ids.iter().all(|id| id.trim() != "0"), "{ids:?}");
    assert_eq!(lab.ask(ALICE, "/sh cat note").await.trim(), "mine");
    assert_eq!(left(&lab).len(), 2);

    lab.destroy(ALICE).await;
    assert_eq!(left(&lab).len(), 1);
    lab.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_finds_its_containers_again() {
    let test = "a_killed_gateway_finds_its_containers_again";
    let Some(mut lab) = start(test, []).await else {
        return;
    };
    let told = lab.ask(ALICE, "/sh echo mine > note; echo $$ >&2").await;
    assert!(!told.is_empty());
    let before = left(&lab);
    lab.kill();
    lab.restart();
    assert_eq!(lab.ask(ALICE, "/sh cat note").await.trim(), "mine");
    assert_eq!(left(&lab), before);
}
