//! What leaves, and what becomes of it.

use hermetic_chat::{Chat, ChatReply, ReplyButton, SendFailure};
use hermetic_testkit::whatsapp::Failure;
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId};

use crate::lab::{ALICE, Lab, next_message, next_press, outgoing, private};

fn refuse(code: i64, retry_after: Option<u64>) -> Failure {
    Failure::Refuse {
        status: 400,
        code,
        retry_after,
    }
}

fn buttons(labels: &[&str]) -> Vec<Vec<ReplyButton>> {
    let button = |label: &&str| vec![ReplyButton::new(*label, format!("q:{label}")).unwrap()];
    labels.iter().map(button).collect()
}

#[tokio::test]
async fn a_text_goes_to_the_id_in_the_dialect_and_quotes_its_question() {
    let lab = Lab::new().await;
    let mut reply = ChatReply::text(outgoing("**Done**: see [here](https://a.example)"));
    reply.reply_to = Some(MessageId::new("wamid.question").unwrap());
    lab.cloud.send(&private(ALICE), &reply).await.unwrap();
    reply.reply_to = Some(MessageId::new("proc_1:end").unwrap());
    lab.cloud.send(&private(ALICE), &reply).await.unwrap();
    let sent = lab.server.sent();
    let body = &sent[0].body;
    assert_eq!(body["recipient"], ALICE.id);
    assert!(body.get("to").is_none());
    assert_eq!(body["text"]["body"], "*Done*: see here (https://a.example)");
    assert_eq!(body["text"]["preview_url"], false);
    assert_eq!(body["context"]["message_id"], "wamid.question");
    assert!(sent[1].body.get("context").is_none());
}

#[tokio::test]
async fn a_group_is_written_to_as_a_group_and_without_buttons() {
    let lab = Lab::new().await;
    let place = ChatPlace {
        chat: ChatId::new("Y2FwaV9ncm91cDox").unwrap(),
        kind: ChatKind::Group,
        thread: None,
    };
    let mut reply = ChatReply::text(outgoing("May I? /approve q1"));
    reply.buttons = buttons(&["Yes", "No"]);
    lab.cloud.send(&place, &reply).await.unwrap();
    let body = &lab.server.sent()[0].body;
    assert_eq!(
        (body["recipient_type"].as_str(), body["type"].as_str()),
        (Some("group"), Some("text"))
    );
    assert_eq!(body["to"], "Y2FwaV9ncm91cDox");
    let nowhere = ChatPlace {
        kind: ChatKind::Dm,
        ..place
    };
    let failure = lab.cloud.send(&nowhere, &reply).await.unwrap_err().failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_question_has_buttons_a_list_or_words() {
    let lab = Lab::new().await;
    let ask = async |text: &str, labels: &[&str]| {
        let mut reply = ChatReply::text(outgoing(text));
        reply.buttons = buttons(labels);
        lab.cloud.send(&private(ALICE), &reply).await.unwrap()
    };
    let asked = ask("May I?", &["Allow once", "This session", "Deny"]).await;
    ask("May I?", &["1", "2", "3", "4", "5"]).await;
    let long = "why ".repeat(400);
    assert_eq!(ask(&long, &["Yes", "No"]).await.len(), 2);
    let many: Vec<_> = (0..11).map(|n| n.to_string()).collect();
    ask(
        "May I?",
        &many.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;

    let sent = lab.server.sent();
    let kinds: Vec<_> = sent
        .iter()
        .map(|message| message.body["interactive"]["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [Some("button"), Some("list"), None, Some("button"), None]
    );
    assert_eq!(sent[3].text(), "Your answer:");
    assert_eq!(sent[1].choices()[4], ("5".to_owned(), "q:5".to_owned()));

    let mut inbox = lab.listen();
    lab.server.presses(ALICE, asked[0].as_str(), "q:Deny");
    let press = next_press(&mut inbox).await;
    assert_eq!((press.data.as_str(), &press.message), ("q:Deny", &asked[0]));
    lab.cloud
        .answer_press(&press, &outgoing("Refused."))
        .await
        .unwrap();
    let answer = lab.server.sent().pop().unwrap();
    assert_eq!(answer.body["context"]["message_id"], asked[0].as_str());
    assert_eq!(answer.text(), "Refused.");
}

#[tokio::test]
async fn waits_are_ridden_out_or_reported() {
    let lab = Lab::new().await;
    lab.server.fail_next("messages", refuse(131_056, Some(0)));
    lab.server.fail_next("messages", refuse(130_429, Some(0)));
    lab.tell(ALICE, "after a while").await.unwrap();
    assert_eq!(lab.server.tries("messages"), 3);

    lab.server.fail_next("messages", refuse(80_007, Some(600)));
    for _ in 0..2 {
        let failure = lab.tell(ALICE, "later").await.unwrap_err().failure;
        assert!(
            matches!(failure, SendFailure::Throttled { .. }),
            "{failure:?}"
        );
    }
    assert_eq!(
        lab.server.tries("messages"),
        4,
        "the second was not even tried"
    );
    assert_eq!(lab.server.sent().len(), 1);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let lab = Lab::new().await;
    let fails = async |failure: Failure| {
        lab.server.fail_next("messages", failure);
        lab.tell(ALICE, "hello").await.unwrap_err().failure
    };
    assert!(matches!(
        fails(Failure::BadGateway).await,
        SendFailure::Uncertain(_)
    ));
    assert!(matches!(
        fails(Failure::DropAfter).await,
        SendFailure::Uncertain(_)
    ));
    let server = Failure::Refuse {
        status: 503,
        code: 131_016,
        retry_after: None,
    };
    assert!(matches!(fails(server).await, SendFailure::Uncertain(_)));
    let SendFailure::Refused { description } = fails(refuse(131_030, None)).await else {
        panic!("expected a refusal");
    };
    assert!(description.contains("test recipients"), "{description}");
    let long = "x".repeat(4096 * 41);
    let failure = lab.tell(ALICE, &long).await.unwrap_err().failure;
    assert!(matches!(failure, SendFailure::TooLong { .. }));

    let gone = Lab::with(|config| config.base_url = "http://127.0.0.1:1".to_owned()).await;
    let failure = gone.tell(ALICE, "hello").await.unwrap_err().failure;
    assert!(matches!(failure, SendFailure::NotSent(_)), "{failure:?}");
}

#[tokio::test]
async fn a_message_is_read_when_we_turn_to_it_and_not_before() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.cloud.typing(&private(ALICE)).await.unwrap();
    let first = lab.server.says(ALICE, "one");
    next_message(&mut inbox).await;
    assert_eq!(lab.server.reads(), [], "a stranger learns nothing");
    lab.cloud.typing(&private(ALICE)).await.unwrap();
    lab.tell(ALICE, "an answer").await.unwrap();
    let second = lab.server.says(ALICE, "two");
    next_message(&mut inbox).await;
    lab.tell(ALICE, "another").await.unwrap();
    lab.tell(ALICE, "and one more").await.unwrap();
    let reads = lab.server.wait_for_reads(2).await;
    assert_eq!(reads, [(first, true), (second, false)]);
}
