//! A turn taken by somebody else's agent, in place of our own.

use std::pin::pin;

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{
    AgentTurn, Message, ModelText, TokenUsage, TurnAnswer, TurnEnding, TurnError, TurnInput,
    TurnTaker,
};
use hermetic_redact::Redactor;
use hermetic_store::{AgentSessionRows, AgentSettings};
use hermetic_tools::{ConversationTools, Held};
use hermetic_types::{Command, CommandInput};
use hermetic_warden::protocol::{PathAt, ReadRequest, WriteRequest};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::answer::{GrowingAnswer, TurnWords};
use crate::bounds::AgentBounds;
use crate::failure::AgentFailure;
use crate::leftovers::StandingProcesses;
use crate::program::AgentProgram;
use crate::prompt::StopReason;
use crate::running::{RunningAgent, RunningAgents};
use crate::session::{AgentSession, SessionOrigin};
use crate::settings_file;
use crate::stream::SandboxStream;
use crate::supervisor::AgentSupervisor;
use crate::turn_prompts::TurnEnd;
use crate::upload::upload_program;

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
    held: Held,
    origin: SessionOrigin,
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
            Some(Err(why)) => return self.failed(&turn, TurnWords::default(), &why).await,
            None => {
                let note = TurnWords::of("[Interrupted.]".to_owned());
                return ended(&turn, note, TurnEnding::Interrupted, TokenUsage::default()).await;
            }
        };
        let ReadyAgent {
            mut agent,
            held,
            origin,
        } = ready;
        let mut usage = TokenUsage::default();
        let unset = stop
            .run_until_cancelled(agent.session.set(&self.settings()))
            .await
            .unwrap_or_default();
        self.agents
            .note_offers(self.tools.conversation(), &agent.session);
        // Before the first prompt: what runs from here on and still does after a stop is the agent's.
        let standing = StandingProcesses::of(held.warden());
        let standing = stop.run_until_cancelled(standing).await.flatten();
        let worked = self
            .prompts(&turn, &mut agent, words, &mut growing, &mut usage, &stop)
            .await?;
        self.keep_or_end(agent, &worked, (standing, &held), &stop)
            .await;
        let mut said = growing.take();
        let is_silent = said.last.trim().is_empty();
        if origin == SessionOrigin::Lost {
            said.put_before(&self.does_not_remember());
        }
        for why in unset {
            said.put_before(&format!("[{why}.]"));
        }
        match worked {
            Ok(end) => {
                let (note, ending) = self.told(&end, is_silent, &stop);
                ended(&turn, said.with(&note), ending, usage).await
            }
            Err(_) if stop.is_cancelled() => {
                let said = said.with("[Interrupted.]");
                ended(&turn, said, TurnEnding::Interrupted, usage).await
            }
            Err(failure) => self.failed(&turn, said, &failure.to_string()).await,
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
                held,
                origin,
            });
        }
        // Each time before a start, not once: whatever ran inside may have changed them.
        let words = self.put_in(&held).await?;
        let mut command = Command::words(words);
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
        let opened = AgentSession::open(pipes, &self.program, place, self.bounds);
        let (session, origin) = self
            .looking_out(opened)
            .await
            .map_err(|failure| failure.to_string())?;
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
            held,
            origin,
        })
    }

    /// Does it, and tells of hosts that are refused meanwhile: an agent that cannot reach its model may hang as long
    /// as it is let.
    async fn looking_out<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut looking = interval(self.bounds.refusal_check);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = looking.tick() => self.supervisor.look_out().await,
            }
        }
    }

    /// Writes what it needs into the sandbox; the words that start it there.
    async fn put_in(&self, sandbox: &Held) -> Result<Vec<String>, String> {
        let home = self.home_in(sandbox).await?;
        self.write_files(sandbox, &home).await?;
        let placed = upload_program(sandbox.warden(), &home, &self.program).await;
        placed.map_err(not_started)
    }

    /// The home folder inside, where something is to be put there. Each image has its own.
    async fn home_in(&self, sandbox: &Held) -> Result<String, String> {
        if self.program.files.is_empty() && self.program.uploads.is_empty() {
            return Ok(String::new());
        }
        let home = sandbox
            .resolve("~")
            .await
            .map_err(|error| not_started(format!("its home could not be found: {error}")))?;
        String::from_utf8(home.path.0)
            .map_err(|_| not_started("its home has no name that could be written".to_owned()))
    }

    async fn write_files(&self, sandbox: &Held, home: &str) -> Result<(), String> {
        for file in &self.program.files {
            let at = PathAt::beneath(home, file.path.to_string_lossy().as_ref());
            let warden = sandbox.warden();
            let existing = async {
                let reader = warden
                    .read_file(ReadRequest::whole(at.clone()))
                    .await
                    .ok()?;
                // One that is too long is somebody's, and is taken for what cannot be read.
                let bytes = reader.collect(settings_file::MOST_BYTES).await.ok()?;
                Some(bytes.unwrap_or_else(|| b"?".to_vec()))
            };
            let existing = existing.await;
            let Some(content) = settings_file::merged(existing.as_deref(), &file.content) else {
                continue;
            };
            let mut write = WriteRequest::new(at);
            write.parents = true;
            let written = async {
                let mut open = warden.write_file(write).await?;
                open.write(content.as_bytes()).await?;
                open.finish().await
            };
            written.await.map_err(|error| {
                not_started(format!("its settings could not be written: {error}"))
            })?;
        }
        Ok(())
    }

    /// An agent that was told to stop is ended, with all that it started, where anything runs in its sandbox that
    /// did not before: some leave their tools running, and some say that they did not. Also where nobody can tell.
    async fn keep_or_end(
        &self,
        agent: RunningAgent,
        worked: &Result<TurnEnd, AgentFailure>,
        (standing, sandbox): (Option<StandingProcesses>, &Held),
        stop: &CancellationToken,
    ) {
        let (is_halted, leaves_work) = match worked {
            Ok(TurnEnd::With(end)) => (stop.is_cancelled(), end.leaves_work),
            Ok(TurnEnd::OutOfBudget { leaves_work, .. }) => (true, *leaves_work),
            Ok(TurnEnd::Refused { .. }) => (false, false),
            // It refused this one prompt and lives on. After any other failure it is dropped here,
            // which ends it.
            Err(failure) if failure.is_final() => return,
            Err(_) => (stop.is_cancelled(), false),
        };
        let stays = !is_halted
            || !leaves_work
                && match standing {
                    Some(standing) => standing.are_all(sandbox.warden()).await,
                    None => false,
                };
        if stays {
            self.agents.put_back(self.tools.conversation(), agent);
        } else {
            tracing::info!(
                agent = self.program.name,
                leaves_work,
                "an agent was ended after a stop: something of it may still run"
            );
        }
    }

    /// What stands behind an answer, and how the turn ended.
    fn told(
        &self,
        end: &TurnEnd,
        is_silent: bool,
        stop: &CancellationToken,
    ) -> (String, TurnEnding) {
        let name = &self.program.name;
        match end {
            TurnEnd::OutOfBudget { words, .. } | TurnEnd::Refused { words } => {
                (words.clone(), TurnEnding::BudgetReached)
            }
            TurnEnd::With(_) if stop.is_cancelled() => {
                ("[Interrupted.]".to_owned(), TurnEnding::Interrupted)
            }
            TurnEnd::With(end) => match end.reason {
                StopReason::Done if is_silent => (
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
        said: TurnWords,
        why: &str,
    ) -> Result<TurnAnswer, TurnError> {
        tracing::warn!(agent = self.program.name, why, "an agent gave no answer");
        let note = format!(
            "[{} {why}. What was done so far stays done.]",
            self.program.name
        );
        ended(
            turn,
            said.with(&note),
            TurnEnding::CutShort,
            TokenUsage::default(),
        )
        .await
    }

    fn does_not_remember(&self) -> String {
        let name = &self.program.name;
        format!("[{name} began a new session: it does not remember what was said to it before.]")
    }
}

fn not_started(why: String) -> String {
    AgentFailure::NotStarted(why).to_string()
}

/// The answer is in the journal when this returns.
async fn ended(
    turn: &AgentTurn<'_>,
    said: TurnWords,
    ended: TurnEnding,
    usage: TokenUsage,
) -> Result<TurnAnswer, TurnError> {
    let message = Message::assistant(said.last.clone());
    turn.journal.said(&message).await?;
    Ok(TurnAnswer {
        text: said.whole(),
        ended,
        messages: vec![message],
        usage,
        unheard: turn.steer.take(),
        notes: Vec::new(),
    })
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

impl std::fmt::Debug for SealedAgent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedAgent")
            .field("program", &self.program.name)
            .finish_non_exhaustive()
    }
}
