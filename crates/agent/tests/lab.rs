//! Tools, a journal and a watcher that remember what happened to them, in one order.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{
    Agent, AgentTurn, CallId, CompactionSettings, HistorySummary, JournalError, LanguageModel,
    Message, MessagePart, NoMeter, SpendingMeter, SteeringHandle, ToolCall, ToolInvocation,
    ToolResult, ToolSet, ToolSpec, TurnAnswer, TurnBounds, TurnError, TurnInput, TurnJournal,
    TurnObserver,
};
use hermetic_redact::{Redacted, Redactor};
use hermetic_testkit::model::{Line, ScriptedModel};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) struct Lab {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) limits: TurnBounds,
    pub(crate) steer: SteeringHandle,
    pub(crate) stop: CancellationToken,
    pub(crate) summary: Option<HistorySummary>,
    pub(crate) history: Vec<Message>,
    pub(crate) compaction: CompactionSettings,
    pub(crate) media: Vec<MessagePart>,
    happened: Mutex<Vec<String>>,
    broken_journal: bool,
    pub(crate) record: Record,
    pub(crate) redactor: Redactor,
    pub(crate) meter: Arc<dyn SpendingMeter>,
}

impl Lab {
    pub(crate) fn new(script: impl IntoIterator<Item = Line>) -> Self {
        Self {
            model: Arc::new(ScriptedModel::new(script)),
            limits: TurnBounds::default(),
            steer: SteeringHandle::default(),
            stop: CancellationToken::new(),
            summary: None,
            history: Vec::new(),
            compaction: CompactionSettings::default(),
            media: Vec::new(),
            happened: Mutex::default(),
            broken_journal: false,
            record: Record::default(),
            redactor: Redactor::new([], hermetic_redact::RedactorSettings::default()),
            meter: Arc::new(NoMeter),
        }
    }

    pub(crate) fn with_broken_journal(mut self) -> Self {
        self.broken_journal = true;
        self
    }

    pub(crate) async fn says(&self, text: &str) -> Result<TurnAnswer, TurnError> {
        self.take_turn(TurnInput::Says(text)).await
    }

    pub(crate) async fn take_turn(&self, input: TurnInput<'_>) -> Result<TurnAnswer, TurnError> {
        let model: Arc<dyn LanguageModel> = Arc::clone(&self.model) as _;
        self.take_turn_with(model, input).await
    }

    pub(crate) async fn take_turn_with(
        &self,
        model: Arc<dyn LanguageModel>,
        input: TurnInput<'_>,
    ) -> Result<TurnAnswer, TurnError> {
        self.take_turn_by(&self.agent(model), input).await
    }

    pub(crate) async fn take_turn_by(
        &self,
        agent: &Agent,
        input: TurnInput<'_>,
    ) -> Result<TurnAnswer, TurnError> {
        let turn = AgentTurn {
            system: &Redacted::constant("be good"),
            summary: self.summary.as_ref(),
            history: &self.history,
            input,
            media: &self.media,
            tools: self,
            journal: self,
            observer: self,
            steer: &self.steer,
            meter: &*self.meter,
        };
        agent.take_turn(turn, self.stop.clone()).await
    }

    pub(crate) fn agent(&self, model: Arc<dyn LanguageModel>) -> Agent {
        Agent::new(model, self.limits, self.redactor.clone()).summarising(self.compaction.clone())
    }

    /// Until somebody has asked the model.
    pub(crate) async fn model_was_asked(&self) {
        while self.model.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn happened(&self) -> Vec<String> {
        self.happened.lock().expect("no panic").clone()
    }

    fn note(&self, what: String) {
        self.happened.lock().expect("no panic").push(what);
    }
}

/// What the journal wrote down, and when the machine dies.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) messages: Mutex<Vec<Message>>,
    pub(crate) begun: Mutex<HashSet<CallId>>,
    pub(crate) summaries: Mutex<Vec<(HistorySummary, usize)>>,
    writes: AtomicUsize,
    /// After this many writes nothing happens any more.
    pub(crate) dies_after: Option<usize>,
    pub(crate) died: Notify,
}

impl Record {
    /// Writes, unless the machine is dead by then.
    async fn write(&self, fact: impl FnOnce(&Self)) {
        let count = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.dies_after.is_some_and(|last| count >= last) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
        fact(self);
    }
}

/// The content of the tool results among `messages`.
pub(crate) fn results(messages: &[Message]) -> Vec<String> {
    let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
    let results = messages.iter().filter(is_result);
    results.map(|message| message.text().into_owned()).collect()
}

impl ToolSet for Lab {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: format!("does {name}").into(),
            schema: Arc::new(json!({
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            })),
        };
        ["echo", "steer", "stop", "hang", "hang_forever"]
            .map(spec)
            .into()
    }

    fn call<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            let text = invocation.arguments["text"].as_str().unwrap_or_default();
            self.note(format!("{} {text}", invocation.name));
            match invocation.name {
                "steer" => {
                    self.steer.say(text);
                }
                "stop" => self.stop.cancel(),
                "hang" => {
                    self.stop.cancel();
                    stop.cancelled().await;
                    return ToolResult::failed("stopped half way");
                }
                "hang_forever" => {
                    self.stop.cancel();
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            ToolResult::new(self.redactor.redact(text))
        }
        .boxed()
    }
}

impl TurnJournal for Lab {
    fn said<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), JournalError>> {
        let kind = match message {
            Message::System { .. } => "system",
            Message::User { .. } => "user",
            Message::Assistant { .. } => "assistant",
            Message::Tool { .. } => "tool",
        };
        self.note(format!("journal: {kind}"));
        async move {
            let add = |record: &Record| {
                record
                    .messages
                    .lock()
                    .expect("no panic")
                    .push(message.clone());
            };
            self.record.write(add).await;
            Ok(())
        }
        .boxed()
    }

    fn tool_about_to_run<'a>(
        &'a self,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        self.note(format!("journal: about to run {}", call.name));
        let broken = self.broken_journal;
        async move {
            if broken {
                Err(JournalError {
                    source: "the disk is full".into(),
                })
            } else {
                let begin = |record: &Record| {
                    record
                        .begun
                        .lock()
                        .expect("no panic")
                        .insert(call.id.clone());
                };
                self.record.write(begin).await;
                Ok(())
            }
        }
        .boxed()
    }

    fn tool_ended<'a>(
        &'a self,
        _: &'a CallId,
        result: &'a Message,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        self.note("journal: ended".to_owned());
        async move {
            let add = |record: &Record| {
                record
                    .messages
                    .lock()
                    .expect("no panic")
                    .push(result.clone());
            };
            self.record.write(add).await;
            Ok(())
        }
        .boxed()
    }

    fn compacted<'a>(
        &'a self,
        summary: &'a HistorySummary,
        kept: usize,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        self.note(format!(
            "journal: summary of {}, {kept} kept",
            summary.messages
        ));
        async move {
            if self.broken_journal {
                return Err(JournalError {
                    source: "the disk is full".into(),
                });
            }
            let keep = |record: &Record| {
                let mut summaries = record.summaries.lock().expect("no panic");
                summaries.push((summary.clone(), kept));
            };
            self.record.write(keep).await;
            Ok(())
        }
        .boxed()
    }
}

impl TurnObserver for Lab {
    fn text(&self, piece: &str) {
        self.note(format!("text {piece}"));
    }

    fn restarted(&self) {
        self.note("restarted".to_owned());
    }

    fn tool_started(&self, call: &ToolCall) {
        self.note(format!("started {}", call.name));
    }

    fn tool_ended(&self, call: &ToolCall, result: &ToolResult) {
        self.note(format!("ended {} failed={}", call.name, result.failed));
    }
}
