//! A gateway, the people who write to it, and a world that does as it is told.

mod builder;
mod running;
mod script;
mod webhook;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::Surroundings;
use hermetic_approvals::ApprovalRegistry;
use hermetic_config::{Config, ConfigInputs, HomeFolder};
use hermetic_sandbox::Backend;
use hermetic_store::{RowOwner, Store};
use hermetic_testkit::backend::StandInBackend;
use hermetic_testkit::chat::{FakeChat, Record, SentFile};
use hermetic_testkit::clock::ManualClock;
use hermetic_testkit::model::ScriptedServer;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use builder::{Builder, has_sandboxes};
pub(crate) use hermetic_testkit::SharedFolder as Shared;
pub(crate) use script::{calls_terminal, calls_tool, stalls};
pub(crate) use webhook::{post, webhook};
pub(crate) use wire::{WireLab, text};

use running::{Countdown, Running};

/// What the configuration knows and nobody may read.
pub(crate) const KEY: &str = "correct-horse-battery-staple";

/// People, by the number that the platform gave them.
pub(crate) const ALICE: i64 = 7;
pub(crate) const BOB: i64 = 8;
pub(crate) const STRANGER: i64 = 99;

/// One home and the gateway in it. What is dropped leaves nothing: no process, no sandbox, no file.
pub(crate) struct Lab {
    /// `None` while nobody serves.
    running: Option<Running>,
    surroundings: Surroundings,
    chat: FakeChat,
    backend: Option<Arc<StandInBackend>>,
    clock: ManualClock,
    /// The model on the wire, unless the test brought one of its own.
    pub(crate) model: ScriptedServer,
    home: TempDir,
}

impl Lab {
    /// A gateway with sandboxes of a stand-in, or with the host played by one where the configuration says
    /// `local`. Alice and Bob may write to it.
    pub(crate) fn builder() -> Builder {
        Builder::default()
    }

    /// The platform: what people say, and what they were sent.
    pub(crate) fn chat(&self) -> &FakeChat {
        &self.chat
    }

    /// Where the sandboxes come from.
    pub(crate) fn backend(&self) -> &StandInBackend {
        self.backend.as_ref().expect("the lab has a stand-in")
    }

    /// The wall clock of the gateway.
    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Says something in private.
    pub(crate) fn says(&self, user: i64, words: &str) {
        self.chat.says(user, words);
    }

    /// Says something in private and waits for the next reply there.
    pub(crate) async fn ask(&self, user: i64, words: &str) -> String {
        self.ask_through(user, words, user).await
    }

    /// Says something and waits for the next reply in somebody else's chat.
    pub(crate) async fn ask_through(&self, user: i64, words: &str, other: i64) -> String {
        let seen = self.sent_to(other);
        self.says(user, words);
        self.chat.await_reply(other, seen).await.text()
    }

    /// Everything that was sent to this chat, as people see it, once there are so many.
    pub(crate) async fn replies(&self, user: i64, count: usize) -> Vec<String> {
        let messages = self.chat.messages(user, count).await;
        messages.iter().map(|message| message.text()).collect()
    }

    pub(crate) fn sent_to(&self, user: i64) -> usize {
        self.chat.record().messages_in(&user.into()).len()
    }

    /// What people were told who pressed a button, once so many did.
    pub(crate) async fn notices(&self, count: usize) -> Vec<String> {
        let told = |record: &Record| record.notices.len() >= count;
        let record = self.chat.wait_for("answers to presses", told).await;
        let texts = record.notices.into_iter();
        texts
            .map(|notice| notice.text.unwrap_or_default())
            .collect()
    }

    /// The files that were sent, once there are so many.
    pub(crate) async fn files(&self, count: usize) -> Vec<SentFile> {
        let there = |record: &Record| record.files.len() >= count;
        self.chat.wait_for("files", there).await.files
    }

    /// Has somebody's sandbox destroyed, as a person does who means it.
    pub(crate) async fn destroy(&self, user: i64) {
        self.ask(user, "/destroy").await;
        let said = self.ask(user, "/destroy yes").await;
        assert!(said.contains("are gone"), "{said}");
    }

    /// What the model was shown, question by question.
    pub(crate) fn asked(&self) -> Vec<String> {
        let received = self.model.received();
        let shown = received.iter();
        shown
            .map(|asked| asked.body["messages"].to_string())
            .collect()
    }

    pub(crate) async fn model_asked(&self, count: usize) {
        self.model.wait_for(count).await;
    }

    /// Until every message is answered and written down as such, which is a moment after its answer is seen.
    pub(crate) async fn all_done(&self) {
        let inbox = self.store().await.inbox();
        while !inbox.open(RowOwner::AnyGateway).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The result of the last tool call in this question, as the tool wrote it.
    pub(crate) fn tool_result(&self, question: usize) -> Value {
        let asked = self.model.received().remove(question);
        let messages = asked.body["messages"].as_array().unwrap().clone();
        let is_result = |message: &&Value| message["role"] == "tool";
        let result = messages.iter().rfind(is_result).unwrap();
        let marked = result["content"].as_str().unwrap();
        serde_json::from_str(marked.lines().nth(1).unwrap()).unwrap()
    }

    /// The conversations that have a sandbox, by the ledger.
    pub(crate) async fn sandboxes(&self) -> Vec<String> {
        let entries = self
            .store()
            .await
            .ledger()
            .entries(RowOwner::AnyGateway)
            .await
            .unwrap();
        let whose = entries.iter().map(|entry| entry.conversation.to_string());
        whose.collect()
    }

    /// The rows of this home, beside the gateway.
    pub(crate) async fn store(&self) -> Store {
        hermetic_app::store(&self.config()).await.unwrap()
    }

    /// As it stands in the files now.
    pub(crate) fn config(&self) -> Config {
        let inputs = ConfigInputs {
            home: HomeFolder::at(self.home.path()),
            managed: self.path("no-such-file"),
            variables: Default::default(),
            unreadable: Vec::new(),
        };
        hermetic_config::load(&inputs).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Changes the database behind the gateway's back, as a broken disk would.
    pub(crate) fn spoil(&self, sql: &str) {
        let script = "import sqlite3, sys\n\
                      with sqlite3.connect(sys.argv[1], timeout=20) as database:\n    \
                          database.executescript(sys.argv[2])";
        let done = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(self.config().home().state().join("state.db"))
            .arg(sql)
            .status();
        assert!(done.unwrap().success(), "{sql}");
    }

    /// The events of one kind in the record of what was decided, a line each. The record holds.
    pub(crate) fn audit(&self, kind: &str) -> String {
        let walk = hermetic_audit::walk_at(&hermetic_app::audit_places(&self.config()));
        let records = walk.unwrap().map(|record| record.unwrap().event);
        let wanted = records.filter(|event| event["kind"] == kind);
        let lines = wanted.map(|event| format!("{}\n", Value::Object(event)));
        lines.collect()
    }

    /// The questions of this home, as the command line sees them.
    pub(crate) async fn approvals(&self) -> ApprovalRegistry {
        let store = Box::pin(self.store()).await;
        hermetic_app::approvals(&self.config(), &store).unwrap()
    }

    /// Where health is answered.
    pub(crate) fn health(&self) -> SocketAddr {
        self.running().health
    }

    /// Where a platform calls us.
    pub(crate) fn intake(&self) -> SocketAddr {
        self.running().intakes[0]
    }

    /// Stops in good order: turns come to their end.
    pub(crate) async fn stop(&mut self) {
        let running = self.running.take().expect("a gateway that runs");
        running.stop().await;
    }

    /// The next gateway in the same home, among the same people.
    pub(crate) async fn start(&mut self) {
        let started = self.try_start(Countdown::default()).await;
        started.unwrap_or_else(|why| panic!("it does not start: {why}"));
    }

    /// The same, and it dies at its n-th wait; whether it lived to take messages.
    pub(crate) async fn start_to_die(&mut self, waits: u64) -> bool {
        let countdown = Countdown::default();
        countdown.end_after(waits);
        self.try_start(countdown).await.is_ok()
    }

    async fn try_start(&mut self, countdown: Countdown) -> Result<(), String> {
        let started = Running::start(self.config(), self.surroundings.clone(), countdown);
        self.running = Some(started.await?);
        Ok(())
    }

    /// How often the gateway has waited for the world.
    pub(crate) fn waited(&self) -> u64 {
        self.running().countdown.waited()
    }

    /// The gateway dies when it has waited so often from now on.
    pub(crate) fn dies_after(&self, waits: u64) {
        self.running().countdown.end_after(waits);
    }

    /// Whether nobody serves: it died.
    pub(crate) fn is_dead(&self) -> bool {
        self.running.as_ref().is_none_or(Running::has_ended)
    }

    /// Ends at once, as in a crash, if it has not.
    pub(crate) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.crash();
        }
    }

    /// Stops in good order and starts again.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    /// Ends at once, as in a crash, and starts again.
    pub(crate) async fn crash_and_start(&mut self) {
        self.crash();
        self.start().await;
    }

    /// Time passes for everybody: on the wall, and for whoever waits.
    pub(crate) async fn pass(&self, time: Duration) {
        self.running().pass(time, self.clock.clone()).await;
    }

    /// Wakes whoever looks at the clock on the wall now and then.
    pub(crate) async fn nudge(&self) {
        self.running().nudge(Duration::from_secs(16)).await;
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("a gateway that runs")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.crash();
        }
        if self.backend.is_none() {
            let config = self.config();
            // A runtime of its own: this one belongs to the test and may not be blocked.
            let cleaning = std::thread::spawn(move || destroy_all(&config));
            let _ = cleaning.join();
        }
    }
}

/// Real sandboxes outlive their gateway.
fn destroy_all(config: &Config) {
    let Ok(installation) = hermetic_app::installation(config.home()) else {
        return;
    };
    let kinds = hermetic_config::resolve_gateway_backend(config).into_iter();
    let kinds = kinds.flat_map(|resolved| {
        let own = resolved.platforms.values().copied();
        own.chain([resolved.backend]).collect::<Vec<_>>()
    });
    let runtime = running::runtime();
    for kind in kinds {
        let caller = hermetic_app::BackendCaller::Onlooker;
        let opened = hermetic_app::backend(config, &installation, kind, caller);
        let Ok(backend) = opened else { continue };
        runtime.block_on(destroy_all_of(&*backend));
    }
}

async fn destroy_all_of(backend: &dyn Backend) {
    for found in backend.list().await.unwrap_or_default() {
        let _ = backend.destroy(&found.id).await;
    }
}
