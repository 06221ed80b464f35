//! Replies: styled, split, throttled, and honest about what arrived.

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, ChatReply, DownloadError, OutgoingFile, SendError, SendFailure};
use hermetic_testkit::signal_server::{ALICE, BOB, Failure, in_group};
use hermetic_types::{Attachment, AttachmentId, AttachmentKind, MessageId, UserId};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::lab::{GROUP, Lab, PATIENCE, group, next_message, outgoing, private};

fn reply(words: impl AsRef<str>) -> ChatReply {
    ChatReply::text(outgoing(words))
}

async fn send(lab: &Lab, reply: &ChatReply) -> Result<Vec<MessageId>, SendError> {
    let place = private(ALICE);
    let sending = lab.signal.send(&place, reply);
    timeout(PATIENCE, sending).await.expect("in time")
}

fn refusal(code: i64, results: Value) -> Failure {
    let mut data = json!({ "response": { "timestamp": 1 } });
    data["response"]["results"] = results;
    Failure::Refuse {
        code,
        message: "Failed to send message",
        data,
    }
}

#[tokio::test]
async fn a_reply_is_styled_and_goes_where_it_belongs() {
    let lab = Lab::new().await;
    let ids = send(&lab, &reply("**done** in `1.5 s`")).await.unwrap();
    lab.signal.send(&group(), &reply("to all")).await.unwrap();
    let calls = lab.server.calls("send");
    assert_eq!(ids[0].as_str(), calls[0].timestamp.to_string());
    assert_eq!(calls[0].params["message"], "done in 1.5 s");
    assert_eq!(
        calls[0].params["textStyle"],
        json!(["0:4:BOLD", "8:5:MONOSPACE"])
    );
    assert_eq!(calls[0].params["recipient"], json!([ALICE.uuid]));
    assert_eq!(
        (
            calls[1].params["groupId"].as_str(),
            &calls[1].params["recipient"]
        ),
        (Some(GROUP), &Value::Null)
    );
}

#[tokio::test]
async fn styles_that_are_refused_are_left_out() {
    let lab = Lab::new().await;
    lab.server.fail_next(
        "send",
        Failure::Refuse {
            code: -1,
            message: "Invalid textStyle syntax (0:4:BOLD)",
            data: Value::Null,
        },
    );
    send(&lab, &reply("**done**")).await.unwrap();
    let params = &lab.server.calls("send")[0].params;
    assert_eq!(
        (params["message"].as_str(), &params["textStyle"]),
        (Some("**done**"), &Value::Null)
    );
}

#[tokio::test]
async fn a_long_reply_becomes_several_and_quotes_once() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server
        .says_with(BOB, in_group(GROUP, "how long is it?"));
    let asked = next_message(&mut inbox).await;
    let mut long = reply("some words here. ".repeat(300));
    long.reply_to = Some(asked.message);
    let ids = lab.signal.send(&group(), &long).await.unwrap();
    let calls = lab.server.calls("send");
    assert_eq!((ids.len(), calls.len()), (3, 3));
    let first = &calls[0].params;
    assert_eq!(
        (
            first["quoteAuthor"].as_str(),
            first["quoteMessage"].as_str()
        ),
        (Some(BOB.uuid), Some("how long is it?"))
    );
    assert!(first["quoteTimestamp"].is_u64());
    for call in &calls {
        assert!(call.params["message"].as_str().unwrap().len() <= 2000);
    }
    assert!(calls[1].params["quoteTimestamp"].is_null());
    // Whose message it was learns that it was read.
    let receipts = lab.server.calls("sendReceipt");
    assert_eq!(receipts[0].params["recipient"], BOB.uuid);
}

#[tokio::test]
async fn limits_are_waited_for_and_long_ones_are_told() {
    let lab = Lab::new().await;
    let limited = |seconds: u64| {
        refusal(
            -5,
            json!([{ "type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": seconds }]),
        )
    };
    lab.server.fail_next("send", limited(0));
    send(&lab, &reply("soon")).await.unwrap();
    lab.server.fail_next("send", limited(100));
    let held = send(&lab, &reply("later")).await.unwrap_err().failure;
    assert!(matches!(held, SendFailure::Throttled { .. }), "{held:?}");
    assert_eq!(lab.server.tries("send"), 3);
    // Without asking again.
    let held = send(&lab, &reply("later")).await.unwrap_err().failure;
    assert!(matches!(held, SendFailure::Throttled { .. }), "{held:?}");
    assert_eq!(lab.server.tries("send"), 3);
    lab.signal
        .send(&private(BOB), &reply("to another"))
        .await
        .unwrap();
}

#[tokio::test]
async fn every_failure_says_whether_it_may_have_arrived() {
    let lab = Lab::new().await;
    let unregistered = json!([{ "type": "UNREGISTERED_FAILURE" }]);
    for (failure, expected) in [
        (refusal(-1, unregistered), "refused"),
        (
            refusal(-4, json!([{ "type": "IDENTITY_FAILURE" }])),
            "refused",
        ),
        (refusal(-32603, json!([])), "uncertain"),
        (
            refusal(-1, json!([{ "type": "NETWORK_FAILURE" }])),
            "uncertain",
        ),
        (Failure::Status(500), "uncertain"),
        (Failure::Status(421), "not sent"),
        (Failure::Drop, "uncertain"),
        (Failure::DropAfter, "uncertain"),
    ] {
        lab.server.fail_next("send", failure.clone());
        let came_of_it = match send(&lab, &reply("hello")).await.unwrap_err().failure {
            SendFailure::Refused { .. } => "refused",
            SendFailure::Uncertain(_) => "uncertain",
            SendFailure::NotSent(_) => "not sent",
            other => panic!("{other:?}"),
        };
        assert_eq!(came_of_it, expected, "{failure:?}");
    }
    lab.server.unlink();
    let failure = send(&lab, &reply("hello")).await.unwrap_err().failure;
    assert!(matches!(failure, SendFailure::NotSent(_)), "{failure:?}");
}

#[tokio::test]
async fn typing_is_shown_and_ends_with_the_answer() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "one");
    let at = lab.server.says(ALICE, "two");
    next_message(&mut inbox).await;
    next_message(&mut inbox).await;
    assert_eq!(
        lab.server.tries("sendReceipt"),
        0,
        "a stranger learns nothing"
    );
    lab.signal.typing(&private(ALICE)).await.unwrap();
    let receipts = lab.server.calls("sendReceipt");
    assert_eq!(receipts.len(), 1);
    assert_eq!(
        receipts[0].params["targetTimestamp"],
        json!([at - 1000, at])
    );
    send(&lab, &reply("done")).await.unwrap();
    send(&lab, &reply("and more")).await.unwrap();
    let typing: Vec<_> = lab
        .server
        .calls("sendTyping")
        .iter()
        .map(|call| call.params["stop"] == true)
        .collect();
    assert_eq!(typing, [false, true]);
    assert_eq!(lab.server.calls("sendReceipt").len(), 1);
}

#[tokio::test]
async fn a_file_leaves_with_its_name_and_caption() {
    let lab = Lab::new().await;
    let file = OutgoingFile {
        name: "/somewhere/notes ü.txt".to_owned(),
        bytes: Bytes::from_static(b"a note"),
        caption: Some(outgoing("**the** notes")),
    };
    lab.signal.send_file(&private(ALICE), &file).await.unwrap();
    let params = &lab.server.calls("send")[0].params;
    assert_eq!(
        params["attachments"],
        json!(["data:text/plain;filename=notes%20%C3%BC.txt;base64,YSBub3Rl"])
    );
    assert_eq!(
        (params["message"].as_str(), &params["textStyle"]),
        (Some("the notes"), &json!(["0:3:BOLD"]))
    );
}

#[tokio::test]
async fn a_file_comes_within_bounds() {
    let lab = Lab::new().await;
    lab.server.put_file("abc.bin", &[7; 200_000]);
    let attachment = |id: &str, bytes: Option<u64>| Attachment {
        id: AttachmentId::new(id).unwrap(),
        kind: AttachmentKind::Document,
        name: None,
        mime: None,
        bytes,
    };
    let stream = lab
        .signal
        .download(&attachment("abc.bin", None), 300_000)
        .await
        .unwrap();
    let chunks: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(chunks.concat(), vec![7; 200_000]);
    let error = lab
        .signal
        .download(&attachment("abc.bin", Some(300_001)), 300_000)
        .await
        .err()
        .unwrap();
    assert!(matches!(error, DownloadError::TooLarge { .. }), "{error:?}");
    // It claims to be small.
    for limit in [199_999, 1000] {
        let error = lab
            .signal
            .download(&attachment("abc.bin", Some(10)), limit)
            .await
            .err()
            .unwrap();
        assert!(!matches!(error, DownloadError::Refused { .. }), "{error:?}");
    }
    let error = lab
        .signal
        .download(&attachment("none", None), 1000)
        .await
        .err()
        .unwrap();
    assert!(matches!(error, DownloadError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_is_written_to_by_a_name_that_is_none() {
    let lab = Lab::new().await;
    let mut place = private(ALICE);
    place.chat = hermetic_types::ChatId::new("--help").unwrap();
    let failure = lab
        .signal
        .send(&place, &reply("x"))
        .await
        .unwrap_err()
        .failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
    for name in ["nobody", "+4915100000077"] {
        let user = UserId::new(name).unwrap();
        let error = lab.signal.private_place(&user).await.unwrap_err();
        assert!(
            matches!(error.failure, SendFailure::Refused { .. }),
            "{error:?}"
        );
    }
    assert_eq!(lab.server.tries("send"), 0);
}
