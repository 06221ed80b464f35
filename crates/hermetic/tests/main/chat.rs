//! `hermetic chat`: the agent at a keyboard.

mod questions;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use hermetic_testkit::model::{Piece, Reply, ScriptedServer};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::flow::lab::{KEY, calls_terminal, calls_tool};
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

/// An MCP server with one tool, in as few lines as it takes.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}},
        "tools/list": {"tools": [{"name": "where", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "in " + __import__("os").getcwd()}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_mcp_servers_are_there_at_a_keyboard_too() {
    let script = [
        calls_tool("mcp_place_where", &json!({})),
        Reply::streams(&["It is there."]),
    ];
    let test = "the_tools_of_mcp_servers_are_there_at_a_keyboard_too";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let config = std::fs::read_to_string(hermetic.path("config.yaml")).unwrap();
    let servers = json!({
        "place": {"command": "python3", "args": ["-c", SERVER]},
        "broken": {"command": "/nowhere/to/be/found"},
    });
    let hermetic = hermetic.file("config.yaml", &format!("{config}mcp_servers: {servers}\n"));
    let ended = hermetic.run(&["chat", "-q", "where are you?"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "It is there.\n"),
        "{}",
        ended.err
    );
    // One that does not start breaks nothing, and is said beside the answer.
    assert!(
        ended
            .err
            .contains("The MCP server \"broken\" is not available"),
        "{}",
        ended.err
    );
    let asked = model.received();
    assert!(
        asked[0].body["tools"]
            .to_string()
            .contains("mcp_place_where")
    );
    let shown = asked[1].body["messages"].to_string();
    assert!(shown.contains("in /workspace"), "{shown}");
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
async fn memories_skills_and_notes_are_at_the_keyboard_too() {
    let remembers = json!({"action": "add", "target": "user", "content": "likes oolong"});
    let script = [
        calls_tool("memory", &remembers),
        Reply::streams(&["noted"]),
        calls_terminal("echo 'Indent with tabs.' > AGENTS.md"),
        Reply::streams(&["deployed"]),
        calls_tool("session_search", &json!({"query": "oolong"})),
        Reply::streams(&["found"]),
    ];
    let test = "memories_skills_and_notes_are_at_the_keyboard_too";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let head = "---\nname: deploy\ndescription: how we deploy\n---\n";
    let hermetic = hermetic.file("memories/USER.md", "is called Ada").file(
        "skills/deploy/SKILL.md",
        &format!("{head}Press the red button."),
    );
    for (session, said, answer) in [
        ("tea", "I like oolong", "noted\n"),
        ("work", "/deploy to staging", "deployed\n"),
        ("work", "what did I say of tea?", "found\n"),
    ] {
        let ended = hermetic.run(&["chat", "--session", session, "-q", said]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (0, answer),
            "{}",
            ended.err
        );
    }
    let asked = model.received();
    let shown = |question: usize| asked[question].body["messages"].to_string();
    assert!(shown(0).contains("is called Ada") && !shown(0).contains("likes oolong"));
    let second = shown(2);
    for known in ["likes oolong", "Press the red button.", "to staging"] {
        assert!(second.contains(known), "{known}: {second}");
    }
    assert!(shown(4).contains("Indent with tabs."), "{}", shown(4));
    assert!(shown(5).contains("I like oolong"), "{}", shown(5));
    let kept = hermetic.run(&["memory", "show", "owner"]);
    assert!(kept.out.contains("likes oolong"), "{}", kept.out);
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

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_lines_are_edited_completed_remembered_and_pasted_whole() {
    let test = "at_a_terminal_lines_are_edited_completed_remembered_and_pasted_whole";
    let script = [Reply::streams(&["Three lines."]), Reply::streams(&["Hm."])];
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let mut chat = Chat::at_a_whole_terminal(&hermetic, &[]);
    // Completed by a tab, and a letter too many taken back.
    write!(chat.keys, "/wrong\x08\x08\x08\x08hoa\t\r").unwrap();
    chat.until("at the keyboard of this machine");
    chat.until("› ");
    write!(chat.keys, "\x1b[200~one\n  two\nthree\x1b[201~\r").unwrap();
    chat.until("Three lines.");
    chat.until("› ");
    let asked = model.received()[0].body["messages"].to_string();
    assert!(asked.contains(r"one\n  two\nthree"), "one message: {asked}");
    // Up through the three lines of the last one, and up to the one before.
    write!(chat.keys, "\x1b[A\x1b[A\x1b[A\x1b[A\r").unwrap();
    chat.until("at the keyboard of this machine");
    chat.until("› ");
    // Not remembered: a space stands before it.
    write!(chat.keys, " /model\r").unwrap();
    chat.until("scripted");
    chat.until("› ");
    write!(chat.keys, "\x03").unwrap();
    chat.until("Ctrl-C once more leaves");
    chat.until("› ");
    write!(chat.keys, "\x04").unwrap();
    assert_eq!(chat.ends(), 0);
    let history = hermetic.path("hermetic/chat-history");
    let text = std::fs::read_to_string(&history).unwrap();
    assert!(
        text.contains("/whoami") && !text.contains("/model"),
        "{text}"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&history).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // And again the next time.
    let mut chat = Chat::at_a_whole_terminal(&hermetic, &[]);
    write!(chat.keys, "\x1b[A\r").unwrap();
    chat.until("at the keyboard of this machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_comes_from_stdin_only_where_that_is_said() {
    let test = "a_question_comes_from_stdin_only_where_that_is_said";
    let script = [
        Reply::streams(&["a"]),
        Reply::streams(&["b"]),
        Reply::streams(&["c"]),
    ];
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    for (arguments, heard) in [
        (&["-q", "why?"][..], "why?"),
        (&["-q", "-"], "a traceback"),
        (&["-q", "why?", "--stdin"], r"why?\n\na traceback"),
    ] {
        let mut child = hermetic
            .command(&[&["chat"], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"a traceback\n")
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
        let asked = model.received().last().unwrap().body["messages"].to_string();
        assert!(asked.contains(heard), "{arguments:?}: {asked}");
        assert_eq!(
            asked.contains("traceback"),
            heard.contains("traceback"),
            "{asked}"
        );
    }
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
    keys: Box<dyn Write>,
    screen: BufReader<Box<dyn Read>>,
}

impl Chat {
    fn start(hermetic: &Hermetic, arguments: &[&str]) -> Self {
        let (ours, theirs) = std::io::pipe().unwrap();
        Self::reading(hermetic, arguments, ours.into(), Box::new(theirs))
    }

    /// Somebody sits there, instead of a pipe.
    fn at_a_terminal(hermetic: &Hermetic, arguments: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let theirs = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        Self::reading(
            hermetic,
            arguments,
            theirs.into(),
            Box::new(File::from(keys)),
        )
    }

    /// Somebody sits there and reads there too, so that lines can be edited.
    fn at_a_whole_terminal(hermetic: &Hermetic, arguments: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let theirs = || {
            let open = File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap());
            Stdio::from(open.unwrap())
        };
        let child = hermetic
            .command(&[&["chat"], arguments].concat())
            .env("TERM", "xterm")
            .stdin(theirs())
            .stdout(theirs())
            .spawn()
            .unwrap();
        let keys = File::from(keys);
        let screen: Box<dyn Read> = Box::new(keys.try_clone().unwrap());
        let mut chat = Self {
            child,
            keys: Box::new(keys),
            screen: BufReader::new(screen),
        };
        chat.until("/help");
        chat.until("› ");
        chat
    }

    fn reading(
        hermetic: &Hermetic,
        arguments: &[&str],
        input: Stdio,
        keys: Box<dyn Write>,
    ) -> Self {
        let mut child = hermetic
            .command(&[&["chat"], arguments].concat())
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let screen: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        let screen = BufReader::new(screen);
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

/// Somebody else's agent at the keyboard needs no model of ours, and finds its session by `--session`.
#[test]
fn an_agent_of_others_answers_at_the_keyboard() {
    let words = serde_json::to_string(&hermetic_testkit::acp::agent_command(&[])).unwrap();
    let hermetic = Hermetic::with(&format!(
        "agent: {{acp: [{{name: hermetic}}, {{name: tester, command: {words}}}]}}\n"
    ));
    if !hermetic.has_sandboxes("an_agent_of_others_answers_at_the_keyboard") {
        return;
    }
    let asks = |words: &str| {
        let ended = hermetic.run(&["chat", "--agent", "tester", "--session", "w", "-q", words]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.out
    };
    assert_eq!(asks("remember the milk"), "I will.\n");
    assert_eq!(asks("recall"), "I remember: the milk\n");
    let unknown = hermetic.run(&["chat", "--agent", "clod", "-q", "hello"]);
    assert!(unknown.err.contains("no agent called"), "{}", unknown.err);
    let refused = hermetic.run(&["chat", "--agent", "tester", "--backend", "local", "-q", "x"]);
    assert!(
        refused.err.contains("does not run on the backend local"),
        "{}",
        refused.err
    );
    assert_ne!(refused.code, 0);
}

#[test]
fn modes_and_models_of_another_agent_are_chosen_at_the_keyboard() {
    let words = serde_json::to_string(&hermetic_testkit::acp::agent_command(&[])).unwrap();
    let hermetic = Hermetic::with(&format!(
        "agent: {{acp: {{name: tester, command: {words}}}}}\ndisplay: {{show_reasoning: true}}\n"
    ));
    if !hermetic.has_sandboxes("modes_and_models_of_another_agent_are_chosen_at_the_keyboard") {
        return;
    }
    let mut chat = Chat::start(&hermetic, &[]);
    chat.types("/status");
    let shown = chat.until("network:");
    assert!(shown.contains("agent: tester"), "{shown}");
    assert!(!shown.contains("model:"), "ours does not answer: {shown}");
    chat.types("say hello");
    chat.until("hello");
    chat.types("/model");
    chat.until("/model m39 - Model 39");
    chat.types("/model m39");
    chat.until("has the model m39");
    chat.types("/mode free");
    chat.until("has the mode free");
    chat.types("setting model");
    chat.until("model: m39");
    chat.types("setting mode");
    chat.until("mode: free");
    // An answer in the middle of which something else is shown is one answer, and is told once.
    chat.types("midway look around");
    chat.types("/whoami");
    let shown = chat.until("at the keyboard of this machine");
    let times = |words: &str| shown.matches(words).count();
    assert_eq!((times("It goes"), times("on and on.")), (1, 1), "{shown}");
    assert_eq!(times("hm, look around"), 1, "in one line: {shown}");
    assert!(shown.contains("☰ 0 of 1 done: look around"), "{shown}");
}
