//! MCP servers in real sandboxes: well-known ones that others wrote, and hostile ones of our own.

mod by_login;
mod conformance;
mod growing;
mod hostile;
mod on_host;
mod over_http;
mod well_known;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_policy::{ApprovalQuestion, Cleared, CommandApproval};
use hermetic_tools::{
    CommandApprover, CommandDenied, DecidedCommand, JudgedAs, McpServerPlace, McpServerSettings,
    NoOneToAsk,
};
use hermetic_types::{BackendKind, CommandProgram};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::room::{Lab, PATIENCE, Wishes};

fn inside(name: &str, words: &[&str]) -> McpServerSettings {
    McpServerSettings {
        name: name.to_owned(),
        place: McpServerPlace::Sandbox {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::new(),
        },
        timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(40),
        include: None,
        exclude: Vec::new(),
        resources: true,
        prompts: true,
    }
}

/// Someone who answers every question alike, and remembers what was asked and decided.
#[derive(Debug, Default)]
struct Person {
    says_yes: bool,
    asked: Mutex<Vec<String>>,
    decided: Mutex<Vec<String>>,
}

impl Person {
    fn saying_yes() -> Self {
        Self {
            says_yes: true,
            ..Self::default()
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn decided(&self) -> Vec<String> {
        std::mem::take(&mut *self.decided.lock().unwrap())
    }
}

impl CommandApprover for Person {
    fn ask<'a>(
        &'a self,
        question: ApprovalQuestion,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
        self.asked
            .lock()
            .unwrap()
            .push(question.reasons().join("; "));
        if !self.says_yes {
            return NoOneToAsk.ask(question, stop);
        }
        let yes = CommandApproval::yes(question.fingerprint().clone(), question.longest_yes());
        let cleared = question.answered(&yes);
        futures::future::ready(cleared.map_err(|error| CommandDenied(error.to_string()))).boxed()
    }

    fn decided(&self, decided: DecidedCommand<'_>) -> Result<(), CommandDenied> {
        let CommandProgram::Words(words) = &decided.command.program else {
            return Ok(());
        };
        assert!(
            decided.command.env.is_empty(),
            "an environment in the record"
        );
        let became = match decided.as_what {
            JudgedAs::Run(_) => "run",
            JudgedAs::Refused(_) => "refused",
            JudgedAs::Denied(_) => "denied",
        };
        let line = match decided.backend {
            BackendKind::Local => format!("{became} on the host {}", words.join(" ")),
            _ => format!("{became} {}", words.join(" ")),
        };
        self.decided.lock().unwrap().push(line);
        Ok(())
    }
}

/// Someone who is asked, and stops everything instead of answering.
#[derive(Debug)]
struct Stopper(CancellationToken);

impl CommandApprover for Stopper {
    fn ask<'a>(
        &'a self,
        _: ApprovalQuestion,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
        self.0.cancel();
        futures::future::pending().boxed()
    }
}

impl Lab {
    /// What the person is told before a turn.
    async fn prepare(&self, person: &Person) -> Vec<String> {
        let toolbox = self.kit.toolbox(&*self.room, person);
        let stop = CancellationToken::new();
        let prepared = tokio::time::timeout(PATIENCE, toolbox.prepare(&stop)).await;
        prepared.expect("it is over in time")
    }

    /// The names of the tools that are not our own.
    fn offered(&self) -> Vec<String> {
        let toolbox = self.kit.toolbox(&*self.room, &NoOneToAsk);
        let described = toolbox.described().into_iter();
        let names = described.map(|tool| tool.name.into_owned());
        names.filter(|name| name.starts_with("mcp_")).collect()
    }

    async fn calls(&self, person: &Person, tool: &str, arguments: Value) -> Value {
        let toolbox = self.kit.toolbox(&*self.room, person);
        let stop = CancellationToken::new();
        let arguments = arguments.as_object().unwrap().clone();
        let called = toolbox.call(tool, &arguments, &stop);
        let answered = tokio::time::timeout(PATIENCE, called).await;
        let answered = answered.expect("the call ends").expect("a tool");
        answered.json.into_inner()
    }
}

async fn lab(test: &str, mcp: Vec<McpServerSettings>) -> Option<Lab> {
    let wishes = Wishes {
        mcp,
        ..Wishes::default()
    };
    Lab::open_with(test, wishes).await
}

fn text(answer: &Value) -> &str {
    answer["result"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

fn error(answer: &Value) -> &str {
    answer["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}
