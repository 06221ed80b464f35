//! The whole flow with Apptainer's instances for sandboxes.

use std::time::{Duration, Instant};

use hermetic_testkit::model::Reply;

use super::lab::{ALICE, BOB, Lab, notes};
use crate::singularity::{config, home, processes};

/// Nothing where there can be no instance.
async fn start(test: &str, script: impl IntoIterator<Item = Reply>) -> Option<Lab> {
    home(test)?;
    Lab::start_in(
        test,
        script,
        &config(test)?,
        "TELEGRAM_ALLOWED_USERS=7,8",
        &[],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_from_its_own_instance() {
    let test = "a_message_is_answered_from_its_own_instance";
    let Some(mut lab) = start(test, notes("grep -c : /proc/net/dev")).await else {
        return;
    };
    lab.noted("1").await;
    assert_eq!(lab.sandboxes().len(), 1);

    // Somebody else has another, and a gateway that was killed finds both again.
    let bobs = lab.ask(BOB, "/sh ls; echo done").await;
    assert_eq!(bobs.trim(), "done");
    lab.kill();
    lab.restart();
    assert_eq!(lab.ask(ALICE, "/sh cat note").await.trim(), "mine");
    assert_eq!(lab.sandboxes().len(), 2);

    for who in [ALICE, BOB] {
        lab.destroy(who).await;
    }
    assert_eq!(lab.sandboxes().len(), 0);
    let id = std::fs::read_to_string(lab.path("hermetic/installation")).unwrap();
    let begun = Instant::now();
    while !processes(&id).is_empty() {
        let left = processes(&id);
        assert!(begun.elapsed() < Duration::from_secs(60), "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    lab.terminate();
}
