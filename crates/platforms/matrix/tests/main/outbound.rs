//! What we say, and what of it arrives once.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, SendFailure, SendKey};
use hermetic_testkit::matrix::ProxyFault;
use serde_json::json;

use crate::lab::{Lab, next_message, outgoing};

fn keyed(text: &str, delivery: i64) -> ChatReply {
    ChatReply {
        key: Some(SendKey::new(delivery, 0)),
        ..ChatReply::text(outgoing(text))
    }
}

#[tokio::test]
async fn the_same_key_makes_one_message_also_after_a_crash() {
    let Some(lab) = Lab::new("the_same_key_makes_one_message").await else {
        return;
    };
    let place = lab.private();
    lab.proxy.spoil(ProxyFault::LoseAnswer);
    let first = lab.matrix.send(&place, &keyed("once", 7)).await.unwrap();
    // Killed after the homeserver took it and before that was written down.
    let again = lab.restarted();
    let second = again.send(&place, &keyed("once", 7)).await.unwrap();
    assert_eq!(first, second);
    let other = again.send(&place, &keyed("another", 8)).await.unwrap();
    assert_ne!(first, other);
    let shown = lab.alice.shown(&lab.room, lab.bot.user()).await;
    let texts: Vec<_> = shown.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["once", "another"]);
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_kept_and_a_longer_one_is_told() {
    let Some(lab) = Lab::with("a_pause_that_is_asked_for", |config| {
        config.timing.throttle = Duration::from_secs(1);
    })
    .await
    else {
        return;
    };
    let place = lab.private();
    let throttle = |times, retry_after_ms| {
        lab.proxy.spoil(ProxyFault::ThrottleSends {
            times,
            retry_after_ms,
        });
    };
    throttle(2, 20);
    let sent = lab.matrix.send(&place, &keyed("patience", 1)).await;
    sent.unwrap();
    throttle(1, 60_000);
    let told = lab
        .matrix
        .send(&place, &keyed("later", 2))
        .await
        .unwrap_err();
    match told.failure {
        SendFailure::Throttled { retry_after } => assert_eq!(retry_after, Duration::from_secs(60)),
        other => panic!("{other:?}"),
    }
    // An answer that grows does not even try meanwhile.
    let sent = lab.matrix.send(&place, &keyed("draft", 3)).await.unwrap();
    let text = outgoing("draft grows");
    for _ in 0..2 {
        let told = lab
            .matrix
            .refresh(&place, &sent[0], &text)
            .await
            .unwrap_err();
        assert!(
            matches!(told.failure, SendFailure::Throttled { .. }),
            "{told:?}"
        );
    }
    let sends = lab.proxy.requests();
    let sends = sends
        .iter()
        .filter(|one| one.contains("/send/m.room.message/"));
    assert_eq!(sends.count(), 3 + 1 + 1);
}

#[tokio::test]
async fn a_megabyte_leaves_in_parts_with_code_whole_and_formatted() {
    let Some(lab) = Lab::new("a_megabyte_leaves_in_parts").await else {
        return;
    };
    let mut text = String::from("# Report\n");
    while text.len() < 1_000_000 {
        text.push_str("```rust\nlet a = \"<b>\" & 1;\n```\nwith **words** between\n\n");
    }
    let whole = ChatReply::text(outgoing(&text));
    let refused = lab.matrix.send(&lab.private(), &whole).await.unwrap_err();
    assert!(
        matches!(refused.failure, SendFailure::TooLong { .. }),
        "{refused:?}"
    );
    let parts = lab.matrix.capabilities().parts(&outgoing(&text));
    assert!(parts.len() > 60, "{}", parts.len());
    for part in &parts {
        let fences = part.as_str().lines().filter(|line| line.starts_with("```"));
        assert_eq!(fences.count() % 2, 0, "a code block is open at an end");
    }
    // Three of them stand for all.
    for part in parts.iter().take(3) {
        lab.matrix
            .send(&lab.private(), &ChatReply::text(part.clone()))
            .await
            .unwrap();
    }
    let shown = lab.alice.shown(&lab.room, lab.bot.user()).await;
    assert_eq!(shown.len(), 3);
    let html = shown[0].content["formatted_body"].as_str().unwrap();
    assert!(html.starts_with("<h1>Report"), "{}", &html[..80]);
    assert!(
        html.contains("<code class=\"language-rust\">let a = &quot;&lt;b&gt;"),
        "{}",
        &html[..200]
    );
    assert_eq!(shown[0].content["m.mentions"], json!({}));
}

#[tokio::test]
async fn typing_is_shown_and_ends_with_the_answer_and_reading_is_told() {
    let Some(lab) = Lab::new("typing_is_shown").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let said = lab.alice.says(&lab.room, "hello").await;
    next_message(&mut inbox).await;
    let requests = |what: &str| {
        let all = lab.proxy.requests();
        all.iter().filter(|request| request.contains(what)).count()
    };
    assert_eq!(
        requests("/receipt/") + requests("/typing/"),
        0,
        "nobody answers yet"
    );
    lab.matrix.typing(&lab.private()).await.unwrap();
    assert_eq!(
        (
            requests("/typing/"),
            requests(&format!("/receipt/m.read/{said}"))
        ),
        (1, 1)
    );
    let reply = ChatReply::text(outgoing("hello Alice"));
    lab.matrix.send(&lab.private(), &reply).await.unwrap();
    assert_eq!((requests("/typing/"), requests("/receipt/")), (2, 1));
}
