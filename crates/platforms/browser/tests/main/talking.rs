//! What a person says: kept before it is acknowledged, handed over until it is signed for, once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hermetic_browser::{
    BrowserAdapter, BrowserPress, BrowserWords, MOST_FILE_BYTES, MOST_FILES, MOST_TEXT_BYTES,
    PressRefused, SayRefused, operator_role,
};
use hermetic_chat::{
    Chat, ChatEvent, ChatReply, OutgoingText, Receipt, ReceiveError, ReceivedEvent, ReplyButton,
    SendKey,
};
use hermetic_store::{BrowserMessageState, NewBrowserFile, Store};
use hermetic_types::{IncomingMessage, SystemClock, Timestamp, UserId};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(20);

struct TalkingLab {
    store: Store,
    chat: Arc<BrowserAdapter>,
    conversation: i64,
}

impl TalkingLab {
    async fn at(path: &Path) -> Self {
        let store = Store::open(path, SystemClock::shared()).await.unwrap();
        let rows = store.browser_chat();
        let conversation = match rows
            .conversations("dashboard:ada", 1)
            .await
            .unwrap()
            .first()
        {
            Some(found) => found.id,
            None => {
                let opened = rows.open("dashboard:ada", 9, Timestamp::from_millis(1));
                opened.await.unwrap().unwrap()
            }
        };
        let chat = BrowserAdapter::new(rows, SystemClock::shared());
        Self {
            store,
            chat: Arc::new(chat),
            conversation,
        }
    }

    fn words(&self, text: &str, once: &str) -> BrowserWords {
        BrowserWords {
            person: ada(),
            conversation: self.conversation,
            text: text.to_owned(),
            once: once.to_owned(),
            pass: Some("a-key".to_owned()),
            files: Vec::new(),
        }
    }

    async fn states(&self) -> Vec<BrowserMessageState> {
        let rows = self.store.browser_chat();
        let messages = rows.messages("dashboard:ada", self.conversation, None, 99);
        let messages = messages.await.unwrap();
        messages.into_iter().map(|one| one.state).collect()
    }
}

fn ada() -> UserId {
    UserId::new("dashboard:ada").unwrap()
}

async fn next(
    inbox: &mut (impl StreamExt<Item = Result<ReceivedEvent, ReceiveError>> + Unpin),
) -> ReceivedEvent {
    let next = timeout(PATIENCE, inbox.next()).await;
    next.unwrap().unwrap().unwrap()
}

/// What comes of speaking, and what is heard meanwhile, each signed so.
async fn said_to(
    inbox: &mut (impl StreamExt<Item = Result<ReceivedEvent, ReceiveError>> + Unpin),
    saying: impl Future<Output = Result<(), SayRefused>>,
    sign: fn(Receipt),
) -> (Result<(), SayRefused>, Vec<String>) {
    let mut heard = Vec::new();
    tokio::pin!(saying);
    loop {
        tokio::select! {
            said = &mut saying => return (said, heard),
            received = next(inbox) => {
                sign(received.receipt);
                heard.push(message(received.event).text);
            }
        }
    }
}

fn message(event: ChatEvent) -> IncomingMessage {
    match event {
        ChatEvent::Message(message) => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

#[tokio::test]
async fn what_was_said_before_a_crash_is_handed_over_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let lab = TalkingLab::at(&path).await;
    // Nobody listens: whoever speaks goes away as soon as it is kept.
    tokio::select! {
        biased;
        () = async { while lab.states().await.is_empty() { tokio::task::yield_now().await; } } => {}
        said = lab.chat.say(lab.words("hello", "form-one")) => panic!("{said:?}"),
    }
    drop(lab);

    let lab = TalkingLab::at(&path).await;
    assert_eq!(lab.states().await, [BrowserMessageState::Waiting]);
    let mut inbox = lab.chat.receive(CancellationToken::new());
    let first = next(&mut inbox).await;
    drop(first.receipt);
    let again = next(&mut inbox).await;
    let (first, heard) = (message(first.event), message(again.event));
    assert_eq!(first.update, heard.update);
    assert_eq!(heard.text, "hello");
    assert_eq!(heard.sender.id, ada());
    assert_eq!(heard.sender.display, "ada");
    assert_eq!(heard.sender.roles, [operator_role("a-key").unwrap()]);
    again.receipt.stored();
    // The same form once more is the same message; another one is another.
    let words = (lab.words("hello", "form-one"), lab.words("two", "form-two"));
    lab.chat.say(words.0).await.unwrap();
    let (said, heard) = said_to(&mut inbox, lab.chat.say(words.1), Receipt::stored).await;
    said.unwrap();
    assert_eq!(heard, ["two"]);
    assert_eq!(lab.states().await, [BrowserMessageState::Taken; 2]);
}

#[tokio::test]
async fn whoever_is_turned_away_is_told_and_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let lab = TalkingLab::at(&folder.path().join("state.db")).await;
    let mut inbox = lab.chat.receive(CancellationToken::new());
    let saying = lab.chat.say(lab.words("hello", "form-one"));
    let (said, heard) = said_to(&mut inbox, saying, Receipt::turned_away).await;
    assert_eq!(heard, ["hello"]);
    assert!(matches!(said, Err(SayRefused::TurnedAway)), "{said:?}");
    assert_eq!(lab.states().await, [BrowserMessageState::TurnedAway]);
}

#[tokio::test]
async fn a_form_that_was_sent_is_not_another_message() {
    let folder = tempfile::tempdir().unwrap();
    let lab = TalkingLab::at(&folder.path().join("state.db")).await;
    let mut inbox = lab.chat.receive(CancellationToken::new());
    let first = lab.chat.say(lab.words("hello", "form-one"));
    said_to(&mut inbox, first, Receipt::stored).await.0.unwrap();
    let other = lab.chat.say(lab.words("hello again", "form-one")).await;
    assert!(matches!(other, Err(SayRefused::Another)), "{other:?}");
    assert_eq!(lab.states().await, [BrowserMessageState::Taken]);
}

#[tokio::test]
async fn a_press_that_was_not_taken_is_not_done_later() {
    let folder = tempfile::tempdir().unwrap();
    let lab = TalkingLab::at(&folder.path().join("state.db")).await;
    let place = BrowserAdapter::place(&ada(), lab.conversation).unwrap();
    let mut reply = ChatReply::text(OutgoingText::constant("May I?"));
    reply.buttons = vec![vec![ReplyButton::new("Yes", "q:1").unwrap()]];
    let sent = lab.chat.send(&place, &reply).await.unwrap();
    let press = || BrowserPress {
        person: ada(),
        conversation: lab.conversation,
        message: sent[0].as_str().parse().unwrap(),
        data: "q:1".to_owned(),
        pass: None,
    };
    // Nobody listens.
    let refused = lab.chat.press(press()).await;
    assert!(
        matches!(refused, Err(PressRefused::NotTaken)),
        "{refused:?}"
    );
    // Somebody listens and does not sign.
    let mut inbox = lab.chat.receive(CancellationToken::new());
    let (unclear, received) = tokio::join!(lab.chat.press(press()), inbox.next());
    assert!(
        matches!(unclear, Err(PressRefused::MayBeTaken)),
        "{unclear:?}"
    );
    drop(received);
    let more = timeout(Duration::from_secs(1), inbox.next()).await;
    assert!(more.is_err(), "the first press is not there any more");
}

#[tokio::test]
async fn more_than_a_message_holds_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lab = TalkingLab::at(&folder.path().join("state.db")).await;
    let file = |bytes: usize| NewBrowserFile {
        name: "a".to_owned(),
        mime: None,
        bytes: vec![0; bytes],
    };
    let with = |files: Vec<NewBrowserFile>| BrowserWords {
        files,
        ..lab.words("", "form-one")
    };
    let too_large = usize::try_from(MOST_FILE_BYTES).unwrap() + 1;
    for (words, expected) in [
        (lab.words(" \n", "form-one"), "there is nothing to send"),
        (
            lab.words(&"x".repeat(MOST_TEXT_BYTES + 1), "form-one"),
            "too long",
        ),
        (with(vec![file(too_large)]), "at most 4 files"),
        (with(vec![file(1); MOST_FILES + 1]), "at most 4 files"),
        (
            BrowserWords {
                person: UserId::new("dashboard:eve").unwrap(),
                ..lab.words("mine?", "form-one")
            },
            "there is no such conversation of yours",
        ),
    ] {
        let refused = lab.chat.say(words).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(lab.states().await, []);
}

#[tokio::test]
async fn a_button_is_pressed_by_its_own_person_only_and_while_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let lab = TalkingLab::at(&folder.path().join("state.db")).await;
    let place = BrowserAdapter::place(&ada(), lab.conversation).unwrap();
    let mut reply = ChatReply::text(OutgoingText::constant("May I?"));
    reply.buttons = vec![vec![ReplyButton::new("Yes", "q:1").unwrap()]];
    reply.key = Some(SendKey::new(7, 0));
    let sent = lab.chat.send(&place, &reply).await.unwrap();
    assert_eq!(
        lab.chat.send(&place, &reply).await.unwrap(),
        sent,
        "one key, one message"
    );
    let press = |person: &str, data: &str| BrowserPress {
        person: UserId::new(person).unwrap(),
        conversation: lab.conversation,
        message: sent[0].as_str().parse().unwrap(),
        data: data.to_owned(),
        pass: None,
    };
    for (person, data) in [("dashboard:eve", "q:1"), ("dashboard:ada", "q:2")] {
        let refused = lab.chat.press(press(person, data)).await;
        assert!(
            matches!(refused, Err(PressRefused::NoButton)),
            "{refused:?}"
        );
    }
    let mut inbox = lab.chat.receive(CancellationToken::new());
    let (pressed, received) = tokio::join!(lab.chat.press(press("dashboard:ada", "q:1")), async {
        let received = next(&mut inbox).await;
        received.receipt.stored();
        received.event
    });
    pressed.unwrap();
    assert!(matches!(received, ChatEvent::Press(press) if press.data == "q:1"));
    let gone = OutgoingText::constant("Allowed.");
    lab.chat.edit(&place, &sent[0], &gone, &[]).await.unwrap();
    let late = lab.chat.press(press("dashboard:ada", "q:1")).await;
    assert!(matches!(late, Err(PressRefused::NoButton)), "{late:?}");
}
