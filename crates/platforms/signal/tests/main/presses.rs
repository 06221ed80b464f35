//! Reactions as answers.

use std::sync::Arc;

use hermetic_chat::{Chat, ChatEvent, ChatReply, InMemoryState, ReplyButton};
use hermetic_signal::SignalAdapter;
use hermetic_testkit::signal_server::{ALICE, BOB, OWNER, reaction};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, config, next, next_message, outgoing, private};

fn question() -> ChatReply {
    let button = |label: &str, data: &str| ReplyButton::new(label, data).unwrap();
    let rows = vec![
        vec![
            button("Allow once", "q:once"),
            button("This session", "q:session"),
        ],
        vec![button("Deny", "q:deny")],
    ];
    ChatReply {
        buttons: rows,
        ..ChatReply::text(outgoing("May I?\n/approve k7q2m, /deny k7q2m"))
    }
}

#[tokio::test]
async fn a_question_says_what_each_reaction_means() {
    let lab = Lab::new().await;
    lab.signal.send(&private(ALICE), &question()).await.unwrap();
    let text = lab.server.calls("send")[0].params["message"]
        .as_str()
        .unwrap()
        .to_owned();
    let end = "/deny k7q2m\n\nOr react to this message: 👍 Allow once, 2⃣ This session, 👎 Deny";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn a_long_question_has_room_for_its_reactions() {
    let lab = Lab::new().await;
    let mut long = question();
    long.text = outgoing("some words here. ".repeat(200));
    let sent = lab.signal.send(&private(ALICE), &long).await.unwrap();
    let calls = lab.server.calls("send");
    assert_eq!((sent.len(), calls.len()), (2, 2));
    let texts: Vec<_> = calls
        .iter()
        .map(|call| call.params["message"].as_str().unwrap())
        .collect();
    assert!(texts.iter().all(|text| text.len() <= 2000));
    assert!(!texts[0].contains("react") && texts[1].contains("👎 Deny"));
}

#[tokio::test]
async fn a_reaction_is_a_press_also_after_a_restart() {
    let state: Arc<InMemoryState> = Arc::default();
    let shared = Arc::clone(&state);
    let lab = Lab::with(|config| config.state = shared).await;
    let asked = lab.signal.send(&private(ALICE), &question()).await.unwrap();
    let mut again = config(&lab.server.url());
    again.state = state;
    let reborn = SignalAdapter::new(again).unwrap();
    let mut inbox = reborn.receive(CancellationToken::new());
    let message: u64 = asked[0].as_str().parse().unwrap();
    lab.server.reacts(ALICE, message, "😂");
    lab.server.reacts(ALICE, message + 1, "👍");
    let mut removed = reaction(message, "👍");
    removed["reaction"]["isRemove"] = true.into();
    lab.server.says_with(ALICE, removed);
    let mut of_other = reaction(message, "👍");
    of_other["reaction"]["targetAuthorUuid"] = BOB.uuid.into();
    of_other["reaction"]["targetAuthorNumber"] = serde_json::Value::Null;
    lab.server.says_with(ALICE, of_other);
    lab.server.reacts(ALICE, message, "👎🏽");
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Press(press) = received.event else {
        panic!("{:?}", received.event)
    };
    assert_eq!((press.data.as_str(), &press.message), ("q:deny", &asked[0]));
    assert_eq!(
        (press.sender.id.as_str(), &press.place),
        (ALICE.uuid, &private(ALICE))
    );
    reborn
        .answer_press(&press, &outgoing("refused"))
        .await
        .unwrap();
    let notice = &lab.server.calls("send")[1].params;
    assert_eq!(
        (
            notice["message"].as_str(),
            notice["quoteTimestamp"].as_u64()
        ),
        (Some("refused"), Some(message))
    );
}

#[tokio::test]
async fn the_owner_reacts_in_their_own_notes() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server
        .owner_writes(serde_json::json!({ "message": "do it" }));
    let note = next_message(&mut inbox).await;
    let asked = lab.signal.send(&note.place, &question()).await.unwrap();
    lab.server
        .owner_writes(reaction(asked[0].as_str().parse().unwrap(), "👍"));
    let received = next(&mut inbox).await;
    let ChatEvent::Press(press) = received.event else {
        panic!("{:?}", received.event)
    };
    assert_eq!(
        (press.data.as_str(), press.sender.id.as_str()),
        ("q:once", OWNER.uuid)
    );
}
