//! A turn under way: its messages so far, and the steps it is made of.

use std::borrow::Cow;
use std::collections::HashSet;

use futures::future::join;
use futures::stream::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::compaction::{FoldedLines, HistoryCompactor, MANY_MESSAGES, cut};
use crate::reply::ModelReply;
use crate::schema;
use crate::spending::{tokens_in, usage_of};
use crate::turn::AgentTurn;
use crate::{
    Agent, AssistantPart, CallId, CompactionError, FinishReason, HistorySummary, JournalError,
    LengthNote, Message, MessagePart, ModelError, ModelRequest, ModelText, ReplyDelta,
    RequestEstimate, SpendingRefused, SpentTokens, TokenUsage, ToolCall, ToolInvocation,
    ToolResult, ToolSpec, TurnAnswer, TurnEnding, TurnError, TurnInput, UntrustedOutput, trim,
};

/// A turn under way.
pub(crate) struct RunningTurn<'a> {
    agent: &'a Agent,
    turn: AgentTurn<'a>,
    pub(crate) stop: CancellationToken,
    offered: Vec<ToolSpec>,
    /// What stands for all before the messages.
    summary: Option<HistorySummary>,
    /// The history and what this turn added.
    messages: Vec<Message>,
    /// Where this turn's own messages start.
    own: usize,
    /// What this turn is about.
    request: usize,
    /// Ids that calls of this conversation have already.
    pub(crate) taken: HashSet<CallId>,
    pub(crate) usage: TokenUsage,
    /// What this turn added and a summary stands for by now.
    folded: Vec<Message>,
    /// The last request that was answered: its tokens, and the messages it was made of.
    measured: Option<(usize, usize)>,
    /// No summary could be had in this turn.
    gave_up: bool,
    notes: Vec<LengthNote>,
}

pub(crate) enum UnansweredRequest {
    Stopped { so_far: String },
    TooDear(SpendingRefused),
    Failed(ModelError),
}

impl<'a> RunningTurn<'a> {
    pub(crate) fn new(agent: &'a Agent, turn: AgentTurn<'a>, stop: CancellationToken) -> Self {
        let offered = turn.tools.specs();
        let mut messages = Vec::with_capacity(turn.history.len() + 2);
        messages.extend_from_slice(turn.history);
        Self {
            agent,
            turn,
            stop,
            offered,
            own: messages.len(),
            request: request(turn.input, &messages),
            taken: call_ids(&messages),
            summary: turn.summary.cloned(),
            messages,
            usage: TokenUsage::default(),
            folded: Vec::new(),
            measured: None,
            gave_up: false,
            notes: Vec::new(),
        }
    }

    pub(crate) async fn say(&mut self, message: Message) -> Result<(), JournalError> {
        // Written down before it counts here: a model that has seen it cannot unsee it after a
        // crash.
        self.turn.journal.said(&message).await?;
        self.messages.push(message);
        Ok(())
    }

    /// Asks the model. A conversation that fills much of its window is summarised first; where that fails,
    /// or is not enough, the model is shown less of it each time it says that there is too much.
    pub(crate) async fn ask(&mut self) -> Result<ModelReply, UnansweredRequest> {
        if self.is_due() {
            self.compact().await?;
        }
        let mut budget = self.agent.budget();
        let mut shorter = 3;
        let mut tried_without_media = false;
        let spares_media =
            self.messages.iter().any(Message::has_media) && self.agent.spares_media();
        loop {
            let mut shown = vec![Message::system(self.turn.system.clone())];
            shown.extend(self.summary.iter().map(HistorySummary::message));
            let summary: usize = self.summary.iter().map(HistorySummary::size).sum();
            let trimmed = trim(&self.messages, self.request, budget.beside(summary));
            let left_out = matches!(trimmed, Cow::Owned(_));
            shown.extend_from_slice(&trimmed);
            drop(trimmed);
            let most = match spares_media || tried_without_media {
                true => None,
                false => Some(MOST_MEDIA),
            };
            bound_media(&mut shown, most);
            match self.ask_with(&shown).await {
                // The words of such refusals differ; that it is taken without them says it.
                Err(UnansweredRequest::Failed(ModelError::Refused { model, detail, .. }))
                    if shown.iter().any(Message::has_media) && !tried_without_media =>
                {
                    tracing::info!(model, detail, "asking without images and files");
                    tried_without_media = true;
                    self.turn.observer.restarted();
                }
                Err(UnansweredRequest::Failed(ModelError::ContextTooLong { model, detail }))
                    if shorter > 0 =>
                {
                    tracing::info!(model, detail, "the conversation is too long");
                    shorter -= 1;
                    // Learnt for all turns of this model: the next one is shortened before it is
                    // refused.
                    self.agent.learn_window(&model, &detail);
                    self.turn.observer.restarted();
                    if !self.gave_up && self.compact().await? {
                        budget = budget.min(self.agent.budget());
                    } else {
                        budget = budget.min(self.agent.budget()).halved_for(&shown);
                    }
                }
                Ok(reply) => {
                    let is_own = reply
                        .model
                        .as_deref()
                        .is_none_or(|model| model == self.agent.model_name());
                    // Only now that it was taken without them: the same refusal may have meant
                    // something else. What another takes, to which that one gave way, says nothing.
                    if is_own && tried_without_media {
                        self.agent.media_refused();
                    } else if is_own && shown.iter().any(Message::has_media) {
                        self.agent.media_taken();
                    }
                    if left_out && !self.notes.contains(&LengthNote::LeftOut) {
                        self.notes.push(LengthNote::LeftOut);
                    }
                    let tokens = reply.answer_usage().input_tokens;
                    self.measured = (!left_out && tokens > 0)
                        .then(|| (usize::try_from(tokens).unwrap_or(0), self.messages.len()));
                    return Ok(reply);
                }
                other => return other,
            }
        }
    }

    /// Whether the conversation fills so much of the window that it is to be summarised.
    fn is_due(&self) -> bool {
        let percent = usize::from(self.agent.compaction.threshold_percent);
        if percent == 0 || self.gave_up {
            return false;
        }
        if self.messages.len() >= MANY_MESSAGES {
            return true;
        }
        let size = |messages: &[Message]| messages.iter().map(Message::size).sum::<usize>();
        let tokens = |bytes| usize::try_from(tokens_in(bytes)).unwrap_or(usize::MAX);
        let offered = usage_of(
            ModelRequest {
                messages: &[],
                tools: &self.offered,
            },
            None,
        );
        let offered = usize::try_from(offered.input_tokens).unwrap_or(0);
        let system = self.turn.system.as_str().len();
        let threshold = self.agent.window() / 100 * percent;
        // What no summary makes shorter fills it alone: each turn would pay for one, for nothing.
        if tokens(system) + offered >= threshold {
            return false;
        }
        let estimate = match self.measured {
            // By the provider's own count as far as it goes.
            Some((measured, upto)) => measured + tokens(size(&self.messages[upto..])),
            None => {
                let summary: usize = self.summary.iter().map(HistorySummary::size).sum();
                tokens(system + summary + size(&self.messages)) + offered
            }
        };
        estimate >= threshold
    }

    /// Summarises what it can; whether it did. That it fails is no failure of the turn.
    async fn compact(&mut self) -> Result<bool, UnansweredRequest> {
        let (agent, must_stay) = (self.agent, self.must_stay());
        let is_wanted = agent.compaction.threshold_percent > 0;
        let cut = cut(&self.messages, must_stay, agent.window(), &agent.compaction);
        let Some(cut) = cut.filter(|_| is_wanted) else {
            // Nothing to fold at this step; there may be at the next.
            return Ok(false);
        };
        let compactor = HistoryCompactor {
            agent,
            journal: self.turn.journal,
            meter: self.turn.meter,
            stop: &self.stop,
        };
        let folding = FoldedLines {
            summary: self.summary.as_ref(),
            messages: &self.messages,
            cut,
        };
        match compactor.fold(folding).await {
            Ok((summary, usage)) => {
                self.usage.add(usage);
                self.apply(summary, cut);
                Ok(true)
            }
            Err(CompactionError::Stopped) => Err(UnansweredRequest::Stopped {
                so_far: String::new(),
            }),
            Err(error) => {
                tracing::warn!(%error, "a long conversation was not summarised");
                self.gave_up = true;
                self.notes.push(LengthNote::NotSummarised {
                    why: error.for_chat(),
                });
                Ok(false)
            }
        }
    }

    fn apply(&mut self, summary: HistorySummary, cut: usize) {
        let messages = cut;
        let mut folded: Vec<_> = self.messages.drain(..cut).collect();
        if cut > self.own {
            self.folded.extend(folded.drain(self.own..));
        }
        self.own = self.own.saturating_sub(cut);
        self.request = self.request.saturating_sub(cut);
        self.summary = Some(summary);
        self.measured = None;
        self.notes.push(LengthNote::Summarised { messages });
    }

    /// The last message that may be the first to stay: what the model said last in this turn, or what the
    /// turn is about. Whoever goes on with this turn after a crash finds it by one of those.
    fn must_stay(&self) -> usize {
        let is_assistant = |message: &Message| matches!(message, Message::Assistant { .. });
        let begins = match self.turn.input {
            TurnInput::Says(_) => self.own,
            // Some of the history is this turn's, and the last words may have been said into it.
            TurnInput::Resume => 0,
        };
        let last = self.messages[begins..].iter().rposition(is_assistant);
        last.map_or(self.request, |last| begins + last)
    }

    async fn ask_with(&self, messages: &[Message]) -> Result<ModelReply, UnansweredRequest> {
        let ask = ModelRequest {
            messages,
            tools: &self.offered,
        };
        let meter = self.turn.meter;
        let estimate = RequestEstimate::of(ask, self.agent.model.price());
        let refused = meter.before_request(estimate).await;
        refused.map_err(UnansweredRequest::TooDear)?;
        let price = self.agent.model.price();
        let mut reply = ModelReply::new(usage_of(ask, price), price);
        let outcome = self.read_reply(ask, &mut reply).await;
        meter.answered_by(reply.model.as_deref().unwrap_or(self.agent.model.name()));
        meter.after_request(estimate, spent(&outcome, &reply)).await;
        outcome.map(|()| reply)
    }

    async fn read_reply(
        &self,
        ask: ModelRequest<'_>,
        reply: &mut ModelReply,
    ) -> Result<(), UnansweredRequest> {
        let mut deltas = self.agent.model.complete(ask, self.stop.clone());
        loop {
            let next = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(UnansweredRequest::Stopped { so_far: reply.text() }),
                next = deltas.next() => next,
            };
            match next {
                Some(Ok(delta)) => {
                    match &delta {
                        ReplyDelta::Text(piece) => self.turn.observer.text(piece),
                        ReplyDelta::Restarted => self.turn.observer.restarted(),
                        ReplyDelta::ToolCall(_)
                        | ReplyDelta::Opaque(_)
                        | ReplyDelta::Thinking(_)
                        | ReplyDelta::Usage(_)
                        | ReplyDelta::GaveWay(_)
                        | ReplyDelta::Finish(_) => {}
                    }
                    reply.take(delta);
                    if reply.finish.is_some() {
                        return Ok(());
                    }
                }
                Some(Err(ModelError::Stopped)) => {
                    return Err(UnansweredRequest::Stopped {
                        so_far: reply.text(),
                    });
                }
                Some(Err(error)) => return Err(UnansweredRequest::Failed(error)),
                None => {
                    let model = self.agent.model.name().to_owned();
                    return Err(UnansweredRequest::Failed(ModelError::Cut { model }));
                }
            }
        }
    }

    /// Runs one call and records its result. Every call gets one, whatever happens.
    pub(crate) async fn run(&mut self, call: &ToolCall) -> Result<(), JournalError> {
        let result = match self.check(call) {
            // It quotes nothing but the schema and what the model wrote.
            Err(complaint) => ToolResult::failed(ModelText::assembled(complaint)),
            // Each call gets a result, also one that does not run: the providers refuse a call
            // without one in all requests that follow.
            Ok(_) if self.stop.is_cancelled() => {
                ToolResult::failed("not run: the turn was interrupted first.")
            }
            Ok(arguments) => {
                // Before it is written down as begun: what is refused never ran.
                if let Err(refused) = self.turn.meter.before_tool().await {
                    let words = format!("not run: {refused}");
                    return self
                        .end_call(call, ToolResult::failed(ModelText::assembled(words)))
                        .await;
                }
                // On the disk before the first side effect. What cannot be written down does not
                // run. Making ready is none: it takes its time beside that.
                let written = self.turn.journal.tool_about_to_run(call);
                let (written, ()) = join(written, self.make_ready_within_grace(call)).await;
                written?;
                self.turn.observer.tool_started(call);
                let invocation = ToolInvocation {
                    id: &call.id,
                    name: &call.name,
                    arguments: &arguments,
                };
                let started = Instant::now();
                let result = self.call_within_grace(invocation).await;
                self.turn.meter.after_tool(started.elapsed()).await;
                self.turn.observer.tool_ended(call, &result);
                ToolResult {
                    parts: marked(&call.name, result.parts),
                    ..result
                }
            }
        };
        self.end_call(call, result).await
    }

    async fn end_call(&mut self, call: &ToolCall, result: ToolResult) -> Result<(), JournalError> {
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
        // The last of a name, as ever: what is added later may stand for what was there.
        let mut offered = self.offered.iter().rev();
        let Some(spec) = offered.find(|spec| *spec.name == call.name) else {
            let known: Vec<_> = self.offered.iter().map(|spec| &*spec.name).collect();
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

    async fn make_ready_within_grace(&self, call: &ToolCall) {
        let ready = self
            .turn
            .tools
            .make_ready(&call.name, self.stop.child_token());
        tokio::select! {
            () = ready => {}
            () = self.overdue() => {}
        }
    }

    /// Ends when the turn was told to stop and the grace period is over.
    async fn overdue(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.agent.limits.grace).await;
    }

    /// A tool that was told to stop and does not is left to itself after the grace period.
    async fn call_within_grace(&self, invocation: ToolInvocation<'_>) -> ToolResult {
        tokio::select! {
            // The tool first: one that ended in the very moment in which patience did has a result
            // that is known.
            biased;
            result = self.turn.tools.call(invocation, self.stop.child_token()) => result,
            () = self.overdue() => ToolResult::failed("interrupted; it did not end in time and may or may not have happened."),
        }
    }

    /// The model's last message of this turn, with a note where it did not come to its end.
    pub(crate) async fn finished(
        mut self,
        message: Message,
        finish: Option<FinishReason>,
    ) -> Result<TurnAnswer, TurnError> {
        let text = message.text();
        let (note, ended) = match finish {
            Some(FinishReason::Length) => {
                ("[The model ran out of room here.]", TurnEnding::CutShort)
            }
            Some(FinishReason::Filtered) => (
                "[The provider of the model withheld the rest.]",
                TurnEnding::CutShort,
            ),
            Some(FinishReason::Done) | None if text.trim().is_empty() => {
                ("[The model answered with nothing.]", TurnEnding::CutShort)
            }
            Some(FinishReason::Done) | None => ("", TurnEnding::Finished),
        };
        let message = match note {
            "" => message,
            note => with_note(message, note),
        };
        let text = message.text().into_owned();
        self.say(message).await?;
        Ok(self.answer(text, ended))
    }

    pub(crate) async fn interrupted(mut self, so_far: String) -> Result<TurnAnswer, TurnError> {
        let message = with_note(Message::assistant(so_far), "[Interrupted.]");
        let text = message.text().into_owned();
        self.say(message).await?;
        Ok(self.answer(text, TurnEnding::Interrupted))
    }

    pub(crate) async fn out_of_turns(mut self) -> Result<TurnAnswer, TurnError> {
        let text = format!(
            "I stopped after {} steps without coming to an end; what was done so far stays done. \
             Say “go on” and I will continue.",
            self.agent.limits.max_turns
        );
        self.say(Message::assistant(text.clone())).await?;
        Ok(self.answer(text, TurnEnding::TurnLimit))
    }

    pub(crate) async fn out_of_budget(
        mut self,
        refused: SpendingRefused,
    ) -> Result<TurnAnswer, TurnError> {
        let text = refused.words;
        self.say(Message::assistant(text.clone())).await?;
        Ok(self.answer(text, TurnEnding::BudgetReached))
    }

    fn answer(mut self, text: String, ended: TurnEnding) -> TurnAnswer {
        let mut messages = self.folded;
        messages.extend(self.messages.split_off(self.own));
        TurnAnswer {
            text,
            ended,
            messages,
            usage: self.usage,
            unheard: self.turn.steer.take(),
            notes: self.notes,
        }
    }
}

/// Bytes of images and files that the model is shown with one request, in base64.
const MOST_MEDIA: usize = 6 << 20;

/// Names images and files instead of showing them: all of them, or those before the newest that fit.
fn bound_media(messages: &mut [Message], most: Option<usize>) {
    let mut room = most;
    for message in messages.iter_mut().rev() {
        let (Message::User { parts } | Message::Tool { parts, .. }) = message else {
            continue;
        };
        for part in parts.iter_mut().rev() {
            if let MessagePart::Image(media) | MessagePart::File(media) = part {
                room = room.and_then(|room| room.checked_sub(media.inline_length()));
                if room.is_none() {
                    *part = MessagePart::text(ModelText::assembled(media.described()));
                }
            }
        }
    }
}

/// The text of a result between its marks, each part by itself.
fn marked(tool: &str, parts: Vec<MessagePart>) -> Vec<MessagePart> {
    let marked = parts.into_iter().map(|part| match part {
        MessagePart::Text { text } => {
            // The marks are ours, and the name is that of one of our tools.
            let text = UntrustedOutput::wrap(tool, text.as_str()).into_text();
            MessagePart::text(ModelText::assembled(text))
        }
        MessagePart::Image(_) | MessagePart::File(_) => part,
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
fn request(input: TurnInput<'_>, history: &[Message]) -> usize {
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    match input {
        TurnInput::Says(_) => history.len(),
        TurnInput::Resume => history.iter().rposition(is_user).unwrap_or(0),
    }
}

/// What a request came to, from what is known of it.
fn spent(outcome: &Result<(), UnansweredRequest>, reply: &ModelReply) -> SpentTokens {
    match outcome {
        Err(UnansweredRequest::TooDear(_)) => SpentTokens::Nothing,
        Err(UnansweredRequest::Failed(error)) => reply.spent_by_failure(error),
        Ok(()) | Err(UnansweredRequest::Stopped { .. }) => SpentTokens::Counted(reply.usage()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MOST_INLINE, MediaPart};

    #[test]
    fn of_many_images_the_newest_are_shown_and_the_others_are_named() {
        let image = MediaPart::inline("image/png", &vec![0; MOST_INLINE]).unwrap();
        let with_image = |_| Message::User {
            parts: vec![MessagePart::Image(image.clone())],
        };
        let mut messages: Vec<_> = (0..9).map(with_image).collect();
        bound_media(&mut messages, Some(MOST_MEDIA));
        let shown: Vec<_> = messages.iter().map(Message::has_media).collect();
        // A third more in base64.
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 4);
        assert!(shown[5..].iter().all(|shown| *shown), "{shown:?}");
        assert!(messages[0].text().contains("not shown"));
        bound_media(&mut messages, None);
        assert!(!messages.iter().any(Message::has_media));
    }
}
