//! The whole flow with Apptainer's instances for sandboxes.

use std::time::{Duration, Instant};

use hermetic_testkit::acp::put_in_place_of_opencode;
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

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_agent_answers_from_an_instance() {
    let test = "an_installed_agent_answers_from_an_instance";
    let Some(config) = home(test).and_then(|_| config(test)) else {
        return;
    };
    let config = format!("{config}agent: {{acp: opencode}}\n");
    let env = "TELEGRAM_ALLOWED_USERS=7,8\nANTHROPIC_API_KEY=sk-ant-of-the-test";
    let Some(mut lab) = Lab::start_in(test, [], &config, env, &[]).await else {
        return;
    };
    lab.terminate();
    put_in_place_of_opencode(&lab.path("hermetic/agents"), "1").unwrap();
    lab.restart();
    assert_eq!(lab.ask(ALICE, "say hello").await.trim(), "hello");
    // Few words, so that the answer is whole when it is first seen.
    let look = "run touch /agents/opencode/x 2>&1 | grep -o Read-only; ls /agents";
    let tried = lab.ask(ALICE, look).await;
    assert_eq!(tried, "ran: Read-only\nopencode");
    let key = "run case $ANTHROPIC_API_KEY in hermetic-placeholder-*) echo held;; esac";
    assert_eq!(lab.ask(ALICE, key).await, "ran: held");
    lab.destroy(ALICE).await;
}
