//! Speaks to an agent by its standard streams, as little of the protocol as one turn needs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub(super) struct Driver {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
    /// What the agent said in words.
    pub(super) said: String,
    /// How often it asked whether it may.
    pub(super) asked: usize,
}

impl Driver {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            calls: 0,
            said: String::new(),
            asked: 0,
        }
    }

    /// The result of a call. Whatever the agent asks meanwhile, it may.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "it ended before it answered {method}");
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            match message["method"].as_str() {
                None if message["id"] == id => {
                    assert!(message["error"].is_null(), "{method}: {message}");
                    return message["result"].clone();
                }
                Some("session/request_permission") => self.allow(&message),
                Some("session/update") => {
                    let update = &message["params"]["update"];
                    if update["sessionUpdate"] == "agent_message_chunk" {
                        self.said += update["content"]["text"].as_str().unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
    }

    fn allow(&mut self, question: &Value) {
        self.asked += 1;
        let options = question["params"]["options"].as_array().unwrap();
        let once = options.iter().find(|option| option["kind"] == "allow_once");
        let outcome = json!({"outcome": "selected", "optionId": once.unwrap()["optionId"]});
        let id = &question["id"];
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    /// Ends it, with all that it started.
    pub(super) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}
