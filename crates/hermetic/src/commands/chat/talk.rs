//! Turn after turn, until somebody leaves.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_agent::{Answer, Ended, Input, Steer, Turn, prompt};
use hermetic_gateway::{AgentTools, ConversationSandbox};
use hermetic_tools::{Outcome, Request};
use hermetic_types::ConversationKey;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::book::Book;
use super::keyboard::Sign;
use super::person::{Done, Heard, Person};
use super::screen::{Manner, Screen};
use super::typed::{HELP, Typed};
use crate::exit::Exit;
use crate::failure::Failure;
use hermetic_app::KeyboardChat;

const ASK_BEFORE_DESTROYING: &str = "This destroys the sandbox of this conversation with all files in it, \
    also those that were kept from before on another backend, and forgets what was said. Nothing of it \
    comes back. Type `/destroy yes` if you mean it; /new forgets what was said and keeps the files.";

/// 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

pub(super) struct Talk<'a> {
    desk: &'a KeyboardChat,
    conversation: ConversationKey,
    book: Book,
    person: tokio::sync::Mutex<Person>,
    /// The last line was `/destroy`, and was answered with a question.
    asked_to_destroy: AtomicBool,
    /// Lets the sandbox go while nobody types.
    _house: AbortOnDropHandle<()>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        desk: &'a KeyboardChat,
        conversation: ConversationKey,
        signs: mpsc::Receiver<Sign>,
    ) -> Result<Self, Failure> {
        let person = Person::new(desk.approvals.clone(), signs)?;
        let sandboxes = desk.sandboxes.clone();
        let house = async move { sandboxes.keep_house(CancellationToken::new()).await };
        Ok(Self {
            desk,
            book: Book::new(
                desk.history.clone(),
                conversation.clone(),
                desk.redactor.clone(),
            ),
            conversation,
            person: tokio::sync::Mutex::new(person),
            asked_to_destroy: AtomicBool::new(false),
            _house: AbortOnDropHandle::new(tokio::spawn(house)),
        })
    }

    pub(super) async fn once(&self, text: &str) -> Result<Exit, Failure> {
        let screen = self.screen(Manner::OneShot);
        let Done::With(answer) = self.say(text, &screen).await? else {
            return Ok(Exit::Passed(INTERRUPTED));
        };
        screen.close(&answer.text);
        Ok(match answer.ended {
            Ended::Finished => Exit::Ok,
            Ended::CutShort | Ended::TurnLimit => Exit::Failed,
            Ended::Interrupted => Exit::Passed(INTERRUPTED),
        })
    }

    pub(super) async fn until_left(&self) -> Result<Exit, Failure> {
        let screen = self.screen(Manner::Conversation);
        screen.tell(&format!(
            "model: {}, backend: {}; /help tells what can be typed",
            self.desk.model, self.desk.facts.backend
        ));
        self.person.lock().await.listen();
        let mut asked = false;
        loop {
            prompt_line();
            let heard = self.person.lock().await.at_the_prompt().await;
            let line = match heard {
                Heard::Line(line) => line,
                Heard::Interrupt if asked => return Ok(Exit::Passed(INTERRUPTED)),
                Heard::Interrupt => {
                    asked = true;
                    screen.tell("\nCtrl-C once more leaves");
                    continue;
                }
                Heard::End => {
                    screen.tell("");
                    return Ok(Exit::Ok);
                }
            };
            asked = false;
            match self.obey(Typed::read(&line)).await {
                Ok(Done::With(true)) => {}
                Ok(Done::With(false)) => return Ok(Exit::Ok),
                Ok(Done::Left) => return Ok(Exit::Passed(INTERRUPTED)),
                // The conversation goes on: what failed may work the next time.
                Err(failure) => crate::output::failure(failure.why()),
            }
        }
    }

    /// Nothing of the conversation stays.
    pub(super) async fn forget(&self) -> Result<(), Failure> {
        self.start_anew().await?;
        self.desk
            .sandboxes
            .reset(&self.conversation)
            .await
            .map_err(|error| Failure::caused(&error, "`hermetic sandbox list` shows it"))
    }

    /// What was said, and what was allowed for this session.
    async fn start_anew(&self) -> Result<(), Failure> {
        self.book.clear().await?;
        self.desk.approvals.revoke(&self.conversation).await?;
        Ok(())
    }

    /// Whether there is more to come.
    async fn obey(&self, typed: Typed) -> Result<Done<bool>, Failure> {
        let screen = self.screen(Manner::Conversation);
        // A yes counts right after the question.
        let asked_before = self.asked_to_destroy.swap(false, Ordering::Relaxed);
        match typed {
            Typed::Nothing => {}
            Typed::Leave => return Ok(Done::With(false)),
            Typed::Help => screen.tell(HELP),
            Typed::New => {
                self.start_anew().await?;
                screen.tell("A fresh conversation. The files in its sandbox stay.");
            }
            Typed::Destroy(word) => {
                let asked = asked_before || !self.desk.confirm_destructive;
                if !asked || !(word == "yes" || word.is_empty() && !self.desk.confirm_destructive) {
                    self.asked_to_destroy.store(true, Ordering::Relaxed);
                    screen.tell(ASK_BEFORE_DESTROYING);
                } else {
                    self.forget().await?;
                    screen.tell(
                        "The sandbox and its files are gone, and what was said is forgotten.",
                    );
                }
            }
            Typed::Sh(text) => return self.run(Request::shell(&text), &screen).await,
            Typed::Py(text) => return self.run(Request::python(&text), &screen).await,
            Typed::Says(text) => match self.say(&text, &screen).await? {
                Done::Left => return Ok(Done::Left),
                Done::With(answer) => screen.close(&answer.text),
            },
        }
        Ok(Done::With(true))
    }

    async fn say(&self, text: &str, screen: &Screen) -> Result<Done<Answer>, Failure> {
        let history = self.book.read().await?;
        let system = self.desk.redactor.redact(prompt::system(&self.desk.facts));
        let own = ConversationSandbox::new(&self.desk.sandboxes, &self.conversation);
        let tools = AgentTools::new(self.desk.kit.toolbox(&own, &self.desk.asker), &own);
        let steer = Steer::default();
        let turn = Turn {
            system: &system,
            history: &history,
            input: Input::Says(text),
            tools: &tools,
            journal: &self.book,
            observer: screen,
            steer: &steer,
        };
        let stop = CancellationToken::new();
        let taking = self.desk.agent.take_turn(turn, stop.clone());
        let taken = self.attended(taking, &stop, screen).await;
        if let Some(set_aside) = own.set_aside() {
            screen.tell(set_aside.trim_end());
        }
        match taken {
            Done::Left => Ok(Done::Left),
            Done::With(Ok(answer)) => Ok(Done::With(answer)),
            Done::With(Err(error)) => Err(Failure::caused(
                &error,
                "look at model and its base_url with `hermetic config show model`",
            )),
        }
    }

    async fn run(&self, request: Request, screen: &Screen) -> Result<Done<bool>, Failure> {
        let own = ConversationSandbox::new(&self.desk.sandboxes, &self.conversation);
        let toolbox = self.desk.kit.toolbox(&own, &self.desk.asker);
        let stop = CancellationToken::new();
        let running = toolbox.run(request, &stop);
        let Done::With(outcome) = self.attended(running, &stop, screen).await else {
            return Ok(Done::Left);
        };
        if let Some(set_aside) = own.set_aside() {
            screen.tell(set_aside.trim_end());
        }
        match outcome {
            Ok(Outcome::Ran { output, code, .. }) => {
                screen.tell(output.as_str());
                if code != 0 {
                    screen.tell(&format!("exit code {code}"));
                }
            }
            Ok(Outcome::Failed { error }) => screen.tell(&format!("Not run: {error}")),
            Err(blocked) => screen.tell(&blocked.to_string()),
        }
        Ok(Done::With(true))
    }

    async fn attended<T>(
        &self,
        work: impl Future<Output = T>,
        stop: &CancellationToken,
        screen: &Screen,
    ) -> Done<T> {
        self.person.lock().await.during(work, stop, screen).await
    }

    fn screen(&self, manner: Manner) -> Screen {
        Screen::new(manner, self.desk.redactor.clone())
    }
}

fn prompt_line() {
    if std::io::stdin().is_terminal() {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all("› ".as_bytes());
        let _ = out.flush();
    }
}
