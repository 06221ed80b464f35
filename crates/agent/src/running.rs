//! A turn under way: its messages so far, and the steps it is made of.

use std::collections::{HashMap, HashSet};

use futures::stream::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::reply::Reply;
use crate::schema;
use crate::turn::Turn;
use crate::{
    Agent, Answer, Ask, AssistantPart, CallId, Delta, Ended, Finish, Input, Invocation,
    JournalError, Message, ModelError, ModelText, Part, ToolCall, ToolResult, ToolSpec, TurnError,
    Untrusted, Usage, trim,
};

/// A turn under way.
pub(crate) struct Running<'a> {
    agent: &'a Agent,
    turn: Turn<'a>,
    pub(crate) stop: CancellationToken,
    specs: HashMap<String, ToolSpec>,
    offered: Vec<ToolSpec>,
    /// The system prompt, the history and what this turn added.
    messages: Vec<Message>,
    /// Where this turn's own messages start.
    own: usize,
    /// What this turn is about.
    request: usize,
    /// Ids that calls of this conversation have already.
    pub(crate) taken: HashSet<CallId>,
    pub(crate) usage: Usage,
}

pub(crate) enum Unanswered {
    Stopped { so_far: String },
    Failed(ModelError),
}

impl<'a> Running<'a> {
    pub(crate) fn new(agent: &'a Agent, turn: Turn<'a>, stop: CancellationToken) -> Self {
        let offered = turn.tools.specs();
        let mut messages = Vec::with_capacity(turn.history.len() + 2);
        messages.extend_from_slice(turn.history);
        Self {
            agent,
            turn,
            stop,
            specs: offered
                .iter()
                .map(|spec| (spec.name.clone(), spec.clone()))
                .collect(),
            offered,
            own: messages.len(),
            request: request(turn.input, &messages),
            taken: call_ids(&messages),
            messages,
            usage: Usage::default(),
        }
    }

    pub(crate) async fn say(&mut self, message: Message) -> Result<(), JournalError> {
        self.turn.journal.said(&message).await?;
        self.messages.push(message);
        Ok(())
    }

    /// Asks the model, with less of the history each time it says that there is too much.
    pub(crate) async fn ask(&self) -> Result<Reply, Unanswered> {
        let mut budget = self.agent.limits.budget;
        let mut shorter = 3;
        loop {
            let mut shown = vec![Message::system(self.turn.system.clone())];
            shown.extend_from_slice(&trim(&self.messages, self.request, budget));
            match self.ask_with(&shown).await {
                Err(Unanswered::Failed(ModelError::ContextTooLong { model, detail }))
                    if shorter > 0 =>
                {
                    tracing::info!(
                        model,
                        detail,
                        "the conversation is too long; showing less of it"
                    );
                    shorter -= 1;
                    budget = budget.halved_for(&shown);
                    self.turn.observer.restarted();
                }
                other => return other,
            }
        }
    }

    async fn ask_with(&self, messages: &[Message]) -> Result<Reply, Unanswered> {
        let ask = Ask {
            messages,
            tools: &self.offered,
        };
        let mut reply = Reply::default();
        let mut deltas = self.agent.model.complete(ask, self.stop.clone());
        loop {
            let next = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Unanswered::Stopped { so_far: reply.text() }),
                next = deltas.next() => next,
            };
            match next {
                Some(Ok(delta)) => {
                    match &delta {
                        Delta::Text(piece) => self.turn.observer.text(piece),
                        Delta::Restarted => self.turn.observer.restarted(),
                        Delta::ToolCall(_)
                        | Delta::Opaque(_)
                        | Delta::Usage(_)
                        | Delta::Finish(_) => {}
                    }
                    reply.take(delta);
                    if reply.finish.is_some() {
                        return Ok(reply);
                    }
                }
                Some(Err(ModelError::Stopped)) => {
                    return Err(Unanswered::Stopped {
                        so_far: reply.text(),
                    });
                }
                Some(Err(error)) => return Err(Unanswered::Failed(error)),
                None => {
                    let model = self.agent.model.name().to_owned();
                    return Err(Unanswered::Failed(ModelError::Cut { model }));
                }
            }
        }
    }

    /// Runs one call and records its result. Every call gets one, whatever happens.
    pub(crate) async fn run(&mut self, call: &ToolCall) -> Result<(), JournalError> {
        let result = match self.check(call) {
            // It quotes nothing but the schema and what the model wrote.
            Err(complaint) => ToolResult::failed(ModelText::assembled(complaint)),
            Ok(_) if self.stop.is_cancelled() => {
                ToolResult::failed("not run: the turn was interrupted first.")
            }
            Ok(arguments) => {
                self.turn.journal.tool_about_to_run(call).await?;
                self.turn.observer.tool_started(call);
                let invocation = Invocation {
                    id: &call.id,
                    name: &call.name,
                    arguments: &arguments,
                };
                let result = self.call_within_grace(invocation).await;
                self.turn.observer.tool_ended(call, &result);
                ToolResult {
                    parts: marked(&call.name, result.parts),
                    ..result
                }
            }
        };
        let message = Message::Tool {
            call_id: call.id.clone(),
            failed: result.failed,
            parts: result.parts,
        };
        self.turn.journal.tool_ended(&call.id, &message).await?;
        self.messages.push(message);
        Ok(())
    }

    fn check(&self, call: &ToolCall) -> Result<serde_json::Map<String, serde_json::Value>, String> {
        let Some(spec) = self.specs.get(&call.name) else {
            let known: Vec<_> = self.offered.iter().map(|spec| spec.name.as_str()).collect();
            return Err(format!(
                "error: there is no tool {:?}; known: {}",
                shown(&call.name),
                known.join(", ")
            ));
        };
        schema::check(&call.arguments, &spec.schema).map_err(|wrong| {
            format!(
                "error: {wrong}\nNothing was run. The schema of {} is: {}",
                spec.name, spec.schema
            )
        })
    }

    /// A tool that was told to stop and does not is left to itself after the grace period.
    async fn call_within_grace(&self, invocation: Invocation<'_>) -> ToolResult {
        let overdue = async {
            self.stop.cancelled().await;
            tokio::time::sleep(self.agent.limits.grace).await;
        };
        tokio::select! {
            biased;
            result = self.turn.tools.call(invocation, self.stop.child_token()) => result,
            () = overdue => ToolResult::failed("interrupted; it did not end in time and may or may not have happened."),
        }
    }

    /// The model's last message of this turn, with a note where it did not come to its end.
    pub(crate) async fn finished(
        mut self,
        message: Message,
        finish: Option<Finish>,
    ) -> Result<Answer, TurnError> {
        let text = message.text();
        let (note, ended) = match finish {
            Some(Finish::Length) => ("[The model ran out of room here.]", Ended::CutShort),
            Some(Finish::Filtered) => (
                "[The provider of the model withheld the rest.]",
                Ended::CutShort,
            ),
            Some(Finish::Done) | None if text.trim().is_empty() => {
                ("[The model answered with nothing.]", Ended::CutShort)
            }
            Some(Finish::Done) | None => ("", Ended::Finished),
        };
        let message = match note {
            "" => message,
            note => with_note(message, note),
        };
        let text = message.text().into_owned();
        self.say(message).await?;
        Ok(self.answer(text, ended))
    }

    pub(crate) async fn interrupted(mut self, so_far: String) -> Result<Answer, TurnError> {
        let message = with_note(Message::assistant(so_far), "[Interrupted.]");
        let text = message.text().into_owned();
        self.say(message).await?;
        Ok(self.answer(text, Ended::Interrupted))
    }

    pub(crate) async fn out_of_turns(mut self) -> Result<Answer, TurnError> {
        let text = format!(
            "I stopped after {} steps without coming to an end; what was done so far stays done. \
             Say “go on” and I will continue.",
            self.agent.limits.max_turns
        );
        self.say(Message::assistant(text.clone())).await?;
        Ok(self.answer(text, Ended::TurnLimit))
    }

    fn answer(mut self, text: String, ended: Ended) -> Answer {
        Answer {
            text,
            ended,
            messages: self.messages.split_off(self.own),
            usage: self.usage,
            unheard: self.turn.steer.take(),
        }
    }
}

/// The text of a result between its marks, each part by itself.
fn marked(tool: &str, parts: Vec<Part>) -> Vec<Part> {
    let marked = parts.into_iter().map(|part| match part {
        Part::Text { text } => {
            // The marks are ours, and the name is that of one of our tools.
            let text = Untrusted::wrap(tool, text.as_str()).into_text();
            Part::text(ModelText::assembled(text))
        }
        Part::Image(_) | Part::File(_) => part,
    });
    marked.collect()
}

/// The message with a note of ours below its text.
fn with_note(message: Message, note: &str) -> Message {
    let is_blank = message.text().trim().is_empty();
    let mut parts = match message {
        Message::Assistant { parts } => parts,
        Message::System { .. } | Message::User { .. } | Message::Tool { .. } => Vec::new(),
    };
    if is_blank {
        parts.retain(|part| part.as_text().is_none());
    }
    match parts.last_mut() {
        Some(AssistantPart::Text { text }) => {
            text.push_str("\n\n");
            text.push_str(note);
        }
        _ if is_blank => parts.push(AssistantPart::text(note)),
        _ => parts.push(AssistantPart::text(format!("\n\n{note}"))),
    }
    Message::Assistant { parts }
}

/// A name as the model wrote it may be anything.
fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

fn call_ids(messages: &[Message]) -> HashSet<CallId> {
    let calls = messages.iter().flat_map(Message::tool_calls);
    calls.map(|call| call.id.clone()).collect()
}

/// The place of what the turn is about: the next message, or the last that a person said.
fn request(input: Input<'_>, history: &[Message]) -> usize {
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    match input {
        Input::Says(_) => history.len(),
        Input::Resume => history.iter().rposition(is_user).unwrap_or(0),
    }
}
