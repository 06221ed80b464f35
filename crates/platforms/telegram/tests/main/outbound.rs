//! Replies: formatted, split, throttled, and honest about what arrived.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{
    Chat, ChatEvent, ChatReply, DownloadError, DraftMessage, OutgoingFile, ReplyButton, SendError,
    SendFailure,
};
use hermetic_telegram::TelegramAdapter;
use hermetic_testkit::telegram::{Failure, TOKEN};
use hermetic_types::{Attachment, AttachmentId, AttachmentKind, MessageId, ThreadId};
use tokio::time::timeout;

use crate::lab::{Lab, PATIENCE, config, next, outgoing, private};

fn reply(words: impl AsRef<str>) -> ChatReply {
    ChatReply::text(outgoing(words))
}

async fn send(lab: &Lab, reply: &ChatReply) -> Result<Vec<MessageId>, SendError> {
    timeout(PATIENCE, lab.telegram.send(&private(7), reply))
        .await
        .expect("in time")
}

fn refusal(code: u16, description: &'static str, retry_after: Option<u64>) -> Failure {
    Failure::Refuse {
        code,
        description,
        retry_after,
    }
}

#[tokio::test]
async fn a_reply_is_formatted_and_shows_no_preview() {
    let lab = Lab::new().await;
    let ids = send(&lab, &reply("**done** in 1.5 s: https://a.b/?leak=1"))
        .await
        .unwrap();
    let calls = lab.server.calls("sendMessage");
    assert_eq!(ids, [MessageId::from(calls[0].message)]);
    let params = &calls[0].params;
    assert_eq!(params["parse_mode"], "MarkdownV2");
    assert!(
        params["text"]
            .as_str()
            .unwrap()
            .starts_with("*done* in 1\\.5 s")
    );
    assert_eq!(params["link_preview_options"]["is_disabled"], true);
}

#[tokio::test]
async fn formatting_that_telegram_refuses_is_sent_plain() {
    let lab = Lab::new().await;
    let refused = refusal(
        400,
        "Bad Request: can't parse entities: byte offset 3",
        None,
    );
    lab.server.fail_next("sendMessage", refused);
    send(&lab, &reply("**done**")).await.unwrap();
    let params = &lab.server.calls("sendMessage")[0].params;
    assert_eq!(
        (params["text"].as_str(), params["parse_mode"].as_str()),
        (Some("**done**"), None)
    );
}

#[tokio::test]
async fn a_long_reply_becomes_several_messages() {
    let lab = Lab::new().await;
    let mut long = reply("some words here. ".repeat(600));
    long.reply_to = Some(MessageId::from(3));
    long.buttons = vec![vec![
        ReplyButton::new("Yes", "y:1").unwrap(),
        ReplyButton::new("No", "n:1").unwrap(),
    ]];
    let mut place = private(7);
    place.thread = Some(ThreadId::from(11));
    let ids = timeout(PATIENCE, lab.telegram.send(&place, &long))
        .await
        .unwrap()
        .unwrap();
    let calls = lab.server.calls("sendMessage");
    assert_eq!((ids.len(), calls.len()), (3, 3));
    for (index, call) in calls.iter().enumerate() {
        let params = &call.params;
        assert_eq!(params["message_thread_id"], 11);
        assert_eq!(
            params["reply_parameters"]["message_id"].as_i64().is_some(),
            index == 0
        );
        assert_eq!(params["reply_markup"].is_object(), index == 2);
        assert!(
            params["text"]
                .as_str()
                .unwrap()
                .ends_with(&format!(r"\({}/3\)", index + 1))
        );
    }
}

#[tokio::test]
async fn what_arrived_before_a_failure_is_told() {
    let lab = Lab::new().await;
    lab.server
        .fail_next("sendMessage", refusal(429, "Too Many Requests", Some(0)));
    let long = reply("some words here. ".repeat(600));
    assert_eq!(send(&lab, &long).await.unwrap().len(), 3);

    for failure in [
        Failure::NotYet,
        Failure::NotYet,
        refusal(403, "Forbidden: bot was blocked by the user", None),
    ] {
        lab.server.fail_next("sendMessage", failure);
    }
    let error = send(&lab, &long).await.unwrap_err();
    assert_eq!(error.sent.len(), 2);
    assert!(
        matches!(error.failure, SendFailure::Refused { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn throttling_is_waited_out_or_told() {
    let lab = Lab::new().await;
    lab.server.fail_next(
        "sendMessage",
        refusal(429, "Too Many Requests: retry after 1", Some(1)),
    );
    send(&lab, &reply("patience")).await.unwrap();

    lab.server.fail_next(
        "sendMessage",
        refusal(429, "Too Many Requests: retry after 900", Some(900)),
    );
    for _ in 0..2 {
        let error = send(&lab, &reply("later")).await.unwrap_err();
        assert!(
            matches!(error.failure, SendFailure::Throttled { retry_after } if retry_after > Duration::from_secs(800)),
            "{error:?}"
        );
    }
    lab.server.wait_for_tries("sendMessage", 3).await;
    let elsewhere = (private(8), reply("another chat"));
    let sending = lab.telegram.send(&elsewhere.0, &elsewhere.1);
    timeout(PATIENCE, sending).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_may_have_arrived_is_not_sent_again() {
    for failure in [Failure::DropAfter, Failure::Drop, Failure::BadGateway] {
        let lab = Lab::new().await;
        lab.server.fail_next("sendMessage", failure);
        let error = send(&lab, &reply("once")).await.unwrap_err();
        assert!(
            matches!(error.failure, SendFailure::Uncertain(_)),
            "{error:?}"
        );
        assert!(!error.failure.is_safe_to_repeat());
        assert!(lab.server.calls("sendMessage").len() <= 1);
    }
}

#[tokio::test]
async fn an_unreachable_server_shows_no_token() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let telegram = TelegramAdapter::new(config(&url)).unwrap();
    let sending = telegram.send(&private(7), &reply("hello")).await;
    let error = sending.unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::NotSent(_)),
        "{error:?}"
    );
    let shown = format!("{error} {error:?} {telegram:?}");
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn empty_and_endless_replies_are_refused_here() {
    let lab = Lab::new().await;
    let empty = send(&lab, &reply(" \n ")).await.unwrap_err();
    assert!(matches!(empty.failure, SendFailure::Empty));
    let endless = send(&lab, &reply("x".repeat(1 << 20))).await.unwrap_err();
    assert!(matches!(endless.failure, SendFailure::TooLong { .. }));
    let mut elsewhere = private(7);
    elsewhere.chat = hermetic_types::ChatId::new("@someone").unwrap();
    let error = lab
        .telegram
        .send(&elsewhere, &reply("x"))
        .await
        .unwrap_err();
    assert!(matches!(error.failure, SendFailure::Refused { .. }));
    assert!(lab.server.calls("sendMessage").is_empty());
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_fine() {
    let lab = Lab::new().await;
    let ids = send(&lab, &reply("same")).await.unwrap();
    let place = private(7);
    for words in ["same", "other", "other"] {
        lab.telegram
            .edit(&place, &ids[0], &outgoing(words), &[])
            .await
            .unwrap();
    }
    assert_eq!(lab.server.calls("editMessageText").len(), 1);
    let missing = lab
        .telegram
        .edit(&place, &MessageId::from(999), &outgoing("x"), &[])
        .await;
    assert!(matches!(
        missing.unwrap_err().failure,
        SendFailure::Refused { .. }
    ));
}

#[tokio::test]
async fn a_draft_is_one_message_that_grows() {
    let lab = Lab::new().await;
    let place = private(7);
    let mut draft = DraftMessage::new(lab.telegram.as_ref(), &place, None, None, Duration::ZERO);
    for words in ["Let me", "Let me **see", "Let me **see**"] {
        draft.show(&outgoing(words)).await;
    }
    let sent = lab.server.calls("sendMessage");
    assert_eq!(sent.len(), 1);
    assert_eq!(draft.message(), Some(&MessageId::from(sent[0].message)));
    let edits = lab.server.calls("editMessageText");
    let texts: Vec<_> = edits
        .iter()
        .map(|call| call.params["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Let me **see", "Let me **see**"]);
}

#[tokio::test]
async fn a_draft_is_not_shown_too_often() {
    let lab = Lab::new().await;
    let place = private(7);
    let hour = Duration::from_secs(3600);
    let mut draft = DraftMessage::new(lab.telegram.as_ref(), &place, None, None, hour);
    for words in 0..50 {
        draft.show(&outgoing(format!("words: {words}"))).await;
    }
    assert!(lab.server.calls("editMessageText").is_empty());
}

#[tokio::test]
async fn a_draft_that_is_throttled_neither_waits_nor_insists() {
    let lab = Lab::new().await;
    let place = private(7);
    let mut draft = DraftMessage::new(lab.telegram.as_ref(), &place, None, None, Duration::ZERO);
    draft.show(&outgoing("one")).await;
    lab.server.fail_next(
        "editMessageText",
        refusal(429, "Too Many Requests: retry after 3600", Some(3600)),
    );
    for words in ["one two", "one two three", "one two three four"] {
        draft.show(&outgoing(words)).await;
    }
    lab.server.wait_for_tries("editMessageText", 1).await;
    assert!(lab.server.calls("editMessageText").is_empty());
    assert!(draft.not_before() > tokio::time::Instant::now() + Duration::from_secs(3000));
}

#[tokio::test]
async fn a_draft_whose_start_is_in_doubt_begins_no_second_one() {
    let lab = Lab::new().await;
    let place = private(7);
    lab.server.fail_next("sendMessage", Failure::DropAfter);
    let mut draft = DraftMessage::new(lab.telegram.as_ref(), &place, None, None, Duration::ZERO);
    draft.show(&outgoing("one")).await;
    draft.show(&outgoing("one two")).await;
    assert_eq!(lab.server.calls("sendMessage").len(), 1);
    assert_eq!(draft.message(), None);
}

#[tokio::test]
async fn a_pressed_button_is_answered() {
    let lab = Lab::new().await;
    lab.server.presses(7, 99, "approve:abc");
    let received = next(&mut lab.listen()).await;
    let ChatEvent::Press(press) = received.event else {
        panic!("no press")
    };
    received.receipt.stored();
    lab.telegram
        .answer_press(&press, &outgoing("x".repeat(500)))
        .await
        .unwrap();
    let params = &lab.server.calls("answerCallbackQuery")[0].params;
    assert_eq!(params["callback_query_id"], "query-99");
    assert_eq!(params["text"].as_str().map(str::len), Some(200));
    lab.server.fail_next(
        "answerCallbackQuery",
        refusal(400, "Bad Request: query is too old", None),
    );
    lab.telegram.acknowledge_press(&press).await.unwrap();
    // Telegram shows nothing more under this press: the words come as a message.
    let words = outgoing("Allowed once.");
    lab.telegram.answer_press(&press, &words).await.unwrap();
    let sent = &lab.server.calls("sendMessage")[0].params;
    assert_eq!(sent["text"], "Allowed once\\.");
    assert_eq!(sent["reply_parameters"]["message_id"], 99);
    assert_eq!(lab.server.calls("answerCallbackQuery").len(), 1);
    lab.telegram.typing(&private(7)).await.unwrap();
    assert_eq!(
        lab.server.calls("sendChatAction")[0].params["action"],
        "typing"
    );
}

#[tokio::test]
async fn a_file_is_uploaded_from_bytes() {
    let lab = Lab::new().await;
    let file = OutgoingFile {
        name: "../report.txt".to_owned(),
        bytes: Bytes::from_static(b"figures"),
        caption: Some(outgoing("the figures")),
    };
    lab.server
        .fail_next("sendDocument", refusal(429, "Too Many Requests", Some(0)));
    lab.telegram.send_file(&private(7), &file).await.unwrap();
    let call = &lab.server.calls("sendDocument")[0];
    assert_eq!(call.file.as_deref(), Some(&b"figures"[..]));
    assert_eq!(
        (
            call.params["chat_id"].as_str(),
            call.params["caption"].as_str()
        ),
        (Some("7"), Some("the figures"))
    );
    assert_eq!(call.params["file_name"], "report.txt");
}

fn attachment(id: &str, claimed: Option<u64>) -> Attachment {
    Attachment {
        id: AttachmentId::new(id).unwrap(),
        kind: AttachmentKind::Document,
        name: None,
        mime: None,
        bytes: claimed,
    }
}

#[tokio::test]
async fn a_download_is_bounded() {
    let lab = Lab::new().await;
    lab.server.put_file("doc", vec![7_u8; 100_000]);
    let stream = lab
        .telegram
        .download(&attachment("doc", None), 100_000)
        .await
        .unwrap();
    let chunks: Vec<Bytes> = timeout(PATIENCE, stream.try_collect())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), 100_000);

    for (claimed, limit) in [(None, 99_999), (Some(200_000), 150_000)] {
        let refused = lab
            .telegram
            .download(&attachment("doc", claimed), limit)
            .await;
        assert!(matches!(
            refused.err(),
            Some(DownloadError::TooLarge { .. })
        ));
    }
    let unknown = lab.telegram.download(&attachment("nope", None), 10).await;
    assert!(matches!(unknown.err(), Some(DownloadError::Refused { .. })));

    lab.server.fail_next("file", Failure::Drop);
    let broken = async {
        let stream = lab
            .telegram
            .download(&attachment("doc", None), 100_000)
            .await?;
        stream.try_collect::<Vec<Bytes>>().await
    };
    let error = timeout(PATIENCE, broken).await.unwrap().unwrap_err();
    assert!(matches!(error, DownloadError::Failed(_)), "{error:?}");
}

#[tokio::test]
async fn the_menu_is_told_once_and_its_refusal_costs_nothing() {
    use futures::StreamExt as _;
    use hermetic_telegram::MenuCommand;
    use hermetic_testkit::telegram::Failure;

    let command = |name: &str, about: &str| MenuCommand {
        name: name.to_owned(),
        about: about.to_owned(),
    };
    let lab = Lab::with(|config| {
        config.commands = vec![
            command("help", "What you can write here"),
            command("sh", &"long ".repeat(100)),
            command("Not-A-Name", "left out"),
        ];
    })
    .await;
    for round in 0..2 {
        lab.server.says(7, "hi");
        let mut inbox = lab
            .telegram
            .receive(tokio_util::sync::CancellationToken::new());
        assert!(inbox.next().await.unwrap().is_ok(), "round {round}");
    }
    let told = lab.server.calls("setMyCommands");
    assert_eq!(told.len(), 1, "once for a process");
    let commands = told[0].params["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 2);
    assert_eq!(commands[0]["command"], "help");
    assert_eq!(
        commands[1]["description"].as_str().unwrap().chars().count(),
        256
    );

    let lab =
        Lab::with(|config| config.commands = vec![command("help", "What you can write")]).await;
    lab.server.fail_next("setMyCommands", Failure::DropAfter);
    lab.server.says(7, "hi");
    let mut inbox = lab
        .telegram
        .receive(tokio_util::sync::CancellationToken::new());
    assert!(inbox.next().await.unwrap().is_ok());
}
