//! `hermetic chat`: the agent at a keyboard.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use hermetic_testkit::model::{Piece, Reply, ScriptedServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::flow::lab::{KEY, calls_terminal};
use crate::hermetic::Hermetic;

#[tokio::test(flavor = "multi_thread")]
async fn one_question_is_answered_and_nothing_stays() {
    let script = [
        calls_terminal("echo $((6 * 7)) > n; cat n"),
        Reply::streams(&["It is ", "42."]),
    ];
    let test = "one_question_is_answered_and_nothing_stays";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let ended = hermetic.run(&["chat", "-q", "what is six times seven?"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "It is 42.\n"),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("⚙ terminal echo $((6 * 7)) > n; cat n"),
        "{}",
        ended.err
    );
    let asked = model.received();
    assert!(
        asked[1].body["messages"]
            .to_string()
            .contains(r#"\"output\":\"42\""#)
    );
    let left = hermetic.run(&["sandbox", "list", "--json"]).json();
    assert_eq!(left, json!([]));
}

#[test]
fn without_a_model_it_says_how_to_get_one() {
    let ended = Hermetic::new().run(&["chat", "-q", "hello"]);
    assert_eq!((ended.code, ended.out.as_str()), (78, ""));
    assert!(ended.err.contains("model.base_url"), "{}", ended.err);
}

#[test]
fn without_a_model_commands_still_run() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("without_a_model_commands_still_run") {
        return;
    }
    let mut chat = Chat::start(&hermetic, &[]);
    chat.types("/sh echo $((6 * 7))");
    chat.until("42");
    chat.types("hello");
    chat.until("No model is configured");
    chat.types("/quit");
    assert_eq!(chat.ends(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_remembers_and_another_does_not() {
    let script = ["one", "two", "three"].map(|text| Reply::streams(&[text]));
    let test = "a_session_remembers_and_another_does_not";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    hermetic.run(&["chat", "--session", "work", "-q", "remember the apple"]);
    hermetic.run(&["chat", "--session", "play", "-q", "what was it?"]);
    hermetic.run(&["chat", "--session", "work", "-q", "what was it?"]);
    let asked = model.received();
    let shown = |question: usize| asked[question].body["messages"].to_string();
    assert!(!shown(1).contains("apple"), "{}", shown(1));
    assert!(shown(2).contains("remember the apple") && shown(2).contains("one"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_turn_and_two_leave() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "thinking about it"}}]});
    let stalls = Reply::events([piece]).then(Piece::Stall);
    let script = [stalls, Reply::streams(&["second"])];
    let test = "an_interrupt_ends_the_turn_and_two_leave";
    let Some((hermetic, _model)) = with_model(test, script).await else {
        return;
    };
    let mut chat = Chat::start(&hermetic, &[]);
    chat.types("first");
    chat.until("thinking");
    chat.interrupt();
    chat.until("[Interrupted.]");
    chat.types("then this");
    chat.until("second");
    // At the prompt, the first one only warns.
    chat.interrupt();
    chat.until("once more leaves");
    chat.interrupt();
    assert_eq!(chat.ends(), 130);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_secret_nor_an_escape_shows() {
    let (half, rest) = KEY.split_at(9);
    let script = [Reply::streams(&[
        "it is ",
        half,
        rest,
        " \u{1b}]0;owned\u{7} ok",
    ])];
    let test = "neither_a_secret_nor_an_escape_shows";
    let Some((hermetic, _model)) = with_model(test, script).await else {
        return;
    };
    let mut chat = Chat::start(&hermetic, &[]);
    chat.types("the key?");
    let shown = chat.until("ok");
    assert!(shown.contains("it is [redacted]"), "{shown}");
    assert!(
        !shown.contains(half) && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
}

async fn with_model(
    test: &str,
    script: impl IntoIterator<Item = Reply>,
) -> Option<(Hermetic, ScriptedServer)> {
    let model = ScriptedServer::start(script).await.unwrap();
    let config = format!(
        "model: {{default: scripted, base_url: '{}'}}\n",
        model.base_url()
    );
    let hermetic = Hermetic::with(&config).file(".env", &format!("OPENAI_API_KEY={KEY}\n"));
    hermetic.has_sandboxes(test).then_some((hermetic, model))
}

struct Chat {
    child: Child,
    keys: ChildStdin,
    screen: BufReader<ChildStdout>,
}

impl Chat {
    fn start(hermetic: &Hermetic, arguments: &[&str]) -> Self {
        let mut child = hermetic
            .command(&[&["chat"], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let screen = BufReader::new(child.stdout.take().unwrap());
        let mut chat = Self {
            child,
            keys,
            screen,
        };
        chat.until("/help");
        chat
    }

    fn types(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// What it shows up to these words, wherever in a line they stand.
    fn until(&mut self, words: &str) -> String {
        let mut shown = Vec::new();
        loop {
            let available = self.screen.fill_buf().unwrap();
            assert!(!available.is_empty(), "{}", String::from_utf8_lossy(&shown));
            shown.push(available[0]);
            self.screen.consume(1);
            if shown.ends_with(words.as_bytes()) {
                return String::from_utf8(shown).unwrap();
            }
        }
    }

    fn ends(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
