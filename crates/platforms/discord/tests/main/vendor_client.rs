//! The server that our adapter is tried on, tried by npm `discord.js`: what it accepts is Discord's
//! protocol and not only ours.

use hermetic_testkit::discord::{
    CHANNEL, CREATE_MESSAGE, DiscordServer, EDIT_MESSAGE, FIRST_ANSWER,
};
use hermetic_testkit::npm::DiscordJsBot;

use crate::lab::ALICE;

#[tokio::test]
async fn a_bot_that_others_wrote_works_on_our_server() {
    let server = DiscordServer::start().await.unwrap();
    let url = server.url();
    let bot = match DiscordJsBot::start(url.trim_end_matches("/v10")).await {
        Ok(bot) => bot,
        Err(why) => {
            eprintln!("SKIP: a_bot_that_others_wrote_works_on_our_server: {why}");
            return;
        }
    };
    server.wait_for_bot().await;
    server.says_in(CHANNEL, ALICE, "ping");
    let pong = server.wait_for(CREATE_MESSAGE, 1).await.remove(0);
    assert_eq!(
        (&pong.body["content"], &pong.body["enforce_nonce"]),
        (&"pong".into(), &true.into())
    );

    // A connection that ends is resumed, and what was said meanwhile is handed over.
    server.close(4000);
    server.says(ALICE, "ping");
    server.wait_for(CREATE_MESSAGE, 2).await;
    assert_eq!(server.shown(server.private_channel(ALICE)), ["pong"]);
    assert_eq!((server.identifies(), server.resumes().len()), (1, 1));

    server.presses(ALICE, CHANNEL, pong.message, "choice");
    let edited = server.wait_for(EDIT_MESSAGE, 1).await;
    assert_eq!(edited[0].message, pong.message);
    assert_eq!(server.calls(FIRST_ANSWER)[0].body["type"], 6);
    server.commands(ALICE, CHANNEL, "status", None);
    let answers = server.wait_for(FIRST_ANSWER, 2).await;
    assert_eq!(answers[1].body["data"]["content"], "fine");

    let said = server.says_in(CHANNEL, ALICE, "thread");
    server.wait_for(CREATE_MESSAGE, 3).await;
    assert_eq!(
        server.shown(said),
        ["in it"],
        "a thread is named after its message"
    );
    drop(bot);
}
