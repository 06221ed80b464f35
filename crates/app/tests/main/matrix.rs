//! Matrix, over the wire of a real homeserver: message in, sealed answer out, an answer by a reaction.

use hermetic_testkit::matrix::{MatrixPerson, MatrixProxy, ProxyFault, ShownMessage};
use hermetic_testkit::model::Reply;
use hermetic_testkit::pypi::Synapse;
use serde_json::json;

use crate::approvals::{self, Deed};
use crate::lab::{Lab, calls_terminal, stalls};

/// A real homeserver behind a proxy that can spoil it, with our account and somebody who may write.
pub(crate) struct Homeserver {
    synapse: Synapse,
    pub(crate) proxy: MatrixProxy,
    pub(crate) bot: MatrixPerson,
    pub(crate) alice: MatrixPerson,
}

impl Homeserver {
    /// `None` where there is none, which is said.
    pub(crate) async fn find(test: &str) -> Option<Self> {
        let synapse = match Synapse::shared().await {
            Ok(synapse) => synapse,
            Err(why) => {
                eprintln!("SKIP: {test}: no Synapse: {why}");
                return None;
            }
        };
        Some(Self {
            proxy: MatrixProxy::start(synapse.url()).await.unwrap(),
            bot: MatrixPerson::register(synapse.url(), "bot").await.unwrap(),
            alice: MatrixPerson::register(synapse.url(), "alice")
                .await
                .unwrap(),
            synapse,
        })
    }

    /// What the bot wrote, once it is so much.
    async fn answers(&self, room: &str, count: usize) -> Vec<ShownMessage> {
        let bot = self.bot.user();
        let shown = self
            .alice
            .waits_for(room, bot, |shown| shown.len() >= count);
        let shown = shown.await;
        assert!(shown.len() >= count, "{shown:?}");
        shown
    }
}

#[tokio::test]
async fn a_message_is_answered_from_a_sandbox_and_strangers_learn_nothing() {
    let Some(home) = Homeserver::find("a_message_is_answered_from_a_sandbox").await else {
        return;
    };
    let script = [
        calls_terminal("echo $((6 * 7))"),
        Reply::streams(&["It is **42**."]),
    ];
    let builder = Lab::builder().script(script);
    let builder = builder.matrix(home.proxy.url(), &home.bot, &home.alice);
    let lab = builder.start().await;
    home.proxy.syncs(2).await;
    let bob = MatrixPerson::register(home.synapse.url(), "bob")
        .await
        .unwrap();
    let uninvited = bob.opens_private(&home.bot).await;
    // Both at once: she is heard although she wrote before it came.
    let room = home.alice.opens_private(&home.bot).await;
    home.alice.says(&room, "what is six times seven?").await;
    let answer = home.answers(&room, 1).await.remove(0);
    assert_eq!(answer.text, "It is **42**.");
    assert_eq!(
        answer.content["formatted_body"],
        "<p>It is <strong>42</strong>.</p>"
    );
    assert!(lab.asked()[1].contains("42"), "the command ran");
    let members = bob.members(&uninvited).await;
    let ours = members.iter().find(|(user, _, _)| user == home.bot.user());
    assert_eq!(
        ours.unwrap().1,
        "invite",
        "a stranger's invitation is left alone"
    );

    // In a room of several only who is allowed is answered, and in a thread.
    let group = home.alice.opens_room(&[&home.bot, &bob]).await;
    bob.joins(&group).await;
    home.alice
        .waits_until_member(&group, home.bot.user(), "join")
        .await;
    let mention = |text: &str| {
        json!({ "msgtype": "m.text", "body": text,
        "m.mentions": { "user_ids": [home.bot.user()] } })
    };
    bob.sends(&group, mention("let me in")).await;
    let asked = home.alice.sends(&group, mention("/sh echo sealed")).await;
    let answer = home.answers(&group, 1).await;
    assert_eq!(answer.len(), 1, "{answer:?}");
    assert!(answer[0].text.contains("sealed"), "{answer:?}");
    assert_eq!(answer[0].content["m.relates_to"]["event_id"], json!(asked));
    let told = home.proxy.requests();
    let told = told.iter().filter(|request| request.contains("/receipt/"));
    assert!(told.count() > 0, "it is shown that it was read");
}

#[tokio::test]
async fn a_question_is_answered_by_a_reaction_of_who_may_answer() {
    let Some(home) = Homeserver::find("a_question_is_answered_by_a_reaction").await else {
        return;
    };
    let deed = Deed::new();
    let approver = format!("approvers: ['matrix:{}']", home.alice.user());
    let mut lab = Lab::builder()
        .config(&approvals::config(&approver))
        .matrix(home.proxy.url(), &home.bot, &home.alice)
        .start()
        .await;
    home.proxy.syncs(2).await;
    let room = home.alice.opens_private(&home.bot).await;
    home.alice
        .says(&room, &format!("/sh {}", deed.command()))
        .await;
    let question = home.answers(&room, 1).await.remove(0);
    assert!(question.text.contains("👍 Allow once"), "{question:?}");
    // A restart between the question and its answer.
    lab.restart().await;
    assert_eq!(deed.times(), 0);
    home.alice.reacts(&room, &question.event, "👍🏽").await;
    let bot = home.bot.user();
    let is_told =
        |shown: &[ShownMessage]| shown.iter().any(|one| one.text.contains("allowed once"));
    let shown = home.alice.waits_for(&room, bot, is_told).await;
    assert!(is_told(&shown), "{shown:?}");
    // The question, that it is settled, and what the command said.
    home.answers(&room, 3).await;
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn a_message_that_was_taken_over_is_answered_after_a_crash() {
    let Some(home) = Homeserver::find("a_message_is_answered_after_a_crash").await else {
        return;
    };
    let script = [
        stalls(),
        Reply::streams(&["here it is"]),
        Reply::streams(&["and this"]),
    ];
    let builder = Lab::builder().script(script);
    let builder = builder.matrix(home.proxy.url(), &home.bot, &home.alice);
    let mut lab = builder.start().await;
    home.proxy.syncs(2).await;
    let room = home.alice.opens_private(&home.bot).await;
    home.alice.says(&room, "take your time").await;
    lab.model_asked(1).await;
    lab.crash_and_start().await;
    let shown = home.answers(&room, 1).await;
    assert!(shown[0].text.contains("here it is"), "{shown:?}");
    // The next answer arrives, nobody hears that it did, and it is sent again without a second one.
    home.proxy.spoil(ProxyFault::LoseAnswer);
    home.alice.says(&room, "and then?").await;
    let shown = home.answers(&room, 2).await;
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(
        shown[1].text, "and this",
        "nothing is doubled, so nothing is marked"
    );
}
