//! Commands behind a slash.

use hermetic_chat::Chat;
use hermetic_discord::{CommandArgument, CommandSync, DiscordConfig, SlashCommand};
use hermetic_testkit::discord::{CREATE_MESSAGE, FIRST_ANSWER, Failure};
use serde_json::json;

use crate::lab::{ALICE, Lab, listening_until, message, next, next_message, reply};

const LIST: &str = "GET /applications/{}/commands";
const WRITE: &str = "POST /applications/{}/commands";
const REPLACE: &str = "PUT /applications/{}/commands";
const REMOVE_ANSWER: &str = "DELETE /webhooks/{}/{}/messages/@original";

fn table(config: &mut DiscordConfig) {
    let command = |name: &str, argument| SlashCommand {
        name: name.to_owned(),
        description: format!("What {name} does"),
        argument,
    };
    let words = ["once", "session", "always"].map(str::to_owned).to_vec();
    let argument = CommandArgument {
        name: "scope".to_owned(),
        description: "For how long".to_owned(),
        required: false,
        words,
    };
    config.commands = vec![command("stop", None), command("approve", Some(argument))];
}

#[tokio::test]
async fn a_command_is_acknowledged_at_once_and_heard_as_if_it_had_been_written() {
    let lab = Lab::with(table).await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let channel = lab.server.private_channel(ALICE);
    lab.server
        .commands(ALICE, channel, "approve", Some("session"));
    // Nothing is stored yet, and nobody reads.
    let calls = lab.server.wait_for(FIRST_ANSWER, 1).await;
    assert_eq!(
        (&calls[0].body["type"], &calls[0].body["data"]["flags"]),
        (&json!(5), &json!(64))
    );
    let received = next(&mut inbox).await;
    assert_eq!(lab.server.tries(REMOVE_ANSWER), 0);
    received.receipt.stored();
    let heard = message(received.event);
    assert_eq!(heard.text, "/approve session");
    assert!(heard.mentions_us);
    listening_until(&mut inbox, lab.server.wait_for(REMOVE_ANSWER, 1)).await;

    let mut answer = reply("Approved.");
    answer.reply_to = Some(heard.message);
    lab.discord.send(&heard.place, &answer).await.unwrap();
    let sent = &lab.server.calls(CREATE_MESSAGE)[0].body;
    assert!(
        sent.get("message_reference").is_none(),
        "a command is no message: {sent}"
    );
}

#[tokio::test]
async fn words_are_offered_while_somebody_types() {
    let lab = Lab::with(table).await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server
        .types(ALICE, lab.server.private_channel(ALICE), "approve", "Se");
    let calls = listening_until(&mut inbox, lab.server.wait_for(FIRST_ANSWER, 1)).await;
    assert_eq!(
        calls[0].body,
        json!({ "type": 8, "data": { "choices": [{ "name": "session", "value": "session" }] } })
    );
}

#[tokio::test]
async fn commands_are_announced_where_they_differ_and_only_then() {
    let lab = Lab::with(table).await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for(WRITE, 2)).await;
    lab.server.says(ALICE, "hello");
    next_message(&mut inbox).await;
    lab.leave(inbox).await;
    let written = lab.server.calls(WRITE);
    assert_eq!(written[1].body["options"][0]["autocomplete"], true);

    // The same table is not even looked at again.
    let lab = lab.restarted(table);
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "hello again");
    next_message(&mut inbox).await;
    lab.leave(inbox).await;
    assert_eq!((lab.server.tries(LIST), lab.server.tries(WRITE)), (1, 2));

    // One that changed is written, and the other is left alone.
    let lab = lab.restarted(|config| {
        table(config);
        config.commands[0].description = "Something else".to_owned();
    });
    let mut inbox = lab.listen();
    let written = listening_until(&mut inbox, lab.server.wait_for(WRITE, 3)).await;
    assert_eq!(written[2].body["name"], "stop");
    lab.leave(inbox).await;

    let lab = lab.restarted(|config| {
        table(config);
        config.command_sync = CommandSync::Bulk;
    });
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for(REPLACE, 1)).await;
    assert_eq!(lab.server.tries(WRITE), 3);
}

#[tokio::test]
async fn commands_that_cannot_be_announced_cost_no_message() {
    let lab = Lab::with(table).await;
    let refused = Failure::Refuse {
        status: 403,
        code: 50001,
        message: "Missing Access",
    };
    lab.server.fail_next(LIST, refused);
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "hello");
    assert_eq!(next_message(&mut inbox).await.text, "hello");
}
