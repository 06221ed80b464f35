//! One prompt: sent, listened to, brought to an end.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_agent::TokenUsage;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bounds::{MOST_PERMISSIONS_AT_ONCE, MOST_TOOL_CALLS};
use crate::connection::{AgentMessage, BegunRequest, ListeningTurn};
use crate::failure::AgentFailure;
use crate::permission::{PermissionAnswer, PermissionRequest, cancelled};
use crate::session::AgentSession;
use crate::supervisor::{AgentSupervisor, ReportedTool};
use crate::update::{PlanSummary, SessionUpdate, ToolNews, ToolStatus};
use crate::wire;

/// Hears what an agent says while it works. Nothing here is redacted.
pub(crate) trait PromptListener: Send {
    fn text(&mut self, piece: &str);
    fn thought(&mut self, _piece: &str) {}
    fn plan(&mut self, _plan: &PlanSummary) {}
    fn tool_started(&mut self, tool: &ReportedTool);
    fn tool_ended(&mut self, tool: &ReportedTool);
}

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptEnd {
    pub(crate) reason: StopReason,
    /// By the agent's word.
    pub(crate) usage: Option<TokenUsage>,
    /// What the session has cost in all, in dollars by the agent's word.
    pub(crate) cost: Option<f64>,
    /// The mode that it went to by itself.
    pub(crate) mode: Option<String>,
    /// A tool was at work when the agent was told to stop, or may have been, and may be still: by its own word, so
    /// nothing follows from a no.
    pub(crate) leaves_work: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Done,
    OutOfRoom,
    OutOfSteps,
    Refusal,
    Cancelled,
}

/// What is known of the prompt at work.
#[derive(Default)]
struct PromptState {
    updates: usize,
    permissions: usize,
    tools: HashMap<String, ReportedTool>,
    /// News of tools that were written down.
    noted: usize,
    /// Calls beyond those that are followed, each by the hash of its id. There are no more of them than updates.
    unfollowed: HashSet<u64>,
    cost: Option<f64>,
    mode: Option<String>,
    /// When the agent, told to stop, is ended.
    deadline: Option<Instant>,
    leaves_work: bool,
}

type Answering<'a> = BoxFuture<'a, (Value, Value)>;

impl AgentSession {
    /// Sends a prompt and listens until it has ended. Whatever fails, the agent is of no use afterwards
    /// unless the failure says otherwise.
    pub(crate) async fn prompt(
        &self,
        content: Vec<Value>,
        listener: &mut dyn PromptListener,
        supervisor: &dyn AgentSupervisor,
        stop: &CancellationToken,
    ) -> Result<PromptEnd, AgentFailure> {
        // Before the prompt leaves: what the agent says at once would find nobody, and be dropped.
        let turn = self.connection.listen(&self.id);
        let params = json!({"sessionId": self.id, "prompt": content});
        let asked = self.connection.begin("session/prompt", params).await?;
        let mut state = PromptState::default();
        let answer = self
            .attend((turn, asked), &mut state, (listener, supervisor), stop)
            .await;
        // However it ended: the record does not end at a bound without a word.
        if !state.unfollowed.is_empty() {
            supervisor.note_tool(&ReportedTool::unfollowed(
                &self.agent,
                state.unfollowed.len(),
            ));
        }
        read_end(&answer?, &state)
    }

    /// Listens until the prompt is answered.
    async fn attend(
        &self,
        (mut turn, mut asked): (ListeningTurn<'_>, BegunRequest<'_>),
        state: &mut PromptState,
        (listener, supervisor): (&mut dyn PromptListener, &dyn AgentSupervisor),
        stop: &CancellationToken,
    ) -> Result<Value, AgentFailure> {
        // Questions end with the prompt they belong to.
        let answers = stop.child_token();
        let mut asking: FuturesUnordered<Answering<'_>> = FuturesUnordered::new();
        let mut looking = interval(self.bounds.refusal_check);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let answer = loop {
            tokio::select! {
                // The stop first, and once: behind a flood of messages it would never be heard.
                // Then what was said, before the answer that ends the loop. Messages are bounded in
                // number, so the timers below come to their turn.
                biased;
                () = stop.cancelled(), if state.deadline.is_none() => {
                    self.cancel(state).await?;
                }
                Some(message) = turn.messages.recv() => {
                    let question = self.hear(message, state, listener, supervisor)?;
                    if let Some((id, request)) = question {
                        match state.may_ask(asking.len(), self.bounds.permissions) {
                            true => asking.push(ask(id, request, supervisor, &answers)),
                            false => {
                                let no = request.map_or_else(cancelled, |no| no.outcome(PermissionAnswer::Deny));
                                self.connection.send(wire::reply(&id, &no)).await?;
                            }
                        }
                    }
                }
                Some((id, outcome)) = asking.next(), if !asking.is_empty() => {
                    self.connection.send(wire::reply(&id, &outcome)).await?;
                    self.connection.note_sign();
                }
                answer = asked.answer() => break answer?,
                () = until(state.deadline) => return Err(AgentFailure::Silent {
                    seconds: self.bounds.grace.as_secs(),
                }),
                // Not while a person thinks: then it is the agent that waits.
                () = sleep_until(self.connection.last_sign() + self.bounds.silence), if asking.is_empty() => {
                    // Looked at again: the moment was computed when the loop came round, and the
                    // agent may have spoken since.
                    if self.connection.last_sign().elapsed() >= self.bounds.silence {
                        return Err(AgentFailure::Silent { seconds: self.bounds.silence.as_secs() });
                    }
                }
                _ = looking.tick() => supervisor.look_out().await,
            }
        };
        // What it said before it answered is before the answer.
        while let Ok(message) = turn.messages.try_recv() {
            self.hear(message, state, listener, supervisor)?;
        }
        Ok(answer)
    }

    async fn cancel(&self, state: &mut PromptState) -> Result<(), AgentFailure> {
        // Set before it is told: an agent that takes no more input is ended by it, too.
        state.deadline = Some(Instant::now() + self.bounds.grace);
        state.leaves_work = state.may_be_at_work();
        let params = json!({"sessionId": self.id});
        self.connection.notify("session/cancel", params).await
    }

    /// What the agent said; a question of its is handed back.
    fn hear(
        &self,
        message: AgentMessage,
        state: &mut PromptState,
        listener: &mut dyn PromptListener,
        supervisor: &dyn AgentSupervisor,
    ) -> Result<Option<(Value, Option<PermissionRequest>)>, AgentFailure> {
        state.updates += 1;
        if state.updates > self.bounds.updates {
            return Err(AgentFailure::Flood);
        }
        match message {
            AgentMessage::Permission { id, request } => return Ok(Some((id, request))),
            AgentMessage::Update(SessionUpdate::Text(piece)) => listener.text(&piece),
            AgentMessage::Update(SessionUpdate::Thought(piece)) => listener.thought(&piece),
            AgentMessage::Update(SessionUpdate::Plan(plan)) => listener.plan(&plan),
            AgentMessage::Update(SessionUpdate::Tool(news)) => {
                self.hear_of_tool(&news, state, listener, supervisor);
            }
            AgentMessage::Update(SessionUpdate::Cost(cost)) => state.cost = Some(cost),
            AgentMessage::Update(SessionUpdate::Mode(mode)) => state.mode = Some(mode),
            AgentMessage::Update(SessionUpdate::Other) => {}
        }
        Ok(None)
    }

    fn hear_of_tool(
        &self,
        news: &ToolNews,
        state: &mut PromptState,
        listener: &mut dyn PromptListener,
        supervisor: &dyn AgentSupervisor,
    ) {
        if !state.tools.contains_key(&news.id) {
            // Counted, and not shown. What such a call does is held by the sandbox like everything
            // else, and nobody knows when it ends.
            if state.tools.len() >= MOST_TOOL_CALLS {
                let mut hash = DefaultHasher::new();
                news.id.hash(&mut hash);
                state.unfollowed.insert(hash.finish());
                return;
            }
            let tool = ReportedTool::begun(&self.agent, news);
            state.noted += 1;
            supervisor.note_tool(&tool);
            listener.tool_started(&tool);
            state.tools.insert(news.id.clone(), tool);
        }
        let Some(tool) = state.tools.get_mut(&news.id) else {
            return;
        };
        let was_at_work = tool.is_at_work;
        tool.hear(news);
        // One that begins and ends again and again does not fill the record.
        if was_at_work && !tool.is_at_work && state.noted < 2 * MOST_TOOL_CALLS {
            state.noted += 1;
            supervisor.note_tool(tool);
            listener.tool_ended(tool);
        }
    }
}

impl PromptState {
    /// Whether a tool works, as far as the agent says so. Of a call that is not followed nobody knows it.
    fn may_be_at_work(&self) -> bool {
        !self.unfollowed.is_empty() || self.tools.values().any(|tool| tool.is_at_work)
    }

    /// Whether a person is asked once more, while so many questions wait. A storm of them is declined.
    fn may_ask(&mut self, asking: usize, most: usize) -> bool {
        // Counted also when it is declined, or a storm would go on for as long as each is declined
        // at once.
        self.permissions += 1;
        self.deadline.is_none() && asking < MOST_PERMISSIONS_AT_ONCE && self.permissions <= most
    }
}

/// Asks a person; what the agent is told.
fn ask<'a>(
    id: Value,
    request: Option<PermissionRequest>,
    supervisor: &'a dyn AgentSupervisor,
    stop: &'a CancellationToken,
) -> Answering<'a> {
    async move {
        let Some(request) = request else {
            return (id, cancelled());
        };
        let answer = supervisor.ask(&request, stop).await;
        let outcome = match stop.is_cancelled() {
            true => cancelled(),
            false => request.outcome(answer),
        };
        (id, outcome)
    }
    .boxed()
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

fn read_end(answer: &Value, state: &PromptState) -> Result<PromptEnd, AgentFailure> {
    let reason = match answer.get("stopReason").and_then(Value::as_str) {
        Some("end_turn") => StopReason::Done,
        Some("max_tokens") => StopReason::OutOfRoom,
        Some("max_turn_requests") => StopReason::OutOfSteps,
        Some("refusal") => StopReason::Refusal,
        Some("cancelled") => StopReason::Cancelled,
        _ => {
            return Err(AgentFailure::Unreadable {
                method: "session/prompt".to_owned(),
            });
        }
    };
    Ok(PromptEnd {
        reason,
        usage: answer.get("usage").and_then(usage),
        cost: state.cost,
        mode: state.mode.clone(),
        // Also one that began after the stop.
        leaves_work: state.leaves_work || state.may_be_at_work(),
    })
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let (read, written) = (count("inputTokens")?, count("outputTokens")?);
    let cached = count("cachedReadTokens").unwrap_or(0);
    let cache_write = count("cachedWriteTokens").unwrap_or(0);
    Some(TokenUsage {
        // Here the cached part is not in the rest.
        input_tokens: read.saturating_add(cached).saturating_add(cache_write),
        output_tokens: written,
        cached_tokens: cached,
        cache_write_tokens: cache_write,
        reasoning_tokens: count("thoughtTokens").unwrap_or(0),
        cost: None,
    })
}

impl ReportedTool {
    fn begun(agent: &str, news: &ToolNews) -> Self {
        Self {
            agent: agent.to_owned(),
            id: news.id.clone(),
            kind: news.kind.clone().unwrap_or_else(|| "tool".to_owned()),
            title: news.title.clone().unwrap_or_default(),
            detail: news.detail.clone(),
            is_at_work: true,
            has_failed: false,
        }
    }

    /// What is written down in place of calls that are too many.
    fn unfollowed(agent: &str, calls: usize) -> Self {
        Self {
            agent: agent.to_owned(),
            id: "unfollowed".to_owned(),
            kind: "other".to_owned(),
            title: format!("{calls} more calls than are written down one by one"),
            detail: None,
            is_at_work: false,
            has_failed: false,
        }
    }

    fn hear(&mut self, news: &ToolNews) {
        if let Some(title) = &news.title {
            title.clone_into(&mut self.title);
        }
        if news.detail.is_some() {
            self.detail.clone_from(&news.detail);
        }
        if let Some(status) = news.status {
            self.is_at_work = status == ToolStatus::AtWork;
            self.has_failed = status == ToolStatus::Failed;
        }
    }
}
