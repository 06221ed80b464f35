//! Every tool under its name, for one conversation.

use hermetic_types::ConversationKey;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::files::{FileTool, Files};
use crate::{Ask, Blocked, Outcome, Request, Terminal, Workplace};

/// The tools of an installation. Holds nothing of a conversation.
#[derive(Clone, Debug)]
pub struct Kit {
    pub terminal: Terminal,
    pub files: Files,
}

/// The tools as one conversation's agent holds them. The sandbox is made at the first call that needs
/// it, not before.
#[derive(Clone, Copy, Debug)]
pub struct Toolbox<'a> {
    pub(crate) kit: &'a Kit,
    pub(crate) workplace: &'a dyn Workplace,
    pub(crate) ask: &'a dyn Ask,
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    pub name: &'static str,
    pub description: String,
    /// A JSON schema of an object.
    pub schema: Value,
}

/// What a call came to. Everything in it is redacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub json: Value,
    /// Whether it went wrong, for those who watch. The model reads the JSON.
    pub failed: bool,
}

impl Kit {
    pub fn toolbox<'a>(&'a self, workplace: &'a dyn Workplace, ask: &'a dyn Ask) -> Toolbox<'a> {
        Toolbox {
            kit: self,
            workplace,
            ask,
        }
    }
}

impl Toolbox<'_> {
    pub fn conversation(&self) -> &ConversationKey {
        self.workplace.conversation()
    }

    pub fn described(&self) -> Vec<Described> {
        let terminal = &self.kit.terminal;
        let mut all = vec![Described {
            name: Terminal::NAME,
            description: terminal.description(),
            schema: terminal.schema(),
        }];
        all.extend(self.kit.files.described());
        all
    }

    /// `None` if there is no such tool. Any arguments are answered.
    pub async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Option<Answered> {
        if name == Terminal::NAME {
            return Some(self.call_terminal(arguments, stop).await);
        }
        let files = &self.kit.files;
        let tool = FileTool::of_name(name)?;
        Some(
            files
                .call(tool, arguments, self.workplace, self.ask, stop)
                .await,
        )
    }

    /// Judged, then into the conversation's sandbox.
    pub async fn run(
        &self,
        request: Request,
        stop: &CancellationToken,
    ) -> Result<Outcome, Blocked> {
        let terminal = &self.kit.terminal;
        let cleared = terminal.clear(request, self.ask, stop).await?;
        let held = tokio::select! {
            held = self.workplace.sandbox() => held,
            // A sandbox that is being made becomes one that idles; the house lets it go.
            () = stop.cancelled() => {
                return Ok(terminal.failed("interrupted before the sandbox was there; not run"));
            }
        };
        Ok(match held {
            Ok(sandbox) => terminal.run(&sandbox, cleared, stop).await,
            Err(none) => terminal.failed(&none.to_string()),
        })
    }

    async fn call_terminal(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Answered {
        let terminal = &self.kit.terminal;
        let request = match Request::read(arguments, terminal.longest_timeout()) {
            Ok(request) => request,
            Err(wrong) => return Answered::of(&terminal.failed(&wrong.to_string())),
        };
        match self.run(request, stop).await {
            Ok(outcome) => Answered::of(&outcome),
            Err(blocked) => Answered {
                json: blocked.to_json(),
                failed: true,
            },
        }
    }
}

impl Answered {
    fn of(outcome: &Outcome) -> Self {
        Self {
            json: outcome.to_json(),
            failed: outcome.is_failure(),
        }
    }
}
