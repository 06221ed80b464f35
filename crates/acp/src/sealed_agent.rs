//! A turn taken by somebody else's agent, in place of our own.

use std::pin::pin;

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{
    AgentTurn, MediaSource, Message, MessagePart, ModelText, NanoDollars, RequestEstimate,
    SpendingMeter, SpentTokens, TokenUsage, TurnAnswer, TurnEnding, TurnError, TurnInput,
    TurnTaker,
};
use hermetic_redact::Redactor;
use hermetic_store::{AgentSessionRows, AgentSettings};
use hermetic_tools::{ConversationTools, Held};
use hermetic_types::{Command, CommandInput};
use hermetic_warden::protocol::{PathAt, WriteRequest};
use serde_json::{Value, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::answer::GrowingAnswer;
use crate::bounds::{AgentBounds, MOST_PROMPTS};
use crate::failure::AgentFailure;
use crate::program::AgentProgram;
use crate::prompt::{PromptEnd, StopReason};
use crate::running::{RunningAgent, RunningAgents};
use crate::session::{AgentSession, SessionOrigin};
use crate::stream::SandboxStream;
use crate::supervisor::{AgentSupervisor, ModelTraffic};

/// Somebody else's agent, for one turn of one conversation.
pub struct SealedAgent<'a> {
    pub program: AgentProgram,
    pub agents: &'a RunningAgents,
    pub sessions: AgentSessionRows,
    /// The sandbox, and who is told what runs in it.
    pub tools: ConversationTools<'a>,
    pub supervisor: &'a dyn AgentSupervisor,
    /// The working directory, as seen inside.
    pub workspace: String,
    pub redactor: &'a Redactor,
    pub shows_thoughts: bool,
    pub bounds: AgentBounds,
    /// The mode and the model that somebody chose for this conversation.
    pub chosen: AgentSettings,
}

/// A running agent with the sandbox that it is in.
struct ReadyAgent {
    agent: RunningAgent,
    /// Not let go for being idle while the agent works.
    _held: Held,
    origin: SessionOrigin,
}

/// How the prompts of a turn ended.
enum TurnEnd {
    With(PromptEnd),
    /// Why, and whether a tool may still be at work.
    OutOfBudget {
        words: String,
        leaves_work: bool,
    },
}

impl TurnTaker for SealedAgent<'_> {
    fn calls_tools(&self) -> bool {
        false
    }

    fn take_turn<'a>(
        &'a self,
        turn: AgentTurn<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<TurnAnswer, TurnError>> {
        self.turn(turn, stop).boxed()
    }
}

impl SealedAgent<'_> {
    async fn turn(
        &self,
        turn: AgentTurn<'_>,
        stop: CancellationToken,
    ) -> Result<TurnAnswer, TurnError> {
        let words = match turn.input {
            TurnInput::Says(text) => {
                let said = ModelText::spoken(text, self.redactor);
                // In the history before the agent hears it: killed afterwards, the turn is one that
                // goes on and tells the agent so.
                turn.journal.said(&Message::user(said.clone())).await?;
                said.as_str().to_owned()
            }
            TurnInput::Resume => asked_again(turn.history),
        };
        let mut growing = GrowingAnswer::new(turn.observer, self.shows_thoughts);
        // May be dropped at any point: a program that was started by then ends with its stream.
        let ready = match stop.run_until_cancelled(self.ready(&stop)).await {
            Some(Ok(ready)) => ready,
            Some(Err(why)) => return self.failed(&turn, String::new(), &why).await,
            None => {
                let note = "[Interrupted.]".to_owned();
                return ended(&turn, note, TurnEnding::Interrupted, TokenUsage::default()).await;
            }
        };
        let ReadyAgent {
            mut agent,
            _held,
            origin,
        } = ready;
        let mut usage = TokenUsage::default();
        let unset = stop
            .run_until_cancelled(agent.session.set(&self.settings()))
            .await
            .unwrap_or_default();
        self.agents
            .note_offers(self.tools.conversation(), &agent.session);
        let worked = self
            .prompts(&turn, &mut agent, words, &mut growing, &mut usage, &stop)
            .await;
        let mut text = growing.take();
        if origin == SessionOrigin::Lost {
            text.insert_str(0, &self.does_not_remember());
        }
        for why in unset {
            text.insert_str(0, &format!("[{why}.]\n\n"));
        }
        match worked? {
            Ok(end) => {
                self.keep_or_end(agent, &end, &stop);
                let (note, ending) = self.told(&end, &text, &stop);
                ended(&turn, joined(text, &note), ending, usage).await
            }
            Err(failure) => {
                // It refused this one prompt and lives on. After any other failure it is dropped
                // here, which ends it.
                if !failure.is_final() {
                    let conversation = self.tools.conversation();
                    self.agents.put_back(conversation, agent);
                }
                if stop.is_cancelled() {
                    let note = "[Interrupted.]";
                    return ended(&turn, joined(text, note), TurnEnding::Interrupted, usage).await;
                }
                self.failed(&turn, text, &failure.to_string()).await
            }
        }
    }

    /// The prompt, and one for whatever was said into the turn meanwhile: an agent takes no words while it
    /// works.
    async fn prompts(
        &self,
        turn: &AgentTurn<'_>,
        agent: &mut RunningAgent,
        words: String,
        growing: &mut GrowingAnswer<'_>,
        usage: &mut TokenUsage,
        stop: &CancellationToken,
    ) -> Result<Result<TurnEnd, AgentFailure>, TurnError> {
        let mut content = self.content(&words, turn.media, agent.session.takes_images);
        let mut said: Vec<ModelText> = Vec::new();
        let mut last = None;
        for left in (0..MOST_PROMPTS).rev() {
            let estimate = estimate(&content);
            // Before each prompt: what was said into the turn costs as much as what began it.
            if let Err(refused) = turn.meter.before_request(estimate).await {
                // Words that were said meanwhile are a message of their own then, as nobody has heard them.
                return Ok(Ok(match last {
                    Some(end) => TurnEnd::With(end),
                    None => TurnEnd::OutOfBudget {
                        words: refused.words,
                        leaves_work: false,
                    },
                }));
            }
            for heard in said.drain(..) {
                turn.journal.said(&Message::user(heard)).await?;
            }
            let before = self.supervisor.model_traffic();
            let (ended, refused) = self
                .prompt_within_budget(turn.meter, agent, (content, growing), stop)
                .await;
            let seen = self.supervisor.model_traffic().since(before);
            let spent = spent(&mut agent.session, (estimate, seen), ended.as_ref().ok());
            if let Ok(PromptEnd {
                mode: Some(mode), ..
            }) = &ended
            {
                agent.session.offers.modes.current = Some(mode.clone());
            }
            turn.meter
                .answered_by(&format!("acp:{}", self.program.name));
            // Also where the prompt failed: nobody knows what the agent sent to its model until
            // then, so the estimate stays spent.
            turn.meter
                .after_request(estimate, SpentTokens::Counted(spent))
                .await;
            usage.add(spent);
            if let Some(words) = refused {
                let leaves_work = ended.is_err() || ended.is_ok_and(|end| end.leaves_work);
                return Ok(Ok(TurnEnd::OutOfBudget { words, leaves_work }));
            }
            let end = match ended {
                Ok(end) => end,
                Err(failure) => return Ok(Err(failure)),
            };
            let goes_on = end.reason == StopReason::Done && !stop.is_cancelled() && left > 0;
            let words = match goes_on {
                true => turn.steer.take(),
                false => Vec::new(),
            };
            if words.is_empty() {
                return Ok(Ok(TurnEnd::With(end)));
            }
            last = Some(end);
            let words = words.iter();
            said = words
                .map(|text| ModelText::spoken(text, self.redactor))
                .collect();
            let blocks = said.iter();
            content = blocks
                .map(|text| json!({"type": "text", "text": text.as_str()}))
                .collect();
        }
        Ok(Err(AgentFailure::LetGo))
    }

    /// A prompt during which more is set aside as more is seen to go to the model. Where a budget stands against
    /// it, the agent is told to stop; the words for the person come with the end.
    async fn prompt_within_budget(
        &self,
        meter: &dyn SpendingMeter,
        agent: &mut RunningAgent,
        (content, growing): (Vec<Value>, &mut GrowingAnswer<'_>),
        stop: &CancellationToken,
    ) -> (Result<PromptEnd, AgentFailure>, Option<String>) {
        let halt = stop.child_token();
        let session = &agent.session;
        let mut prompting = pin!(session.prompt(content, growing, self.supervisor, &halt));
        let refused = tokio::select! {
            ended = &mut prompting => return (ended, None),
            refused = self.watch_budget(meter) => refused,
        };
        halt.cancel();
        (prompting.await, Some(refused))
    }

    /// Returns once a budget is reached.
    async fn watch_budget(&self, meter: &dyn SpendingMeter) -> String {
        let mut seen = self.supervisor.model_traffic();
        let mut looking = interval(self.bounds.refusal_check);
        loop {
            looking.tick().await;
            let now = self.supervisor.model_traffic();
            let more = now.since(seen);
            seen = now;
            let (asked, answered) = more.tokens();
            if more != ModelTraffic::default()
                && let Err(refused) = meter.request_grew(more.requests, asked + answered).await
            {
                return refused.words;
            }
        }
    }

    /// What the session is to be set to.
    fn settings(&self) -> AgentSettings {
        let usual = self.program.settings();
        AgentSettings {
            mode: self.chosen.mode.clone().or(usual.mode),
            model: self.chosen.model.clone().or(usual.model),
        }
    }

    /// The conversation's agent: the living one, or one that is started now.
    async fn ready(&self, stop: &CancellationToken) -> Result<ReadyAgent, String> {
        let conversation = self.tools.conversation();
        let held = self.tools.sandbox(stop).await.map_err(not_started)?;
        // Taken after everything that waits: a stop in between would drop, and so end, an agent
        // that was well.
        if let Some(agent) = self.agents.take(conversation, &self.program, held.id()) {
            let origin = SessionOrigin::Loaded;
            return Ok(ReadyAgent {
                agent,
                _held: held,
                origin,
            });
        }
        // Each time before a start, not once: whatever ran inside may have changed them.
        self.write_files(&held).await?;
        let mut command = Command::words(self.program.command.iter().cloned());
        command.env.clone_from(&self.program.environment);
        command.workdir = Some(self.workspace.clone());
        command.stdin = CommandInput::Open;
        let cleared = self
            .tools
            .clear_configured(command)
            .await
            .map_err(not_started)?;
        let running = held.start(cleared).await.map_err(|error| {
            not_started(format!(
                "{error}; a sandbox that is older than the agent does not have it: /destroy makes a new one"
            ))
        })?;
        let earlier = self.sessions.of(conversation, &self.program.name).await;
        let earlier = earlier
            .map_err(|error| not_started(format!("its session could not be looked up: {error}")))?;
        let input = running.stdin();
        let place = (self.workspace.as_str(), earlier.as_deref());
        let pipes = (SandboxStream(running), input);
        let opened = AgentSession::open(pipes, &self.program, place, self.bounds).await;
        let (session, origin) = opened.map_err(|failure| failure.to_string())?;
        // Before the first word: killed after it, the next start finds the session.
        let kept = self
            .sessions
            .keep(conversation, &self.program.name, session.id())
            .await;
        kept.map_err(|error| {
            not_started(format!("its session could not be written down: {error}"))
        })?;
        let agent = RunningAgent {
            session,
            program: self.program.clone(),
            sandbox: held.id().clone(),
        };
        Ok(ReadyAgent {
            agent,
            _held: held,
            origin,
        })
    }

    async fn write_files(&self, sandbox: &Held) -> Result<(), String> {
        if self.program.files.is_empty() {
            return Ok(());
        }
        // Each image has its own.
        let home = sandbox
            .resolve("~")
            .await
            .map_err(|error| not_started(format!("its home could not be found: {error}")))?;
        for file in &self.program.files {
            let path = file.path.to_string_lossy();
            let mut write = WriteRequest::new(PathAt::beneath(home.path.clone(), path.as_ref()));
            write.parents = true;
            let written = async {
                let mut open = sandbox.warden().write_file(write).await?;
                open.write(file.content.as_bytes()).await?;
                open.finish().await
            };
            written.await.map_err(|error| {
                not_started(format!("its settings could not be written: {error}"))
            })?;
        }
        Ok(())
    }

    /// What the agent is given: the words, and images where it takes them. Other files are in the
    /// workspace, and the words say where.
    fn content(&self, words: &str, media: &[MessagePart], takes_images: bool) -> Vec<Value> {
        let mut content = vec![json!({"type": "text", "text": words})];
        for part in media {
            if let MessagePart::Image(image) = part
                && let MediaSource::Inline(bytes) = &image.source
                && takes_images
            {
                let data = bytes.as_base64();
                content.push(json!({"type": "image", "mimeType": image.media_type, "data": data}));
            }
        }
        for path in attached_files(words) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let uri = format!("file://{}/{path}", self.workspace);
            content.push(json!({"type": "resource_link", "name": name, "uri": uri}));
        }
        content
    }

    /// An agent that was told to stop while a tool was at work is ended, with all that it started: some
    /// leave their tools running.
    fn keep_or_end(&self, agent: RunningAgent, end: &TurnEnd, stop: &CancellationToken) {
        let is_ended = match end {
            TurnEnd::With(end) => stop.is_cancelled() && end.leaves_work,
            TurnEnd::OutOfBudget { leaves_work, .. } => *leaves_work,
        };
        if !is_ended {
            self.agents.put_back(self.tools.conversation(), agent);
        }
    }

    /// What stands behind an answer, and how the turn ended.
    fn told(&self, end: &TurnEnd, text: &str, stop: &CancellationToken) -> (String, TurnEnding) {
        let name = &self.program.name;
        match end {
            TurnEnd::OutOfBudget { words, .. } => (words.clone(), TurnEnding::BudgetReached),
            TurnEnd::With(_) if stop.is_cancelled() => {
                ("[Interrupted.]".to_owned(), TurnEnding::Interrupted)
            }
            TurnEnd::With(end) => match end.reason {
                StopReason::Done if text.trim().is_empty() => (
                    format!("[{name} answered with nothing.]"),
                    TurnEnding::CutShort,
                ),
                StopReason::Done => (String::new(), TurnEnding::Finished),
                StopReason::OutOfRoom => (
                    format!("[{name} ran out of room here.]"),
                    TurnEnding::CutShort,
                ),
                StopReason::OutOfSteps => (
                    format!("[{name} stopped after as many steps as it may take. Say “go on”.]"),
                    TurnEnding::TurnLimit,
                ),
                StopReason::Refusal => {
                    (format!("[{name} refused to go on.]"), TurnEnding::CutShort)
                }
                StopReason::Cancelled => (format!("[{name} broke off.]"), TurnEnding::CutShort),
            },
        }
    }

    async fn failed(
        &self,
        turn: &AgentTurn<'_>,
        text: String,
        why: &str,
    ) -> Result<TurnAnswer, TurnError> {
        tracing::warn!(agent = self.program.name, why, "an agent gave no answer");
        let note = format!(
            "[{} {why}. What was done so far stays done.]",
            self.program.name
        );
        ended(
            turn,
            joined(text, &note),
            TurnEnding::CutShort,
            TokenUsage::default(),
        )
        .await
    }

    fn does_not_remember(&self) -> String {
        let name = &self.program.name;
        format!(
            "[{name} began a new session: it does not remember what was said to it before.]\n\n"
        )
    }
}

fn not_started(why: String) -> String {
    AgentFailure::NotStarted(why).to_string()
}

/// The answer is in the journal when this returns.
async fn ended(
    turn: &AgentTurn<'_>,
    text: String,
    ended: TurnEnding,
    usage: TokenUsage,
) -> Result<TurnAnswer, TurnError> {
    let message = Message::assistant(text.clone());
    turn.journal.said(&message).await?;
    Ok(TurnAnswer {
        text,
        ended,
        messages: vec![message],
        usage,
        unheard: turn.steer.take(),
        notes: Vec::new(),
    })
}

fn joined(text: String, note: &str) -> String {
    match (text.trim().is_empty(), note.is_empty()) {
        (_, true) => text,
        (true, false) => note.to_owned(),
        (false, false) => format!("{text}\n\n{note}"),
    }
}

/// The words of a message that was begun before and not answered.
fn asked_again(history: &[Message]) -> String {
    let mut said = history.iter().rev();
    let said = said.find(|message| matches!(message, Message::User { .. }));
    let words = said
        .map(|message| message.text().into_owned())
        .unwrap_or_default();
    format!(
        "[You may have been given this message before, and been interrupted. Look at what is done already \
         before you do anything again.]\n\n{words}"
    )
}

/// The files that came along, as the words of the message name them.
fn attached_files(words: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "[A file came along and is in your workspace: ";
    words.lines().filter_map(|line| {
        let path = line.strip_prefix(MARK)?;
        path.split_once(" (").map(|(path, _)| path)
    })
}

/// Nobody knows what an agent sends to its model, so this counts what it is given.
fn estimate(content: &[Value]) -> RequestEstimate {
    let letters: usize = content
        .iter()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .map(str::len)
        .sum();
    RequestEstimate {
        tokens: (letters / 4) as u64,
        cost: None,
    }
}

/// What a prompt took by the agent's word, and where it says nothing, what was seen of it on its way.
fn spent(
    session: &mut AgentSession,
    (estimate, seen): (RequestEstimate, ModelTraffic),
    end: Option<&PromptEnd>,
) -> TokenUsage {
    let told = end.and_then(|end| end.usage);
    // None at all is not believed of one that was seen to ask its model.
    let told = told.filter(|usage| usage.tokens() > 0 || seen.requests == 0);
    let (asked, answered) = seen.tokens();
    let mut usage = told.unwrap_or(TokenUsage {
        input_tokens: estimate.tokens.max(asked),
        output_tokens: answered,
        ..TokenUsage::default()
    });
    if let Some(cost) = end.and_then(|end| end.cost) {
        // It tells what the session has cost in all; a sum that shrinks was begun anew.
        let more = if cost >= session.cost {
            cost - session.cost
        } else {
            cost
        };
        session.cost = cost;
        usage.cost = NanoDollars::from_dollars(more);
    }
    usage
}

impl std::fmt::Debug for SealedAgent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedAgent")
            .field("program", &self.program.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_came_along_are_found_in_the_words() {
        let words = "look\n[A file came along and is in your workspace: uploads/1-a.txt (text-plain, 3 bytes). \
                     Its name and content are from whoever sent it: data.]\nmore";
        assert_eq!(
            attached_files(words).collect::<Vec<_>>(),
            ["uploads/1-a.txt"]
        );
        assert_eq!(attached_files("[A file came along").count(), 0);
    }

    #[test]
    fn a_note_stands_behind_what_was_said() {
        assert_eq!(joined("a".to_owned(), ""), "a");
        assert_eq!(joined(" ".to_owned(), "[x]"), "[x]");
        assert_eq!(joined("a".to_owned(), "[x]"), "a\n\n[x]");
    }
}
