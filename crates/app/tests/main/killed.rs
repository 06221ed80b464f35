//! The gateway dies at each step of a message's way, on each platform: nothing is lost that the platform
//! still has, and nothing is shown twice without a mark.
//!
//! A step is a wait. A gateway on one thread waits wherever it has handed something to the disk, to a
//! platform or to the model, so every state that a kill can leave behind lies between two waits. Usually
//! some of them are tried, spread over the whole way; with `HERMETIC_LONG` each.

mod stages;

use std::time::Duration;

use hermetic_store::RowOwner;
use hermetic_testkit::model::Reply;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::lab::Lab;
use stages::{
    DiscordStage, MatrixStage, SignalStage, SlackStage, Stage, TelegramStage, WhatsAppStage,
};

/// Deaths in one telling that is not long.
const DEATHS: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const MARK: &str = "Possible duplicate";

#[tokio::test]
async fn on_telegram_a_gateway_may_die_at_each_step() {
    Telling::begin(TelegramStage::new().await)
        .await
        .tell()
        .await;
}

#[tokio::test]
async fn on_discord_a_gateway_may_die_at_each_step() {
    Telling::begin(DiscordStage::new().await).await.tell().await;
}

#[tokio::test]
async fn on_slack_a_gateway_may_die_at_each_step() {
    Telling::begin(SlackStage::new().await).await.tell().await;
}

#[tokio::test]
async fn on_whatsapp_a_gateway_may_die_at_each_step() {
    Telling::begin(WhatsAppStage::new().await)
        .await
        .tell()
        .await;
}

#[tokio::test]
async fn on_signal_a_gateway_may_die_at_each_step() {
    Telling::begin(SignalStage::new().await).await.tell().await;
}

#[tokio::test]
async fn on_matrix_a_gateway_may_die_at_each_step() {
    let name = "on_matrix_a_gateway_may_die_at_each_step";
    if let Some(stage) = MatrixStage::find(name).await {
        Telling::begin(stage).await.tell().await;
    }
}

/// One story on one platform.
struct Telling<S> {
    stage: S,
    lab: Lab,
    round: u32,
}

impl<S: Stage> Telling<S> {
    async fn begin(stage: S) -> Self {
        let lab = stage.build(Lab::builder().answering(answer)).start().await;
        stage.connect(&lab).await;
        Self {
            stage,
            lab,
            round: 0,
        }
    }

    async fn tell(mut self) {
        let alive = self.waits_of_a_message().await;
        for death in deaths(alive) {
            self.lab.dies_after(death);
            let said = self.say().await;
            self.until_dead_or_answered(&said).await;
            self.is_answered_once_by_the_next(death, &said).await;
        }
        // What was said meanwhile is caught up with, and a start that dies is a step, too.
        let waking = self.waits_of_a_start().await;
        for death in deaths(waking) {
            self.lab.crash();
            self.stage.is_left().await;
            let said = self.say().await;
            if self.lab.start_to_die(death).await {
                self.stage.connect_if_it_lives(&self.lab).await;
                self.until_dead_or_answered(&said).await;
            }
            self.is_answered_once_by_the_next(death, &said).await;
        }
        self.lab.stop().await;
    }

    /// How often the gateway waits until a message is over and done with.
    async fn waits_of_a_message(&mut self) -> u64 {
        let before = self.lab.waited();
        let said = self.say().await;
        self.until_dead_or_answered(&said).await;
        self.lab.waited() - before
    }

    /// The same from a start on, with a message that waits.
    async fn waits_of_a_start(&mut self) -> u64 {
        self.lab.crash();
        self.stage.is_left().await;
        let said = self.say().await;
        self.lab.start().await;
        self.stage.connect(&self.lab).await;
        self.until_dead_or_answered(&said).await;
        self.lab.waited()
    }

    async fn say(&mut self) -> Note<S::Said> {
        self.round += 1;
        let word = format!("w{:04}", self.round);
        let said = self.stage.says(&format!("note {word}")).await;
        Note { word, said }
    }

    async fn until_dead_or_answered(&self, note: &Note<S::Said>) {
        let store = self.lab.store().await;
        let over = timeout(PATIENCE, async {
            while !self.lab.is_dead() {
                let shown = !self.shown(&note.word).await.is_empty();
                let due = store.deliveries().due(RowOwner::AnyGateway).await.unwrap();
                let open = store.inbox().open(RowOwner::AnyGateway).await.unwrap();
                if shown && due.is_empty() && open.is_empty() {
                    return;
                }
                sleep(LOOK_AGAIN).await;
            }
        });
        assert!(
            over.await.is_ok(),
            "{}: neither dead nor answered",
            note.word
        );
    }

    async fn is_answered_once_by_the_next(&mut self, death: u64, note: &Note<S::Said>) {
        let word = &note.word;
        self.lab.crash();
        // Looked at while nobody is there.
        let forgotten = self.stage.has_forgotten(&self.lab, &note.said).await;
        self.lab.start().await;
        self.stage.connect(&self.lab).await;
        if !forgotten {
            self.until_answered(note, death).await;
        }
        // Whatever was to come has come when the next one is answered.
        let next = self.say().await;
        self.until_answered(&next, death).await;
        let shown = self.shown(word).await;
        let unmarked = shown.iter().filter(|text| !text.contains(MARK)).count();
        assert!(unmarked <= 1, "killed at wait {death}: {shown:?}");
    }

    async fn until_answered(&self, note: &Note<S::Said>, death: u64) {
        let answered = timeout(PATIENCE, self.until_dead_or_answered(note)).await;
        let word = &note.word;
        assert!(
            answered.is_ok() && !self.lab.is_dead(),
            "killed at wait {death}: {word} is lost: {:?}",
            self.stage.shown().await
        );
    }

    async fn shown(&self, word: &str) -> Vec<String> {
        let all = self.stage.shown().await.into_iter();
        all.filter(|text| text.contains(word)).collect()
    }
}

/// Something somebody said, and what the platform calls it.
struct Note<T> {
    word: String,
    said: T,
}

/// The waits at which it dies, of so many.
fn deaths(waits: u64) -> Vec<u64> {
    let all: Vec<_> = (1..=waits).collect();
    let step = match hermetic_testkit::long() {
        true => 1,
        false => all.len().div_ceil(DEATHS).max(1),
    };
    // Not the first of each stretch: the last step of all is one that matters.
    all.into_iter().rev().step_by(step).collect()
}

/// The model says the last word back that it was shown.
fn answer(question: &Value) -> Reply {
    let messages = question["messages"].as_array().unwrap();
    let said = messages.iter().rfind(|message| message["role"] == "user");
    let text = said.map(|said| said["content"].to_string());
    let text = text.unwrap_or_default();
    let word = text.rsplit("note ").next().unwrap_or_default();
    let word: String = word
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    Reply::streams(&["heard ", &word])
}
