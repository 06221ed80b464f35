//! A Telegram, a model and a gateway, all on loopback.

use std::path::PathBuf;

pub(crate) use hermetic_testkit::SharedFolder as Shared;
use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer, visible_text};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::hermetic::{Ended, Hermetic, Running};

/// What the configuration knows and nobody may read.
pub(crate) const KEY: &str = "correct-horse-battery-staple";

pub(crate) const ALICE: i64 = 7;
pub(crate) const BOB: i64 = 8;
pub(crate) const STRANGER: i64 = 99;

pub(crate) struct Lab {
    pub(crate) telegram: TelegramServer,
    pub(crate) model: ScriptedServer,
    hermetic: Hermetic,
    gateway: Option<Running>,
    /// What the last gateway said until it was ready.
    said: String,
}

impl Lab {
    /// With a gateway that is ready; `None`, said aloud, where no sandbox can be had.
    pub(crate) async fn start(test: &str, script: impl IntoIterator<Item = Reply>) -> Option<Self> {
        Self::start_with(test, script, "", "TELEGRAM_ALLOWED_USERS=7,8").await
    }

    pub(crate) async fn start_with(
        test: &str,
        script: impl IntoIterator<Item = Reply>,
        more: &str,
        access: &str,
    ) -> Option<Self> {
        Self::start_in(test, script, more, access, &[]).await
    }

    /// The same with more variables for the program.
    pub(crate) async fn start_in(
        test: &str,
        script: impl IntoIterator<Item = Reply>,
        more: &str,
        access: &str,
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let telegram = TelegramServer::start().await.unwrap();
        let model = ScriptedServer::start(script).await.unwrap();
        let config = config(&telegram, &model, more);
        let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nOPENAI_API_KEY={KEY}\n{access}\n");
        let mut hermetic = Hermetic::with(&config).file(".env", &env);
        for (name, value) in variables {
            hermetic = hermetic.variable(name, value);
        }
        if !hermetic.has_sandboxes(test) {
            return None;
        }
        let mut lab = Self {
            telegram,
            model,
            hermetic,
            gateway: None,
            said: String::new(),
        };
        lab.restart();
        Some(lab)
    }

    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// With more variables, this time.
    pub(crate) fn restart_with(&mut self, variables: &[(&str, &str)]) {
        let (gateway, said) = self.hermetic.gateway_with(&[], variables);
        assert!(said.contains("ready"), "{said}");
        self.gateway = Some(gateway);
        self.said = said;
    }

    /// The same, once it has said this word, whether it is ready or not.
    pub(crate) fn restart_until(&mut self, word: &str, variables: &[(&str, &str)]) {
        let run = ["gateway", "run"];
        let (gateway, said) = self.hermetic.gateway_until(word, &run, variables);
        assert!(said.contains(word), "{said}");
        self.gateway = Some(gateway);
        self.said = said;
    }

    /// The process of the gateway that runs.
    pub(crate) fn process(&self) -> u32 {
        self.gateway.as_ref().unwrap().id()
    }

    /// Where health is answered.
    pub(crate) fn health(&self) -> String {
        self.said_address("address=")
    }

    /// What the last gateway said until it was ready.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// An address that the gateway named at its start.
    pub(crate) fn said_address(&self, field: &str) -> String {
        let after = self.said.split(field).nth(1).unwrap();
        after.split_whitespace().next().unwrap().to_owned()
    }

    pub(crate) async fn model_asked(&self, count: usize) {
        self.model.wait_for(count).await;
    }

    /// Whether it died by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.gateway.as_mut().is_none_or(Running::has_ended)
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.gateway.take().unwrap().signal(Signal::KILL);
    }

    /// SIGTERM; what it said on the way out.
    pub(crate) fn terminate(&mut self) -> String {
        let (status, said) = self.gateway.take().unwrap().signal(Signal::TERM);
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.hermetic.path("")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.hermetic.run(arguments)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.hermetic.path(name)
    }

    pub(crate) fn sandboxes(&self) -> Vec<String> {
        let listed = self.run(&["sandbox", "list", "--json"]).json();
        let ids = listed.as_array().unwrap().iter();
        ids.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Everything the bot sent to this chat, as people see it, once there are so many.
    pub(crate) async fn replies(&self, user: i64, count: usize) -> Vec<String> {
        let mut wanted = count;
        loop {
            let calls = self.telegram.wait_for("sendMessage", wanted).await;
            let all = calls.len();
            let texts: Vec<_> = calls
                .iter()
                .filter(|call| call.params["chat_id"] == json!(user))
                .map(|call| text(&call.params))
                .collect();
            if texts.len() >= count {
                return texts;
            }
            wanted = all + 1;
        }
    }

    /// Says something and waits for the next reply.
    pub(crate) async fn ask(&self, user: i64, words: &str) -> String {
        let before = self.sent_to(user);
        self.telegram.says(user, words);
        self.replies(user, before + 1).await.remove(before)
    }

    /// Has somebody's sandbox destroyed, as a person does who means it.
    pub(crate) async fn destroy(&self, user: i64) {
        // After a crash an earlier answer may come in between.
        for _ in 0..5 {
            self.ask(user, "/destroy").await;
            if self.ask(user, "/destroy yes").await.contains("are gone") {
                return;
            }
        }
        panic!("the sandbox of {user} is still there");
    }

    /// Says something and waits for the next reply in somebody else's chat.
    pub(crate) async fn ask_through(&self, user: i64, words: &str, other: i64) -> String {
        let before = self.sent_to(other);
        self.telegram.says(user, words);
        self.replies(other, before + 1).await.remove(before)
    }

    pub(crate) fn sent_to(&self, user: i64) -> usize {
        let calls = self.telegram.calls("sendMessage");
        calls
            .iter()
            .filter(|call| call.params["chat_id"] == json!(user))
            .count()
    }

    /// What the model was shown, question by question.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.model
            .received()
            .iter()
            .map(|asked| asked.body["messages"].to_string())
            .collect()
    }

    /// Has Alice's turn made of [`notes`], and sees what it saw.
    pub(crate) async fn noted(&self, seen: &str) {
        let answer = self.ask(ALICE, "what is the key?").await;
        assert_eq!(answer, "The key is [redacted]");
        let ran = self.tool_result(1);
        assert_eq!(ran["output"], format!("[redacted]\n{seen}"), "{ran}");
        let script = self.tool_result(2).to_string();
        assert!(script.contains("mine"), "{script}");
    }

    /// The result of the last tool call in this question, as the tool wrote it.
    pub(crate) fn tool_result(&self, question: usize) -> Value {
        let asked = self.model.received().remove(question);
        let messages = asked.body["messages"].as_array().unwrap().clone();
        let result = messages
            .iter()
            .rfind(|message| message["role"] == "tool")
            .unwrap();
        let marked = result["content"].as_str().unwrap();
        serde_json::from_str(marked.lines().nth(1).unwrap()).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.gateway.take());
        for id in self.sandboxes() {
            self.hermetic.run(&["sandbox", "destroy", &id]);
        }
    }
}

fn config(telegram: &TelegramServer, model: &ScriptedServer, more: &str) -> String {
    format!(
        "model: {{default: scripted, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n{more}",
        model.base_url(),
        telegram.url()
    )
}

/// The model calls the terminal.
/// A turn that prints the key and what this command says, leaves a note, and has a script read it.
pub(crate) fn notes(look: &str) -> [Reply; 3] {
    let code = "import hermes_tools as t\nprint(t.read_file('note'))";
    [
        calls_terminal(&format!("echo {KEY}; {look}; echo mine > note")),
        calls_tool("execute_code", &json!({ "code": code })),
        Reply::streams(&["The key is ", KEY]),
    ]
}

pub(crate) fn calls_terminal(command: &str) -> Reply {
    calls_tool("terminal", &json!({"command": command}))
}

pub(crate) fn calls_tool(name: &str, arguments: &Value) -> Reply {
    let arguments = arguments.to_string();
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": name, "arguments": arguments}});
    Reply::events([
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

pub(crate) fn text(params: &Value) -> String {
    let text = params["text"].as_str().unwrap();
    match params.get("parse_mode") {
        Some(_) => visible_text(text).unwrap(),
        None => text.to_owned(),
    }
}
