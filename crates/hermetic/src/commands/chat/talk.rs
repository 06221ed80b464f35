//! Turn after turn, until somebody leaves.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_acp::{AgentBounds, SealedAgent, SettingCommand};
use hermetic_agent::{
    AgentTurn, NoMeter, SteeringHandle, TurnAnswer, TurnEnding, TurnInput, TurnTaker, prompt,
};
use hermetic_gateway::{AgentTools, ConversationSandbox, KeyboardMemory, notes_in};
use hermetic_store::{AgentSettingKind, AgentSettings};
use hermetic_tools::{CommandRequest, TerminalOutcome, ToolWorkplace as _};
use hermetic_types::ConversationKey;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::book::ChatHistory;
use super::keyboard::PromptSign;
use super::line_editor::PROMPT;
use super::person::{InterruptibleEnd, PersonInput, TerminalPerson};
use super::screen::{ScreenManner, TurnScreen};
use super::supervisor::KeyboardSupervisor;
use super::typed::{TypedLine, help};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use hermetic_app::KeyboardChat;

const ASK_BEFORE_DESTROYING: &str = "This destroys the sandbox of this conversation with all files in it, \
    also those that were kept from before on another backend, and forgets what was said. Nothing of it \
    comes back. Type `/destroy yes` if you mean it; /new forgets what was said and keeps the files.";

const NOT_REMEMBERED: &str =
    "Nothing is remembered here: this was started by something that the agent runs.";

/// 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

pub(super) struct TerminalTalk<'a> {
    keyboard: &'a KeyboardChat,
    conversation: ConversationKey,
    book: ChatHistory,
    person: tokio::sync::Mutex<TerminalPerson>,
    /// The last line was `/destroy`, and was answered with a question.
    asked_to_destroy: AtomicBool,
    /// Whether files may be there from before.
    has_workspace: bool,
    notes: tokio::sync::OnceCell<Option<String>>,
    /// Lets the sandbox go while nobody types.
    _house: AbortOnDropHandle<()>,
}

impl<'a> TerminalTalk<'a> {
    pub(super) fn new(
        keyboard: &'a KeyboardChat,
        (conversation, has_workspace): (ConversationKey, bool),
        signs: mpsc::Receiver<PromptSign>,
    ) -> Result<Self, CommandFailure> {
        let person = TerminalPerson::new(keyboard.approvals.clone(), signs)?;
        let sandboxes = keyboard.sandboxes.clone();
        let reaper = async move { sandboxes.reap(CancellationToken::new()).await };
        Ok(Self {
            keyboard,
            book: ChatHistory::new(
                keyboard.history.clone(),
                conversation.clone(),
                keyboard.redactor.clone(),
            ),
            conversation,
            person: tokio::sync::Mutex::new(person),
            asked_to_destroy: AtomicBool::new(false),
            has_workspace,
            notes: tokio::sync::OnceCell::new(),
            _house: AbortOnDropHandle::new(tokio::spawn(reaper)),
        })
    }

    pub(super) async fn once(&self, text: &str) -> Result<ExitReason, CommandFailure> {
        let screen = self.screen(ScreenManner::OneShot);
        let InterruptibleEnd::With(answer) = self.say(text, &screen).await? else {
            return Ok(ExitReason::Passed(INTERRUPTED));
        };
        screen.close(&answer.text);
        Ok(match answer.ended {
            TurnEnding::Finished => ExitReason::Ok,
            TurnEnding::CutShort | TurnEnding::TurnLimit | TurnEnding::BudgetReached => {
                ExitReason::Failed
            }
            TurnEnding::Interrupted => ExitReason::Passed(INTERRUPTED),
        })
    }

    pub(super) async fn until_left(&self) -> Result<ExitReason, CommandFailure> {
        let screen = self.screen(ScreenManner::Conversation);
        screen.tell(&format!(
            "{}, backend: {}; /help tells what can be typed",
            self.who_answers(),
            self.keyboard.facts.backend
        ));
        self.person
            .lock()
            .await
            .listen(self.keyboard.line_history.clone());
        let edits = self.person.lock().await.edits();
        let mut asked = false;
        loop {
            if !edits {
                prompt_line();
            }
            let heard = self.person.lock().await.at_the_prompt().await;
            let line = match heard {
                PersonInput::Line(line) => line,
                PersonInput::Interrupt if asked => return Ok(ExitReason::Passed(INTERRUPTED)),
                PersonInput::Interrupt => {
                    asked = true;
                    screen.tell("\nCtrl-C once more leaves");
                    continue;
                }
                PersonInput::End => {
                    screen.tell("");
                    return Ok(ExitReason::Ok);
                }
            };
            asked = false;
            match Box::pin(self.obey(TypedLine::read(&line))).await {
                Ok(InterruptibleEnd::With(true)) => {}
                Ok(InterruptibleEnd::With(false)) => return Ok(ExitReason::Ok),
                Ok(InterruptibleEnd::Left) => return Ok(ExitReason::Passed(INTERRUPTED)),
                // The conversation goes on: what failed may work the next time.
                Err(failure) => crate::output::failure(failure.why()),
            }
        }
    }

    /// Nothing of the conversation stays.
    pub(super) async fn forget(&self) -> Result<(), CommandFailure> {
        self.start_anew().await?;
        self.keyboard
            .sandboxes
            .reset(&self.conversation)
            .await
            .map_err(|error| CommandFailure::caused(&error, "`hermetic sandbox list` shows it"))
    }

    /// What was said, and what was allowed for this session.
    async fn start_anew(&self) -> Result<(), CommandFailure> {
        self.book.clear().await?;
        self.keyboard.running_agents.end(&self.conversation);
        self.keyboard
            .agent_sessions
            .forget(&self.conversation)
            .await?;
        self.keyboard.approvals.revoke(&self.conversation).await?;
        Ok(())
    }

    /// Whether there is more to come.
    async fn obey(&self, typed: TypedLine) -> Result<InterruptibleEnd<bool>, CommandFailure> {
        let screen = self.screen(ScreenManner::Conversation);
        // A yes counts right after the question.
        let asked_before = self.asked_to_destroy.swap(false, Ordering::Relaxed);
        match typed {
            TypedLine::Nothing => {}
            TypedLine::Leave => return Ok(InterruptibleEnd::With(false)),
            TypedLine::Help => screen.tell(&help()),
            TypedLine::Status => screen.tell(&self.status().await),
            TypedLine::Model(wanted) => {
                screen.tell(&self.setting(AgentSettingKind::Model, &wanted).await?);
            }
            TypedLine::Mode(wanted) => {
                screen.tell(&self.setting(AgentSettingKind::Mode, &wanted).await?);
            }
            TypedLine::Whoami => screen.tell(&format!(
                "{}, at the keyboard of this machine: whoever sits here may approve",
                crate::by_hand::who()
            )),
            TypedLine::InChats(instead) => screen.tell(instead),
            TypedLine::Memory(words) => match &self.keyboard.memory {
                Some(memory) => screen.tell(memory.obey(&words).await?.as_str()),
                None => screen.tell(NOT_REMEMBERED),
            },
            TypedLine::Skills => match &self.keyboard.memory {
                Some(memory) => screen.tell(memory.skills().await.as_str()),
                None => screen.tell(NOT_REMEMBERED),
            },
            TypedLine::Unknown { name, line } => match self.called_skill(&line).await {
                Some(words) => return self.answer(&words, &screen).await,
                None => screen.tell(&format!(
                    "There is no {name} here. /help lists what there is."
                )),
            },
            TypedLine::New => {
                self.start_anew().await?;
                screen.tell("A fresh conversation. The files in its sandbox stay.");
            }
            TypedLine::Destroy(word) => {
                let asked = asked_before || !self.keyboard.confirm_destructive;
                if !asked
                    || !(word == "yes" || word.is_empty() && !self.keyboard.confirm_destructive)
                {
                    self.asked_to_destroy.store(true, Ordering::Relaxed);
                    screen.tell(ASK_BEFORE_DESTROYING);
                } else {
                    self.forget().await?;
                    screen.tell(
                        "The sandbox and its files are gone, and what was said is forgotten.",
                    );
                }
            }
            TypedLine::Sh(text) => return self.run(CommandRequest::shell(&text), &screen).await,
            TypedLine::Py(text) => return self.run(CommandRequest::python(&text), &screen).await,
            TypedLine::Says(text) => return self.answer(&text, &screen).await,
        }
        Ok(InterruptibleEnd::With(true))
    }

    async fn answer(
        &self,
        text: &str,
        screen: &TurnScreen,
    ) -> Result<InterruptibleEnd<bool>, CommandFailure> {
        match self.say(text, screen).await? {
            InterruptibleEnd::Left => Ok(InterruptibleEnd::Left),
            InterruptibleEnd::With(answer) => {
                screen.close(&answer.text);
                Ok(InterruptibleEnd::With(true))
            }
        }
    }

    /// What the workspace says about work in it. A conversation that is gone at its end has an empty one.
    async fn workspace_notes(&self) -> Option<String> {
        if !self.has_workspace {
            return None;
        }
        let read = self.notes.get_or_init(|| async {
            let own = ConversationSandbox::new(&self.keyboard.sandboxes, &self.conversation);
            let sandbox = own.sandbox().await.ok()?;
            notes_in(&sandbox, &self.keyboard.facts.workspace).await
        });
        read.await.clone()
    }

    async fn called_skill(&self, line: &str) -> Option<String> {
        let memory = self.keyboard.memory.as_ref()?;
        memory.called_skill(line).await
    }

    async fn status(&self) -> String {
        let facts = &self.keyboard.facts;
        let sandboxes = self.keyboard.sandboxes.reach_of(&self.conversation).await;
        let network = match sandboxes {
            None => "closed".to_owned(),
            Some(reach) if reach.allowed.is_empty() => "no host is allowed".to_owned(),
            Some(reach) => reach.allowed.join(", "),
        };
        format!(
            "conversation: {}\n{}\nbackend: {}\nnetwork: {network}",
            self.conversation,
            self.who_answers(),
            facts.backend
        )
    }

    fn who_answers(&self) -> String {
        match &self.keyboard.sealed {
            Some(agent) => format!("agent: {}", agent.name),
            None => format!("model: {}", self.keyboard.model),
        }
    }

    /// The mode or the model of somebody else's agent, where one answers; else what there is to say of ours.
    async fn setting(
        &self,
        kind: AgentSettingKind,
        wanted: &str,
    ) -> Result<String, CommandFailure> {
        let Some(agent) = &self.keyboard.sealed else {
            return Ok(match kind {
                AgentSettingKind::Model => self.keyboard.model.clone(),
                AgentSettingKind::Mode => {
                    "Our own agent answers here, and has no modes.".to_owned()
                }
            });
        };
        let command = SettingCommand {
            rows: &self.keyboard.agent_settings,
            agents: &self.keyboard.running_agents,
            conversation: &self.conversation,
            agent: &agent.name,
            kind,
        };
        Ok(match wanted.is_empty() {
            true => command.list().await?,
            false => command.choose(wanted).await?,
        })
    }

    /// What was chosen of somebody else's agent.
    async fn chosen(&self) -> Result<AgentSettings, CommandFailure> {
        let Some(agent) = &self.keyboard.sealed else {
            return Ok(AgentSettings::default());
        };
        let rows = &self.keyboard.agent_settings;
        Ok(rows.of(&self.conversation, &agent.name).await?)
    }

    /// What the agent is told before it answers: also what is remembered, and what the workspace says of itself.
    async fn turn_facts(&self, begins: bool) -> Result<prompt::PromptFacts, CommandFailure> {
        let mut facts = self.keyboard.facts.clone();
        if let Some(memory) = &self.keyboard.memory {
            (facts.character, facts.remembered) = memory.prompt(begins).await?;
        }
        if let Some(notes) = self.workspace_notes().await {
            facts.project_notes = false;
            facts.remembered.push(notes);
        }
        Ok(facts)
    }

    async fn say(
        &self,
        text: &str,
        screen: &TurnScreen,
    ) -> Result<InterruptibleEnd<TurnAnswer>, CommandFailure> {
        let (summary, history) = self.book.read().await?;
        let begins = history.is_empty() && summary.is_none();
        let facts = self.turn_facts(begins).await?;
        let system = self.keyboard.redactor.redact(prompt::system(&facts));
        let called = self.called_skill(text).await;
        let text = called.as_deref().unwrap_or(text);
        let own = ConversationSandbox::new(&self.keyboard.sandboxes, &self.conversation);
        let toolbox = self.keyboard.kit.toolbox(&own, &self.keyboard.asker);
        let toolbox = toolbox.showing_files(self.keyboard.agent.takes_files());
        let tools = AgentTools::new(toolbox, &own);
        let personal = self.keyboard.memory.as_ref().map(KeyboardMemory::tools);
        let tools = match &personal {
            Some(personal) => tools.with_personal(personal),
            None => tools,
        };
        let steer = SteeringHandle::default();
        let turn = AgentTurn {
            system: &system,
            summary: summary.as_ref(),
            history: &history,
            input: TurnInput::Says(text),
            media: &[],
            tools: &tools,
            journal: &self.book,
            observer: screen,
            steer: &steer,
            // Whoever sits at the keyboard holds the keys.
            meter: &NoMeter,
        };
        let stop = CancellationToken::new();
        let chosen = self.chosen().await?;
        let supervisor = KeyboardSupervisor {
            keyboard: self.keyboard,
            conversation: &self.conversation,
            screen,
        };
        let sealed = self.keyboard.sealed.clone().map(|program| SealedAgent {
            program,
            agents: &self.keyboard.running_agents,
            sessions: self.keyboard.agent_sessions.clone(),
            tools: self.keyboard.kit.toolbox(&own, &self.keyboard.asker),
            supervisor: &supervisor,
            workspace: self.keyboard.facts.workspace.clone(),
            redactor: &self.keyboard.redactor,
            shows_thoughts: self.keyboard.shows_thoughts,
            bounds: AgentBounds::default(),
            chosen: chosen.clone(),
        });
        let agent: &dyn TurnTaker = match &sealed {
            Some(sealed) => sealed,
            None => &self.keyboard.agent,
        };
        let taking = async {
            // The tools of MCP servers have to be known before the model is asked.
            if agent.calls_tools() {
                for notice in tools.prepare(&stop).await {
                    screen.aside(&notice);
                }
            }
            agent.take_turn(turn, stop.clone()).await
        };
        let taken = self.attended(taking, &stop, screen).await;
        if let Some(set_aside) = own.set_aside() {
            screen.tell(set_aside.trim_end());
        }
        let remedy = "look at model and its base_url with `hermetic config show model`";
        match taken {
            InterruptibleEnd::Left => Ok(InterruptibleEnd::Left),
            InterruptibleEnd::With(Ok(answer)) => Ok(InterruptibleEnd::With(answer)),
            InterruptibleEnd::With(Err(error)) => Err(CommandFailure::caused(&error, remedy)),
        }
    }

    async fn run(
        &self,
        request: CommandRequest,
        screen: &TurnScreen,
    ) -> Result<InterruptibleEnd<bool>, CommandFailure> {
        let own = ConversationSandbox::new(&self.keyboard.sandboxes, &self.conversation);
        let toolbox = self.keyboard.kit.toolbox(&own, &self.keyboard.asker);
        let stop = CancellationToken::new();
        let running = toolbox.run(request, &stop);
        let InterruptibleEnd::With(outcome) = self.attended(running, &stop, screen).await else {
            return Ok(InterruptibleEnd::Left);
        };
        if let Some(set_aside) = own.set_aside() {
            screen.tell(set_aside.trim_end());
        }
        match outcome {
            Ok(TerminalOutcome::Ran { output, code, .. }) => {
                screen.tell(output.as_str());
                if code != 0 {
                    screen.tell(&format!("exit code {code}"));
                }
            }
            Ok(TerminalOutcome::Failed { error }) => screen.tell(&format!("Not run: {error}")),
            Err(blocked) => screen.tell(&blocked.to_string()),
        }
        Ok(InterruptibleEnd::With(true))
    }

    async fn attended<T>(
        &self,
        work: impl Future<Output = T>,
        stop: &CancellationToken,
        screen: &TurnScreen,
    ) -> InterruptibleEnd<T> {
        self.person.lock().await.during(work, stop, screen).await
    }

    fn screen(&self, manner: ScreenManner) -> TurnScreen {
        TurnScreen::new(manner, self.keyboard.redactor.clone())
    }
}

fn prompt_line() {
    if std::io::stdin().is_terminal() {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(PROMPT.as_bytes());
        let _ = out.flush();
    }
}
