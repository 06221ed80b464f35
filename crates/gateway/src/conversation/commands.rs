//! What slash commands do.

use hermetic_agent::SpendingMeter as _;
use hermetic_redact::Redacted;
use hermetic_session::LetGoError;
use hermetic_store::StoreError;
use hermetic_tools::{CommandRequest, TerminalOutcome};
use thiserror::Error;
use tokio::time::Instant;

use super::TurnControl;
use crate::Gateway;
use crate::conversation::command_reply::CommandReply;
use crate::conversation::sandbox_tools::ConversationSandbox;
use crate::message::AcceptedMessage;
use crate::message::ChatCommand;
use crate::wording;

#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("the store does not answer")]
    Store(#[from] StoreError),
    #[error("the sandbox could not be destroyed")]
    LetGo(#[from] LetGoError),
}

impl CommandError {
    pub(crate) fn for_chat(&self) -> &'static str {
        match self {
            Self::Store(_) => wording::BROKEN,
            Self::LetGo(_) => {
                "What was said is forgotten, but not everything could be destroyed yet. It is tried \
                 again, and the operator has been told."
            }
        }
    }
}

impl Gateway {
    pub(crate) async fn run_command(
        &self,
        message: &AcceptedMessage,
        slash: &ChatCommand,
        control: &TurnControl,
    ) -> Result<CommandReply, CommandError> {
        let conversation = message.conversation();
        let text = match slash {
            ChatCommand::New => {
                self.begin_anew(conversation).await?;
                Redacted::constant(
                    "A fresh conversation. /sessions has what was said before. The files in its sandbox stay; \
                     /destroy removes them.",
                )
            }
            ChatCommand::Forget => {
                // First: whatever breaks off behind this, an old yes never counts in what begins.
                self.approvals.questions.revoke(conversation).await?;
                self.history.clear(conversation).await?;
                self.forget_agents(conversation).await?;
                Redacted::constant(
                    "A fresh conversation. What was said here is forgotten, earlier sessions too. The files in \
                     its sandbox stay; /destroy removes them.",
                )
            }
            ChatCommand::Destroy(word) => self.destroy(message, word).await?,
            ChatCommand::Stop => self.stop(message).await?,
            ChatCommand::Status => self.status(message).await,
            ChatCommand::Sh(text) => {
                let request = CommandRequest::shell(text);
                return Ok(self.run_here(message, text, request, control).await);
            }
            ChatCommand::Py(text) => {
                let request = CommandRequest::python(text);
                return Ok(self.run_here(message, text, request, control).await);
            }
            ChatCommand::Usage => self.usage(message).await?,
            ChatCommand::Model(wanted) => self.model(message, wanted).await?,
            ChatCommand::Mode(wanted) => self.mode(message, wanted).await?,
            ChatCommand::Agent(wanted) => self.choose_agent(message, wanted).await?,
            ChatCommand::Compact => self.compact(message, control).await?,
            ChatCommand::Undo => self.undo(message).await?,
            // It is a turn: see `life`.
            ChatCommand::Retry => Redacted::constant(wording::BROKEN),
            ChatCommand::Sessions => self.sessions(message).await?,
            ChatCommand::Resume(wanted) => self.resume_session(message, wanted).await?,
            ChatCommand::Files(path) => self.files(message, path).await,
            ChatCommand::Sandbox => self.sandbox(message).await?,
            ChatCommand::Egress => self.egress(message).await,
            ChatCommand::Cron(words) => self.cron(message, words).await?,
            ChatCommand::Lift(words) => self.lift(message, words).await?,
            ChatCommand::Memory(words) => self.memory_command(message, words).await?,
            ChatCommand::Skills => self.skills_command().await,
            ChatCommand::Whoami => self.whoami(message),
            ChatCommand::Version => {
                Redacted::constant(concat!("Hermetic ", env!("CARGO_PKG_VERSION")))
            }
            ChatCommand::Help => Redacted::constant(wording::HELP),
            ChatCommand::Approve(text) => self.approve(message, text).await?,
            ChatCommand::Deny(text) => self.deny(message, text).await?,
            ChatCommand::Unknown(name) => self.redactor.redact(ChatCommand::instead_of(name)),
        };
        Ok(text.into())
    }

    /// Interrupts what runs, and drops what waits for it: commands, and files that do not arrive.
    async fn stop(&self, message: &AcceptedMessage) -> Result<Redacted<String>, CommandError> {
        let stopped = self.conversations.stop_report(message.conversation()).await;
        let commands = stopped.dropped.len();
        self.drop_waiting(stopped.dropped, "dropped by /stop").await;
        let files = self.outbox.drop_late_files(message.conversation()).await?;
        let mut text = match stopped.anything {
            true => "Stopped.".to_owned(),
            false if files.is_empty() => "Nothing is running in this conversation.".to_owned(),
            false => "Nothing is running in this conversation any more.".to_owned(),
        };
        match commands {
            0 => {}
            1 => text.push_str(" One command that waited was dropped and does not run."),
            more => text.push_str(&format!(
                " {more} commands that waited were dropped and do not run."
            )),
        }
        if !files.is_empty() {
            text.push_str(&format!(
                " Given up, and still in the workspace: {}.",
                files.join(", ")
            ));
        }
        Ok(self.redactor.redact(text))
    }

    async fn run_here(
        &self,
        message: &AcceptedMessage,
        text: &str,
        request: CommandRequest,
        control: &TurnControl,
    ) -> CommandReply {
        if text.is_empty() || text.contains('\0') {
            let usage = "Nothing to run: write it after the command, as in /sh ls";
            return Redacted::constant(usage).into();
        }
        let asker = self.approvals.commands(message);
        // The time in which a person was asked is not the command's: it would eat up the budget of
        // tools.
        let meter = self.meter(message).without(asker.waits().clone());
        if let Err(refused) = meter.before_tool().await {
            return self.redactor.redact(refused.words).into();
        }
        let own = ConversationSandbox::of(&self.sandboxes, message);
        let own = own.paying(self.service_meter(message));
        let site = self.toolsets.of(message.said().platform());
        let toolbox = site.kit.toolbox(&own, &asker);
        let started = Instant::now();
        let outcome = toolbox.run(request, &control.stop).await;
        meter.after_tool(started.elapsed()).await;
        meter.close().await;
        let stopped = own.why_stopped().map(|why| format!("{why}\n\n"));
        let mut files = Vec::new();
        let text = match outcome {
            Ok(TerminalOutcome::Ran { output, code, .. }) => {
                let shown = self.shown_output(message, output.as_str()).await;
                files = shown.files;
                ran(&shown.text, code)
            }
            Ok(TerminalOutcome::Failed { .. }) if stopped.is_some() => {
                "The command ended with it, and had said nothing until then.".to_owned()
            }
            Ok(TerminalOutcome::Failed { error }) => format!("Not run: {error}"),
            Err(blocked) => blocked.to_string(),
        };
        let text = self.redactor.redact(format!(
            "{}{}{text}{}",
            stopped.unwrap_or_default(),
            own.set_aside().unwrap_or_default(),
            self.refused_hosts(message),
        ));
        CommandReply { text, files }
    }

    async fn status(&self, message: &AcceptedMessage) -> Redacted<String> {
        let activity = self.conversations.activity(message.conversation()).await;
        let load = self.turn_limits.load(message);
        let agent = self.agent_of(message.conversation()).await;
        let model = agent.map_or(self.settings.model.as_str(), |agent| agent.model_name());
        let named = self.agent_name(message).await.ok().flatten();
        let named = named.map_or_else(String::new, |name| format!("agent: {name}\n"));
        let facts = &self.toolsets.of(message.said().platform()).facts;
        let seal = match facts.boundary {
            hermetic_types::Boundary::Sealed => "sealed",
            hermetic_types::Boundary::Judged => "not sealed: commands are judged",
        };
        let mut text = format!(
            "conversation: {}\nturn: {}\nwaiting: {}\nof yours everywhere: {} of {} at work, {} \
             waiting\n{named}model: {}\nbackend: {} ({seal})",
            message.conversation(),
            if activity.at_work { "at work" } else { "idle" },
            activity.waiting,
            load.at_work,
            self.turn_limits.max_turns_per_user(),
            load.waiting,
            model,
            facts.backend,
        );
        for warning in &self.settings.warnings {
            text.push_str("\n\n⚠ ");
            text.push_str(warning);
        }
        self.redactor.redact(text)
    }

    fn whoami(&self, message: &AcceptedMessage) -> Redacted<String> {
        let admitted = message.admitted();
        let said = message.said();
        self.redactor.redact(format!(
            "user: {}\nplatform: {}\nrole: {}",
            said.sender.id,
            said.platform(),
            format!("{:?}", admitted.role()).to_lowercase(),
        ))
    }
}

fn ran(output: &str, code: i32) -> String {
    let ended = if code == 0 {
        String::new()
    } else {
        format!("exit code {code}")
    };
    if output.is_empty() {
        return if code == 0 {
            "(no output)".to_owned()
        } else {
            ended
        };
    }
    // Longer than any fence inside, so that output cannot end it.
    let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{output}\n{fence}\n{ended}")
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::ran;

    #[test]
    fn output_is_shown_as_it_is() {
        assert_eq!(ran("hi", 0), "```\nhi\n```");
        assert_eq!(ran("hi", 3), "```\nhi\n```\nexit code 3");
        assert_eq!(ran("", 0), "(no output)");
        assert_eq!(ran("", 2), "exit code 2");
        assert_eq!(ran("a ``` b", 0), "````\na ``` b\n````");
    }
}
