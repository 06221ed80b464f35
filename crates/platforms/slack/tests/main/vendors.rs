//! Programs that others wrote: Slack's own client against our server, and our client against a Slack of
//! others. So neither is a mirror of the other.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, ChatReply, InMemoryState, OutgoingFile, ReplyButton};
use hermetic_slack::{SlackAdapter, SlackConfig, SlackEventIntake};
use hermetic_testkit::npm::{BoltBot, EmulatedSlack};
use hermetic_testkit::slack::{BOT_TOKEN, SlackServer, WhileAway};
use hermetic_types::{
    Attachment, AttachmentId, AttachmentKind, ChatId, ChatKind, ChatPlace, Secret, SystemClock,
    ThreadId,
};
use serde_json::Value;

use crate::lab::{ALICE, ALICES_CHANNEL, outgoing, timing, ts_of};

#[tokio::test]
async fn slacks_own_client_is_served_by_our_server() {
    let server = SlackServer::start().await.unwrap();
    server.while_away(WhileAway::Kept);
    let _bot = match BoltBot::start(&server.url()).await {
        Ok(bot) => bot,
        Err(why) => {
            eprintln!("SKIP: slacks_own_client_is_served_by_our_server: {why}");
            return;
        }
    };
    let shown = |count: usize, words: &str| {
        let shown = server.shown(ALICES_CHANNEL);
        (shown.iter().filter(|text| *text == words).count() >= count).then_some(())
    };
    let asked = server.says(ALICE, "ping");
    server.wait_until("a pong", || shown(1, "pong")).await;
    let pong = server.messages(ALICES_CHANNEL).remove(0).0;
    assert_eq!(
        server.message(ALICES_CHANNEL, &pong).unwrap()["thread_ts"],
        asked
    );
    let mut press = server.press(ALICE, ALICES_CHANNEL, &pong, "v");
    press["actions"][0]["action_id"] = "choice".into();
    server.envelope("interactive", press);
    server.wait_until("a press", || shown(1, "pressed")).await;
    server.commands(ALICE, ALICES_CHANNEL, "/status", "");
    server.wait_until("a command", || shown(1, "fine")).await;
    server.wait_until_acknowledged().await;

    // A change of sockets, as Slack orders it.
    server.announce_disconnect("refresh_requested");
    server.wait_for_sockets(2).await;
    server.close_oldest();
    server.wait_for_open_sockets(1).await;
    server.says(ALICE, "ping");
    server.wait_until("another pong", || shown(1, "pong")).await;
    server.wait_until_acknowledged().await;
}

fn client_of(url: &str) -> SlackAdapter {
    let intake = SlackEventIntake::EventsApi {
        url: "https://bot.example/".to_owned(),
        signing_secret: Secret::new("unused"),
    };
    let config = SlackConfig {
        api_base: url.to_owned(),
        timing: timing(),
        ..SlackConfig::new(Secret::new(BOT_TOKEN), intake, SystemClock::shared())
    };
    SlackAdapter::new(config, Arc::new(InMemoryState::default())).unwrap()
}

async fn ask(url: &str, method: &str, form: String) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(format!("{url}/{method}"))
        .bearer_auth(BOT_TOKEN)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let said: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(said["ok"], true, "{method}: {said}");
    said
}

#[tokio::test]
async fn a_slack_of_others_takes_our_messages_edits_and_files() {
    let server = match EmulatedSlack::start().await {
        Ok(server) => server,
        Err(why) => {
            eprintln!("SKIP: a_slack_of_others_takes_our_messages_edits_and_files: {why}");
            return;
        }
    };
    let url = server.url();
    let slack = client_of(&url);
    assert_eq!(slack.check().await.unwrap().name.as_deref(), Some("Home"));
    let channels = ask(&url, "conversations.list", String::new()).await;
    let channel = channels["channels"][0]["id"].as_str().unwrap().to_owned();
    let mut place = ChatPlace {
        chat: ChatId::new(channel.as_str()).unwrap(),
        kind: ChatKind::Group,
        thread: None,
    };
    let yes = ReplyButton::new("Yes", "q1:yes").unwrap();
    let question = ChatReply {
        buttons: vec![vec![yes]],
        ..ChatReply::text(outgoing("**May** I?"))
    };
    let asked = slack.send(&place, &question).await.unwrap().remove(0);
    let parent = ts_of(&asked);
    place.thread = Some(ThreadId::new(parent.as_str()).unwrap());
    let reply = ChatReply::text(outgoing("in the thread"));
    slack.send(&place, &reply).await.unwrap();
    slack
        .edit(&place, &asked, &outgoing("You may not."), &[])
        .await
        .unwrap();
    let thread = ask(
        &url,
        "conversations.replies",
        format!("channel={channel}&ts={parent}"),
    )
    .await;
    let texts: Vec<_> = thread["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].clone())
        .collect();
    assert_eq!(texts, ["You may not.", "in the thread"]);

    let file = OutgoingFile {
        name: "notes.txt".to_owned(),
        bytes: Bytes::from_static(b"a note"),
        caption: None,
    };
    let id = slack.send_file(&place, &file).await.unwrap();
    let attachment = Attachment {
        id: AttachmentId::new(id.as_str()).unwrap(),
        kind: AttachmentKind::Document,
        name: None,
        mime: None,
        bytes: None,
    };
    let fetched: Vec<Bytes> = slack
        .download(&attachment, 100)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(fetched.concat(), b"a note");
}
