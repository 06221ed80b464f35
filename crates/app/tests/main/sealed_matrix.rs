//! End-to-end encrypted rooms of Matrix through a whole gateway: message in, sealed answer out, a yes by a
//! reaction, a crash in between. Only in a build that speaks them.

use hermetic_testkit::matrix::SealedPerson;
use hermetic_testkit::model::Reply;
use serde_json::{Value, json};

use crate::approvals::{self, Deed};
use crate::lab::{Builder, Lab, calls_terminal, stalls};
use crate::matrix::Homeserver;

/// Our account and Alice, whose app seals what she says, in a room of the two.
struct SealedRoom {
    home: Homeserver,
    alice: SealedPerson,
    room: String,
}

impl SealedRoom {
    /// `None` where there is no homeserver, which is said.
    async fn find(test: &str) -> Option<Self> {
        let home = Homeserver::find(test).await?;
        let alice = SealedPerson::new(home.alice.clone()).await;
        let room = alice.opens_private(&home.bot).await;
        Some(Self { home, alice, room })
    }

    /// A gateway that listens in encrypted rooms, and has joined this one.
    async fn gateway(&self, builder: Builder) -> Lab {
        let home = &self.home;
        let lab = builder
            .config("platforms: {matrix: {e2ee_mode: optional}}\n")
            .matrix(home.proxy.url(), &home.bot, &home.alice)
            .start()
            .await;
        let waited = home
            .alice
            .waits_until_member(&self.room, home.bot.user(), "join");
        waited.await;
        home.proxy.syncs(home.proxy.sync_count() + 1).await;
        lab
    }

    async fn says(&mut self, text: &str) -> String {
        self.alice.says(&self.room, text).await
    }

    /// What the account said in the room, opened with her keys, once there is so much.
    async fn answers(&mut self, count: usize) -> Vec<Value> {
        let bot = self.home.bot.user();
        let is_there = |shown: &[Value]| shown.len() >= count;
        self.alice.waits_for(&self.room, bot, is_there).await
    }

    /// Nothing that was said stands in any event as the homeserver has it.
    async fn assert_sealed(&self, words: &[&str]) {
        let all = json!(self.alice.person.events(&self.room).await).to_string();
        for word in words {
            assert!(!all.contains(word), "{word} stands in the open");
        }
    }
}

fn bodies(shown: &[Value]) -> Vec<&str> {
    shown
        .iter()
        .filter_map(|one| one["body"].as_str())
        .collect()
}

#[tokio::test]
async fn a_sealed_message_is_answered_sealed_from_a_sandbox_and_over_a_restart() {
    let Some(mut room) = SealedRoom::find("a_sealed_message_is_answered_sealed").await else {
        return;
    };
    let script = [
        calls_terminal("echo $((6 * 7))"),
        Reply::streams(&["It is ", "**42**."]),
        Reply::streams(&["You asked for the product."]),
    ];
    let mut lab = room.gateway(Lab::builder().script(script)).await;
    room.says("the product, please").await;
    let shown = room.answers(1).await;
    assert_eq!(bodies(&shown), ["It is **42**."]);
    assert!(lab.asked()[1].contains("42"), "the command ran");
    // The same device with the same keys: what is said to the next process is read by it, and its answer here.
    lab.restart().await;
    room.says("what was my question?").await;
    let shown = room.answers(2).await;
    assert_eq!(bodies(&shown)[1], "You asked for the product.");
    let asked = lab.asked();
    assert!(asked.last().unwrap().contains("the product, please"));
    room.assert_sealed(&["product", "It is", "question"]).await;
}

#[tokio::test]
async fn a_sealed_question_is_answered_by_a_reaction_of_who_may_answer() {
    let Some(mut room) = SealedRoom::find("a_sealed_question_is_answered").await else {
        return;
    };
    let deed = Deed::new();
    let approver = format!("approvers: ['matrix:{}']", room.home.alice.user());
    let builder = Lab::builder().config(&approvals::config(&approver));
    let mut lab = room.gateway(builder).await;
    room.says(&format!("/sh {}", deed.command())).await;
    let question = room.answers(1).await;
    assert!(
        bodies(&question)[0].contains("👍 Allow once"),
        "{question:?}"
    );
    let name = room
        .alice
        .last_event(&room.room, room.home.bot.user())
        .await;
    lab.restart().await;
    assert_eq!(deed.times(), 0);
    room.home.alice.reacts(&room.room, &name, "👍").await;
    let bot = room.home.bot.user();
    let is_told = |shown: &[Value]| {
        let told = bodies(shown);
        told.iter().any(|text| text.contains("allowed once")) && told.len() >= 2
    };
    room.alice.waits_for(&room.room, bot, is_told).await;
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn a_sealed_message_is_answered_after_a_crash_and_once() {
    let Some(mut room) = SealedRoom::find("a_sealed_message_is_answered_after_a_crash").await
    else {
        return;
    };
    let script = [
        stalls(),
        Reply::streams(&["here it is"]),
        Reply::streams(&["and this"]),
    ];
    let mut lab = room.gateway(Lab::builder().script(script)).await;
    room.says("take your time").await;
    lab.model_asked(1).await;
    lab.crash_and_start().await;
    let shown = room.answers(1).await;
    assert!(bodies(&shown)[0].contains("here it is"), "{shown:?}");
    room.says("and then?").await;
    let shown = room.answers(2).await;
    assert_eq!(bodies(&shown)[1], "and this", "{shown:?}");
    room.assert_sealed(&["your time", "here it is", "and then", "and this"])
        .await;
}
