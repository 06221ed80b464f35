//! Where one conversation ends and the next begins, and how many go on at once.

use std::sync::Arc;

use hermetic_testkit::model::Reply;
use hermetic_types::{ConversationKey, Timestamp};
use tokio::sync::Notify;

use crate::approvals::{self, Deed};
use crate::lab::{ALICE, BOB, Lab, stalls};

#[tokio::test]
async fn after_a_long_silence_a_conversation_starts_afresh_and_says_so() {
    let script = ["no idea", "hello", "an apple"].map(|words| Reply::streams(&[words]));
    let config = "session_reset: {mode: both, idle_minutes: 60}\n";
    let lab = Lab::builder()
        .script(script)
        .config(config)
        .access("TELEGRAM_ALLOWED_USERS=7")
        .start()
        .await;
    let store = lab.store().await;
    let key = ConversationKey::new("agent:main:telegram:dm:7");
    let line = r#"{"row": 0, "message": {"role": "user", "parts": [{"type": "text", "text": "remember the apple"}]}}"#;
    let long_ago = Timestamp::from_millis(1_700_000_000_000);
    store.history().append(&key, line, long_ago).await.unwrap();
    let said = lab.ask(ALICE, "what was it?").await;
    assert!(
        said.starts_with("[Nothing was said here for long"),
        "{said}"
    );
    assert!(said.ends_with("no idea"), "{said}");
    assert!(!lab.asked()[0].contains("apple"), "{}", lab.asked()[0]);
    // Once: the next word is in the same conversation.
    assert_eq!(lab.ask(ALICE, "and now?").await, "hello");
    assert!(lab.asked()[1].contains("what was it?"));
    // Whoever takes it up again is not silent, however long ago it was said.
    let listed = lab.ask(ALICE, "/sessions").await;
    let resume = listed.lines().find(|line| line.contains("apple"));
    let resume = resume.unwrap_or_else(|| panic!("{listed}"));
    let resume: Vec<_> = resume.split(' ').take(2).collect();
    let said = lab.ask(ALICE, &resume.join(" ")).await;
    assert!(said.starts_with("I have it before me again"), "{said}");
    assert_eq!(lab.ask(ALICE, "and then?").await, "an apple");
    assert!(lab.asked()[2].contains("apple"), "{}", lab.asked()[2]);
    let said = lab.ask(ALICE, "/new forget").await;
    assert!(said.contains("is forgotten"), "{said}");
    let listed = lab.ask(ALICE, "/sessions").await;
    assert!(
        listed.starts_with("There is nothing from before"),
        "{listed}"
    );
}

#[tokio::test]
async fn where_an_old_yes_cannot_be_taken_back_nothing_begins() {
    let deed = Deed::new();
    let lab = approvals::lab([Reply::streams(&["hello"])], "").await;
    let question = lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    let id = approvals::name(&question);
    lab.says(ALICE, &format!("/approve {id} session"));
    lab.replies(ALICE, 3).await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    lab.spoil(
        "CREATE TRIGGER broken BEFORE DELETE ON grants
         BEGIN SELECT RAISE(ABORT, 'broken'); END",
    );
    let said = lab.ask(ALICE, "/new").await;
    assert!(!said.starts_with("A fresh conversation"), "{said}");
    let listed = lab.ask(ALICE, "/sessions").await;
    assert!(
        listed.starts_with("There is nothing from before"),
        "a new session began under an old yes: {listed}"
    );
}

#[tokio::test]
async fn words_that_the_operator_chose_start_afresh() {
    let config = "reset_triggers: ['start over']\n";
    let lab = Lab::builder()
        .config(config)
        .access("TELEGRAM_ALLOWED_USERS=7")
        .start()
        .await;
    let said = lab.ask(ALICE, " Start over ").await;
    assert!(said.starts_with("A fresh conversation"), "{said}");
    assert_eq!(lab.model.received().len(), 0);
}

#[tokio::test]
async fn no_more_conversations_are_at_work_than_allowed() {
    let gate = Arc::new(Notify::new());
    let script = [
        Reply::streams_through(&gate, &["first"], &[" done"]),
        Reply::streams(&["second"]),
    ];
    let config = "max_concurrent_sessions: 1\n";
    let lab = Lab::builder().script(script).config(config).start().await;
    lab.says(ALICE, "one");
    lab.model_asked(1).await;
    lab.says(BOB, "two");
    // Commands need no turn, and are answered after Bob's message was taken.
    let status = lab.ask(BOB, "/status").await;
    assert!(status.contains("turn: at work"), "{status}");
    assert_eq!(lab.model.received().len(), 1);
    gate.notify_one();
    assert_eq!(lab.replies(ALICE, 1).await, ["first done"]);
    assert_eq!(lab.replies(BOB, 2).await[1], "second");
}

#[tokio::test]
async fn a_flood_is_bounded_and_told_once() {
    const FLOOD: usize = 300;
    let config = "display: {busy_input_mode: queue}\n";
    let lab = Lab::builder()
        .script([stalls()])
        .config(config)
        .start()
        .await;
    lab.says(ALICE, "think");
    lab.model_asked(1).await;
    for n in 0..FLOOD {
        lab.says(ALICE, &format!("and {n}?"));
    }
    // 32 wait. A reply to each of the others would be a flood of our own.
    lab.chat().all_signed().await;
    let refused = lab.replies(ALICE, 1).await;
    assert!(refused[0].contains("Too many messages wait"), "{refused:?}");
    let status = lab.ask(ALICE, "/status").await;
    assert!(status.contains("waiting: 32"), "{status}");
    assert_eq!(lab.sent_to(ALICE), 2);
    // Nobody else notices.
    assert!(lab.ask(BOB, "/whoami").await.contains("user: 8"));
    let said = lab.ask(ALICE, "/new").await;
    assert!(
        said.contains("Interrupted") || said.contains("fresh"),
        "{said}"
    );
}
