//! Buttons: under which message, by whom, acknowledged in time and answered later.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, ReplyButton};
use hermetic_testkit::slack::CHANNEL;
use serde_json::json;

use crate::lab::{
    ALICE, ALICES_CHANNEL, Lab, next, next_message, next_press, outgoing, thread, ts_of,
};

fn question() -> ChatReply {
    let yes = ReplyButton::new("Allow once", "q1:yes").unwrap();
    let no = ReplyButton::new("Deny", "q1:no").unwrap();
    ChatReply {
        buttons: vec![vec![yes, no]],
        ..ChatReply::text(outgoing("May I run `ls`?"))
    }
}

#[tokio::test]
async fn a_press_in_a_thread_is_answered_there_to_who_pressed() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let begun = lab.server.mentions(CHANNEL, ALICE, "hello");
    let place = next_message(&mut inbox).await.place;
    let asked = lab.slack.send(&place, &question()).await.unwrap();
    lab.server
        .presses(ALICE, CHANNEL, &ts_of(&asked[0]), "q1:no");
    let press = next_press(&mut inbox).await;
    assert_eq!((press.data.as_str(), &press.message), ("q1:no", &asked[0]));
    assert_eq!(press.place, thread(CHANNEL, &begun));
    assert_eq!(press.sender.id.as_str(), ALICE);
    lab.server.wait_until_acknowledged().await;

    lab.slack
        .answer_press(&press, &outgoing("Denied."))
        .await
        .unwrap();
    let told = lab.server.calls("chat.postEphemeral").remove(0);
    assert_eq!(
        (&told["user"], &told["channel"]),
        (&json!(ALICE), &json!(CHANNEL))
    );
    assert_eq!(
        (&told["thread_ts"], &told["text"]),
        (&json!(begun), &json!("Denied."))
    );
    // The question goes, and its buttons with it.
    let done = outgoing("Denied by Alice.");
    lab.slack.edit(&place, &asked[0], &done, &[]).await.unwrap();
    let shown = lab.server.message(CHANNEL, &ts_of(&asked[0])).unwrap();
    assert_eq!(
        (&shown["text"], &shown["blocks"]),
        (&json!("Denied by Alice."), &json!([]))
    );
}

#[tokio::test]
async fn a_press_is_acknowledged_before_it_is_stored_when_the_store_is_slow() {
    let lab = Lab::with(|config| config.timing.acknowledge_within = Duration::from_millis(1)).await;
    let mut inbox = lab.listen();
    let asked = lab
        .slack
        .send(&crate::lab::private(), &question())
        .await
        .unwrap();
    lab.server
        .presses(ALICE, ALICES_CHANNEL, &ts_of(&asked[0]), "q1:yes");
    let received = next(&mut inbox).await;
    lab.server.wait_until_acknowledged().await;
    // Slack does not send it again, so it stays with us until it is stored.
    drop(received.receipt);
    assert_eq!(next_press(&mut inbox).await.data, "q1:yes");
}

#[tokio::test]
async fn a_press_is_acknowledged_as_soon_as_the_gateway_says() {
    let lab = Lab::with(|config| config.timing.acknowledge_within = Duration::from_secs(600)).await;
    let mut inbox = lab.listen();
    let asked = lab
        .slack
        .send(&crate::lab::private(), &question())
        .await
        .unwrap();
    lab.server
        .presses(ALICE, ALICES_CHANNEL, &ts_of(&asked[0]), "q1:yes");
    let received = next(&mut inbox).await;
    assert_eq!(lab.server.unacknowledged(), 1);
    let hermetic_chat::ChatEvent::Press(press) = &received.event else {
        panic!("expected a press, got {:?}", received.event);
    };
    lab.slack.acknowledge_press(press).await.unwrap();
    lab.server.wait_until_acknowledged().await;
    received.receipt.stored();
}

#[tokio::test]
async fn a_press_of_another_bots_button_or_workspace_is_none() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let asked = lab
        .slack
        .send(&crate::lab::private(), &question())
        .await
        .unwrap();
    let ts = ts_of(&asked[0]);
    let press = |change: fn(&mut serde_json::Value)| {
        let mut payload = lab.server.press(ALICE, ALICES_CHANNEL, &ts, "q1:yes");
        change(&mut payload);
        lab.server.envelope("interactive", payload);
    };
    press(|payload| payload["message"]["bot_id"] = json!("B0EVIL"));
    press(|payload| {
        payload["message"]["bot_id"] = json!("B0EVIL");
        payload["message"]["user"] = json!("U0EVIL");
    });
    press(|payload| payload["team"]["id"] = json!("T0OTHER"));
    press(|payload| payload["actions"] = json!([]));
    press(|payload| payload["actions"][0]["value"] = json!(7));
    press(|payload| payload["type"] = json!("view_submission"));
    press(|payload| payload["user"] = json!(null));
    lab.server.says(ALICE, "after");
    // Our own name on the message is enough, and there is one such press.
    assert_eq!(next_press(&mut inbox).await.data, "q1:yes");
    assert_eq!(next_message(&mut inbox).await.text, "after");
    lab.server.wait_until_acknowledged().await;
}
