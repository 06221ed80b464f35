//! Replies, edits and their failures.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, ReplyButton, SendFailure};
use hermetic_testkit::slack::{CHANNEL, Failure};
use hermetic_types::{MessageId, UserId};
use serde_json::json;

use crate::lab::{ALICE, ALICES_CHANNEL, Lab, outgoing, private, thread, ts_of};

async fn failure(lab: &Lab, text: &str) -> SendFailure {
    let reply = ChatReply::text(outgoing(text));
    lab.slack
        .send(&private(), &reply)
        .await
        .unwrap_err()
        .failure
}

#[tokio::test]
async fn a_reply_is_written_in_mrkdwn_and_calls_nobody() {
    let lab = Lab::new().await;
    let reply = ChatReply::text(outgoing(
        "**done** <!channel> [log](https://a.example/?a=1&b=2)",
    ));
    lab.slack.send(&private(), &reply).await.unwrap();
    let call = lab.server.calls("chat.postMessage").remove(0);
    assert_eq!(
        call["text"],
        "*done* &lt;!channel&gt; <https://a.example/?a=1&amp;b=2|log>"
    );
    assert_eq!(
        (&call["unfurl_links"], &call["unfurl_media"]),
        (&json!(false), &json!(false))
    );
    assert_eq!((call.get("thread_ts"), call.get("blocks")), (None, None));
}

#[tokio::test]
async fn a_reply_stays_in_its_thread_or_is_not_sent() {
    let lab = Lab::new().await;
    let parent = lab
        .server
        .writes(CHANNEL, ALICE, json!({ "text": "a question" }));
    let parent = parent["ts"].as_str().unwrap();
    let place = thread(CHANNEL, parent);
    let reply = ChatReply::text(outgoing("an answer"));
    lab.slack.send(&place, &reply).await.unwrap();
    assert_eq!(lab.server.calls("chat.postMessage")[0]["thread_ts"], parent);
    assert_eq!(lab.server.shown(CHANNEL), ["an answer"]);

    // The question is deleted: Slack would show the next answer to the whole channel.
    lab.server.deletes(CHANNEL, parent);
    let failure = lab.slack.send(&place, &reply).await.unwrap_err().failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
    assert_eq!(lab.server.calls("chat.delete").len(), 1);
    assert_eq!(lab.server.shown(CHANNEL), ["an answer"]);
    // One that is no thread at all does not even leave.
    for odd in ["1700000000", "general", "1700000000.1"] {
        let failure = lab
            .slack
            .send(&thread(CHANNEL, odd), &reply)
            .await
            .unwrap_err()
            .failure;
        assert!(
            matches!(failure, SendFailure::Refused { .. }),
            "{failure:?}"
        );
    }
    assert_eq!(lab.server.tries("chat.postMessage"), 2);
}

#[tokio::test]
async fn failures_say_whether_it_may_have_arrived() {
    let lab = Lab::new().await;
    for error in [
        "not_in_channel",
        "channel_not_found",
        "restricted_action",
        "missing_scope",
    ] {
        lab.server
            .fail_next("chat.postMessage", Failure::Refuse(error));
        let failure = failure(&lab, "hello").await;
        assert!(matches!(&failure, SendFailure::Refused { description } if description == error));
    }
    for uncertain in [
        Failure::BadGateway,
        Failure::Drop,
        Failure::DropAfter,
        Failure::Refuse("internal_error"),
        Failure::Refuse("fatal_error"),
    ] {
        lab.server.fail_next("chat.postMessage", uncertain);
        let failure = failure(&lab, "hello").await;
        assert!(matches!(failure, SendFailure::Uncertain(_)), "{failure:?}");
    }
    assert_eq!(
        lab.server.tries("chat.postMessage"),
        9,
        "none of them was tried again"
    );
    // Nobody is there at all.
    let unreachable =
        Lab::with(|config| config.api_base = "http://127.0.0.1:1/api".to_owned()).await;
    let failure = failure(&unreachable, "hello").await;
    assert!(matches!(failure, SendFailure::NotSent(_)), "{failure:?}");
}

#[tokio::test]
async fn slack_is_left_alone_for_as_long_as_it_says() {
    let lab = Lab::new().await;
    lab.server
        .fail_next("chat.postMessage", Failure::Throttle(0));
    lab.slack
        .send(&private(), &ChatReply::text(outgoing("a moment later")))
        .await
        .unwrap();
    assert_eq!(lab.server.tries("chat.postMessage"), 2);
    // Longer than a send may wait: the caller is told, and the channel is not asked meanwhile.
    lab.server
        .fail_next("chat.postMessage", Failure::Throttle(600));
    for _ in 0..3 {
        let failure = failure(&lab, "hello").await;
        let SendFailure::Throttled { retry_after } = failure else {
            panic!("{failure:?}");
        };
        assert!(retry_after > Duration::from_secs(500), "{retry_after:?}");
    }
    assert_eq!(lab.server.tries("chat.postMessage"), 3);
    // Another channel is none of its business.
    let place = thread(
        CHANNEL,
        lab.server.writes(CHANNEL, ALICE, json!({}))["ts"]
            .as_str()
            .unwrap(),
    );
    lab.slack
        .send(&place, &ChatReply::text(outgoing("elsewhere")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_growing_answer_waits_for_nothing_and_leaves_calls_for_the_last_edit() {
    let lab = Lab::new().await;
    let sent = lab
        .slack
        .send(&private(), &ChatReply::text(outgoing("…")))
        .await
        .unwrap();
    let mut shown = 0;
    let throttled = loop {
        let text = outgoing(format!("growing {shown}"));
        match lab.slack.refresh(&private(), &sent[0], &text).await {
            Ok(()) => shown += 1,
            Err(error) => break error.failure,
        }
        assert!(shown < 100, "it never stops");
    };
    assert!(
        matches!(throttled, SendFailure::Throttled { .. }),
        "{throttled:?}"
    );
    let last = outgoing("the whole answer");
    lab.slack
        .edit(&private(), &sent[0], &last, &[])
        .await
        .unwrap();
    assert_eq!(lab.server.shown(ALICES_CHANNEL), ["the whole answer"]);
    lab.server
        .fail_next("chat.update", Failure::Refuse("message_not_found"));
    let gone = lab
        .slack
        .edit(&private(), &sent[0], &last, &[])
        .await
        .unwrap_err();
    assert!(
        matches!(gone.failure, SendFailure::Refused { .. }),
        "{gone:?}"
    );
    let odd = MessageId::new("F0FILE").unwrap();
    let none = lab
        .slack
        .edit(&private(), &odd, &last, &[])
        .await
        .unwrap_err();
    assert!(
        matches!(none.failure, SendFailure::Refused { .. }),
        "{none:?}"
    );
}

#[tokio::test]
async fn buttons_hang_under_the_last_part_and_long_code_stays_code() {
    let lab = Lab::new().await;
    let yes = ReplyButton::new("Yes", "q1:yes").unwrap();
    let code = format!(
        "```rust\n{}```\nMay I?",
        "let a = 1 < 2 && true;\n".repeat(200)
    );
    let reply = ChatReply {
        buttons: vec![vec![yes]],
        ..ChatReply::text(outgoing(code))
    };
    let sent = lab.slack.send(&private(), &reply).await.unwrap();
    assert!(sent.len() > 1);
    for (index, id) in sent.iter().enumerate() {
        let message = lab.server.message(ALICES_CHANNEL, &ts_of(id)).unwrap();
        let blocks = message["blocks"].as_array().cloned().unwrap_or_default();
        let has_button = blocks.iter().any(|block| block["type"] == "actions");
        assert_eq!(has_button, index + 1 == sent.len());
    }
    for shown in lab.server.shown(ALICES_CHANNEL) {
        assert_eq!(shown.matches("```").count() % 2, 0, "{shown}");
    }
}

#[tokio::test]
async fn blocks_that_slack_refuses_leave_as_text() {
    let lab = Lab::new().await;
    lab.server
        .fail_next("chat.postMessage", Failure::Refuse("msg_blocks_too_long"));
    // Escaping makes it too long for a text that can be edited.
    let reply = ChatReply::text(outgoing("&".repeat(2900)));
    lab.slack.send(&private(), &reply).await.unwrap();
    let call = lab.server.calls("chat.postMessage").remove(0);
    assert_eq!(call.get("blocks"), None);
}

#[tokio::test]
async fn writing_shows_in_threads_until_slack_says_no() {
    let lab = Lab::new().await;
    lab.slack.typing(&private()).await.unwrap();
    assert_eq!(lab.server.tries("assistant.threads.setStatus"), 0);
    let place = thread(CHANNEL, "1700000000.000100");
    lab.slack.typing(&place).await.unwrap();
    assert_eq!(
        lab.server.calls("assistant.threads.setStatus")[0]["channel_id"],
        CHANNEL
    );
    lab.server.fail_next(
        "assistant.threads.setStatus",
        Failure::Refuse("missing_scope"),
    );
    for _ in 0..3 {
        lab.slack.typing(&place).await.unwrap();
    }
    assert_eq!(lab.server.tries("assistant.threads.setStatus"), 2);
}

#[tokio::test]
async fn a_person_of_a_partner_is_reached_by_their_own_id() {
    let lab = Lab::new().await;
    let partner = UserId::new(format!("T0PARTNER/{ALICE}")).unwrap();
    let place = lab.slack.private_place(&partner).await.unwrap();
    assert_eq!(place, private());
    assert_eq!(lab.server.calls("conversations.open")[0]["users"], ALICE);
}
