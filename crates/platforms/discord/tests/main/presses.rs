//! Buttons: answered in time, to who pressed.

use std::time::Duration;

use hermetic_chat::Chat;
use hermetic_testkit::discord::{CHANNEL, CREATE_MESSAGE, FIRST_ANSWER, Failure};
use hermetic_types::{ButtonPress, ChatKind};

use crate::lab::{ALICE, Inbox, Lab, listening_until, next_press, outgoing, place, reply};

const FOLLOW_UP: &str = "POST /webhooks/{}/{}";

async fn pressed(lab: &Lab, inbox: &mut Inbox<'_>) -> ButtonPress {
    let channel = lab.server.private_channel(ALICE);
    listening_until(inbox, lab.server.wait_for_bot()).await;
    lab.server.presses(ALICE, channel, 5, "q:1");
    next_press(inbox).await
}

#[tokio::test]
async fn a_press_is_answered_in_one_step_and_for_one_person() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let press = pressed(&lab, &mut inbox).await;
    assert_eq!((press.data.as_str(), press.message.as_str()), ("q:1", "5"));
    lab.discord
        .answer_press(&press, &outgoing("Allowed once."))
        .await
        .unwrap();
    let calls = lab.server.calls(FIRST_ANSWER);
    assert_eq!(calls[0].body["type"], 4);
    assert_eq!(calls[0].body["data"]["flags"], 64);
    assert_eq!(calls[0].body["data"]["content"], "Allowed once.");
    // It was answered; there is nothing to acknowledge.
    lab.discord.acknowledge_press(&press).await.unwrap();
    assert_eq!(lab.server.tries(FIRST_ANSWER), 1);
}

#[tokio::test]
async fn an_acknowledged_press_is_answered_behind_it() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let press = pressed(&lab, &mut inbox).await;
    lab.discord.acknowledge_press(&press).await.unwrap();
    assert_eq!(lab.server.calls(FIRST_ANSWER)[0].body["type"], 6);
    lab.discord
        .answer_press(&press, &outgoing("Allowed once."))
        .await
        .unwrap();
    let said = &lab.server.calls(FOLLOW_UP)[0].body;
    assert_eq!(
        (said["content"].as_str(), said["flags"].as_u64()),
        (Some("Allowed once."), Some(64))
    );
}

#[tokio::test]
async fn a_press_is_acknowledged_though_nobody_takes_the_events() {
    let lab = Lab::with(|config| config.timing.acknowledge = Duration::from_millis(10)).await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let channel = lab.server.private_channel(ALICE);
    lab.server.presses(ALICE, channel, 5, "q:1");
    // The stream is not polled: whoever would take the press waits for a disk.
    let calls = lab.server.wait_for(FIRST_ANSWER, 1).await;
    assert_eq!(calls[0].body["type"], 6);
    let press = next_press(&mut inbox).await;
    lab.discord
        .answer_press(&press, &outgoing("Late."))
        .await
        .unwrap();
    assert_eq!(lab.server.calls(FOLLOW_UP).len(), 1);
}

#[tokio::test]
async fn a_press_is_acknowledged_while_everything_else_has_to_wait() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let press = pressed(&lab, &mut inbox).await;
    let wait = Failure::TooMany {
        retry_after: 60.0,
        global: true,
    };
    lab.server.fail_next(CREATE_MESSAGE, wait);
    for _ in 0..2 {
        let held = lab.discord.send(&lab.private(), &reply("later")).await;
        assert!(held.is_err(), "all have to wait for a minute");
    }
    assert_eq!(lab.server.tries(CREATE_MESSAGE), 1);
    lab.discord.acknowledge_press(&press).await.unwrap();
    assert_eq!(lab.server.calls(FIRST_ANSWER).len(), 1);
    let said = lab.discord.answer_press(&press, &outgoing("Done.")).await;
    said.unwrap();
    assert_eq!(lab.server.calls(FOLLOW_UP).len(), 1);
}

#[tokio::test]
async fn an_acknowledgement_that_fails_is_tried_once_more() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let press = pressed(&lab, &mut inbox).await;
    // Carried out although its answer was lost: Discord says so to the second try.
    lab.server.fail_next(FIRST_ANSWER, Failure::DropAfter);
    lab.discord.acknowledge_press(&press).await.unwrap();
    assert_eq!(lab.server.tries(FIRST_ANSWER), 2);

    let press = pressed(&lab, &mut inbox).await;
    for _ in 0..2 {
        lab.server.fail_next(FIRST_ANSWER, Failure::BadGateway);
    }
    assert!(lab.discord.acknowledge_press(&press).await.is_err());
    // Nothing was said yet, so this is the first answer and nothing behind one.
    let said = lab.discord.answer_press(&press, &outgoing("Done.")).await;
    said.unwrap();
    let calls = lab.server.calls(FIRST_ANSWER);
    assert_eq!(calls.last().unwrap().body["type"], 4);
    assert_eq!(lab.server.calls(FOLLOW_UP).len(), 0);
}

#[tokio::test]
async fn a_press_of_an_earlier_process_is_answered_by_a_message() {
    let lab = Lab::new().await;
    let press = {
        let mut inbox = lab.listen();
        pressed(&lab, &mut inbox).await
    };
    let lab = lab.restarted(|_| {});
    lab.discord
        .answer_press(&press, &outgoing("Allowed once."))
        .await
        .unwrap();
    assert_eq!(
        lab.server.shown(lab.server.private_channel(ALICE)),
        ["Allowed once."]
    );
}

#[tokio::test]
async fn a_press_in_a_channel_names_its_place() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.presses(ALICE, CHANNEL, 5, "q:1");
    let press = next_press(&mut inbox).await;
    assert_eq!(press.place, place(CHANNEL, ChatKind::Group, None));
    assert_eq!(press.sender.id.as_str(), "7");
    assert!(
        !format!("{press:?}").contains("token-of"),
        "a token opens the answer"
    );
}
