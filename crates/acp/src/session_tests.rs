//! Sessions with a real program, which does as badly as it is asked to.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, ready};
use hermetic_store::AgentSettings;
use hermetic_testkit::acp::agent_command;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::prompt::{PromptEnd, PromptListener, StopReason};
use crate::{
    AgentBounds, AgentFailure, AgentProgram, AgentSession, AgentSupervisor, PermissionAnswer,
    PermissionRequest, PipeInput, PipeStream, ReportedTool, SessionOrigin,
};

const SHORT: Duration = Duration::from_millis(200);

/// A program, its home, and what became of what it said.
struct Talk {
    session: AgentSession,
    origin: SessionOrigin,
    home: TempDir,
    _child: Child,
    stop: CancellationToken,
    people: TestPeople,
}

#[derive(Default)]
struct Heard {
    text: String,
    thoughts: String,
    tools: usize,
}

#[derive(Default)]
struct TestPeople {
    answer: Mutex<Option<PermissionAnswer>>,
    asked: Mutex<Vec<String>>,
    noted: Mutex<Vec<ReportedTool>>,
}

fn start(options: &[&str], home: &Path) -> Child {
    let words = agent_command(options);
    Command::new(&words[0])
        .args(&words[1..])
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("python3")
}

async fn open(
    options: &[&str],
    program: &AgentProgram,
    (home, earlier): (TempDir, Option<&str>),
    bounds: AgentBounds,
) -> Result<Talk, AgentFailure> {
    let mut child = start(options, home.path());
    let stream = PipeStream(child.stdout.take().expect("a pipe"));
    let input = PipeInput(child.stdin.take().expect("a pipe"));
    let opened = AgentSession::open((stream, input), program, ("/workspace", earlier), bounds);
    let (session, origin) = opened.await?;
    Ok(Talk {
        session,
        origin,
        home,
        _child: child,
        stop: CancellationToken::new(),
        people: TestPeople::default(),
    })
}

async fn talk(bounds: AgentBounds) -> Talk {
    let home = tempfile::tempdir().expect("a folder");
    let opened = open(&[], &program(), (home, None), bounds).await;
    opened.expect("a session")
}

fn program() -> AgentProgram {
    AgentProgram {
        name: "tester".to_owned(),
        ..AgentProgram::default()
    }
}

impl Talk {
    async fn says(&self, words: &str) -> (Result<PromptEnd, AgentFailure>, Heard) {
        let mut heard = Heard::default();
        let content = vec![json!({"type": "text", "text": words})];
        let ended = self
            .session
            .prompt(content, &mut heard, &self.people, &self.stop);
        (ended.await, heard)
    }

    async fn text(&self, words: &str) -> String {
        let (ended, heard) = self.says(words).await;
        assert_eq!(ended.expect("an answer").reason, StopReason::Done);
        heard.text.trim().to_owned()
    }

    async fn fails(&self, words: &str) -> AgentFailure {
        self.says(words).await.0.expect_err("no answer")
    }
}

impl PromptListener for Heard {
    fn text(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    fn thought(&mut self, piece: &str) {
        self.thoughts.push_str(piece);
    }

    fn tool_started(&mut self, _: &ReportedTool) {
        self.tools += 1;
    }

    fn tool_ended(&mut self, _: &ReportedTool) {}
}

impl AgentSupervisor for TestPeople {
    fn ask<'a>(
        &'a self,
        request: &'a PermissionRequest,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer> {
        lock(&self.asked).push(request.title.clone());
        let answer = *lock(&self.answer);
        ready(answer.unwrap_or(PermissionAnswer::Deny)).boxed()
    }

    fn note_tool(&self, tool: &ReportedTool) {
        lock(&self.noted).push(tool.clone());
    }

    fn look_out(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

fn lock<T>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::test]
async fn what_an_agent_says_and_does_is_heard() {
    let talk = talk(AgentBounds::default()).await;
    assert_eq!(talk.origin, SessionOrigin::New);
    assert_eq!(talk.text("say it is done").await, "it is done");
    let (_, heard) = talk.says("think about it").await;
    assert_eq!(
        (heard.text.as_str(), heard.thoughts.as_str()),
        ("thought", "hm, about it")
    );
    let (_, heard) = talk.says("tool ls -l").await;
    assert_eq!(heard.tools, 1);
    let noted = std::mem::take(&mut *lock(&talk.people.noted));
    let states: Vec<_> = noted
        .iter()
        .map(|tool| (tool.is_at_work, tool.has_failed))
        .collect();
    assert_eq!(states, [(true, false), (false, false)]);
    assert_eq!(noted[0].detail.as_deref(), Some("ls -l"));
}

#[tokio::test]
async fn a_person_answers_what_an_agent_asks_and_silence_is_no() {
    let talk = talk(AgentBounds::default()).await;
    assert_eq!(talk.text("ask rm x").await, "it was no");
    *lock(&talk.people.answer) = Some(PermissionAnswer::AllowOnce);
    assert_eq!(talk.text("ask rm x").await, "it was yes");
    *lock(&talk.people.answer) = Some(PermissionAnswer::AllowSession);
    assert_eq!(talk.text("ask rm x").await, "it was always");
    assert_eq!(lock(&talk.people.asked).len(), 3);
}

#[tokio::test]
async fn a_storm_of_questions_is_declined_beyond_a_few() {
    let bounds = AgentBounds {
        permissions: 5,
        ..AgentBounds::default()
    };
    let talk = talk(bounds).await;
    *lock(&talk.people.answer) = Some(PermissionAnswer::AllowOnce);
    let text = talk.text("storm 60").await;
    let asked = lock(&talk.people.asked).len();
    assert!(asked <= 5, "{asked} questions reached people");
    assert_eq!(text, format!("60 answered, {asked} allowed"));
}

#[tokio::test]
async fn nothing_of_ours_is_offered_and_what_is_asked_for_is_declined() {
    assert_eq!(
        talk(AgentBounds::default()).await.text("fs").await,
        "error -32601"
    );
}

#[tokio::test]
async fn lies_about_ids_are_not_heard() {
    let talk = talk(AgentBounds::default()).await;
    let (ended, heard) = talk.says("lie").await;
    assert_eq!(ended.expect("an answer").reason, StopReason::Done);
    assert_eq!((heard.text.as_str(), heard.tools), ("the truth", 0));
    assert!(lock(&talk.people.asked).is_empty(), "for another session");
    assert!(talk.session.is_alive());
}

#[tokio::test]
async fn one_that_is_told_to_stop_stops_or_is_given_up() {
    let bounds = AgentBounds {
        grace: SHORT,
        ..AgentBounds::default()
    };
    for (words, stops) in [("wait", true), ("hang", false), ("flood", false)] {
        let talk = talk(bounds).await;
        talk.stop.cancel();
        let (ended, _) = talk.says(words).await;
        match stops {
            true => assert_eq!(ended.expect("an end").reason, StopReason::Cancelled),
            false => assert!(ended.is_err(), "{words}"),
        }
    }
}

#[tokio::test]
async fn whatever_an_agent_does_its_turn_ends_with_a_word() {
    let bounds = AgentBounds {
        silence: SHORT * 5,
        bytes: 20 << 20,
        updates: 1000,
        ..AgentBounds::default()
    };
    for (words, why) in [
        ("die", "ended"),
        ("garbage", "something else than the Agent Client Protocol"),
        ("endless", "longer than any message"),
        ("flood", "wrote more than it may"),
        ("trickle 5000", "wrote more than it may"),
        ("hang", "no sign of life"),
        ("nothing", "cannot be understood"),
    ] {
        let failure = talk(bounds).await.fails(words).await;
        assert!(failure.to_string().contains(why), "{words}: {failure}");
    }
}

#[tokio::test]
async fn a_session_is_found_again_or_its_loss_is_known() {
    let home = tempfile::tempdir().expect("a folder");
    let opened = open(&[], &program(), (home, None), AgentBounds::default()).await;
    let talk = opened.expect("a session");
    talk.text("remember the milk").await;
    let Talk { session, home, .. } = talk;
    let id = session.id().to_owned();
    drop(session);

    let earlier = Some(id.as_str());
    let talk = open(&[], &program(), (home, earlier), AgentBounds::default()).await;
    let talk = talk.expect("a session");
    assert_eq!(
        (talk.origin, talk.session.id()),
        (SessionOrigin::Loaded, id.as_str())
    );
    // What is replayed at the load is no answer to anything.
    assert_eq!(talk.text("recall").await, "I remember: the milk");

    for options in [["--forgets"], ["--no-load"]] {
        let home = tempfile::tempdir().expect("a folder");
        let talk = open(
            &options,
            &program(),
            (home, earlier),
            AgentBounds::default(),
        )
        .await;
        let talk = talk.expect("a session");
        assert_eq!(talk.origin, SessionOrigin::Lost, "{options:?}");
        assert_ne!(talk.session.id(), id);
    }
}

/// A session that cannot be loaded is not given up, and nobody is left without a way on.
#[tokio::test]
async fn one_that_fails_at_its_earlier_session_says_that_new_helps() {
    // Its interpreter has to start within that.
    let bounds = AgentBounds {
        start: SHORT * 20,
        ..AgentBounds::default()
    };
    for (option, why) in [
        ("--dies-loading", "it ended"),
        ("--hangs-loading", "no sign of life"),
    ] {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join(".acp-agent-s1"), "the milk").expect("a file");
        let earlier = (home, Some("s1"));
        let opened = open(&[option], &program(), earlier, bounds).await;
        let failure = opened.err().expect("no session").to_string();
        assert!(failure.contains(why), "{option}: {failure}");
        assert!(failure.contains("/new begins a new one"), "{failure}");
    }
}

#[tokio::test]
async fn a_long_session_that_is_replayed_is_no_flood() {
    let bounds = AgentBounds {
        bytes: 1 << 20,
        ..AgentBounds::default()
    };
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join(".acp-agent-s1"), "the milk").expect("a file");
    let options = ["--replay-kib=3000"];
    let talk = open(&options, &program(), (home, Some("s1")), bounds).await;
    let talk = talk.expect("a session");
    assert_eq!(talk.origin, SessionOrigin::Loaded);
    assert_eq!(talk.text("recall").await, "I remember: the milk");
    // From then on the usual bound holds.
    let failure = talk.fails("flood").await.to_string();
    assert!(failure.contains("wrote more than it may"), "{failure}");
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join(".acp-agent-s1"), "").expect("a file");
    let options = ["--replay-kib=20000"];
    let opened = open(&options, &program(), (home, Some("s1")), bounds).await;
    let failure = opened.err().expect("no session").to_string();
    assert!(failure.contains("wrote more than it may"), "{failure}");
}

/// What an agent does not tell cannot be known from what it tells.
#[tokio::test]
async fn of_calls_that_are_too_many_it_is_not_believed_that_they_have_ended() {
    for (calls, leaves_work) in [(500, false), (501, true)] {
        let talk = talk(AgentBounds::default()).await;
        talk.stop.cancel();
        let (ended, heard) = talk.says(&format!("swarm {calls}")).await;
        let end = ended.expect("an end");
        assert_eq!(heard.tools, 500);
        assert_eq!(end.leaves_work, leaves_work, "{calls}");
        let noted = lock(&talk.people.noted);
        let last = noted.last().expect("a note");
        assert_eq!(
            last.title.contains("1 more calls than"),
            leaves_work,
            "{last:?}"
        );
    }
}

#[tokio::test]
async fn a_start_that_comes_to_nothing_says_why() {
    let impatient = AgentBounds {
        start: SHORT,
        ..AgentBounds::default()
    };
    let wrong_login = AgentProgram {
        authenticate: Some("browser".to_owned()),
        ..program()
    };
    for (options, program, bounds, why) in [
        (["--mute"], program(), impatient, "no sign of life"),
        (
            ["--version"],
            program(),
            AgentBounds::default(),
            "speaks version 7",
        ),
        (["--exit"], program(), AgentBounds::default(), "ended"),
        (
            ["--usage"],
            wrong_login,
            AgentBounds::default(),
            "no such login",
        ),
        (
            ["--login"],
            program(),
            AgentBounds::default(),
            "A login by a browser",
        ),
    ] {
        let home = tempfile::tempdir().expect("a folder");
        let opened = open(&options, &program, (home, None), bounds).await;
        let failure = opened.err().expect("no session").to_string();
        assert!(failure.contains(why), "{options:?}: {failure}");
    }
}

#[tokio::test]
async fn a_session_is_set_up_as_the_program_wants_it_where_that_is_offered() {
    for (mode, set) in [("free", true), ("chaos", false)] {
        let program = AgentProgram {
            session_mode: Some(mode.to_owned()),
            authenticate: Some("key".to_owned()),
            ..program()
        };
        let home = tempfile::tempdir().expect("a folder");
        let talk = open(&["--usage"], &program, (home, None), AgentBounds::default()).await;
        let talk = talk.expect("a session");
        let (ended, _) = talk.says("say hi").await;
        let usage = ended.expect("an answer").usage.expect("figures");
        assert_eq!((usage.input_tokens, usage.output_tokens), (700, 30));
        assert_eq!(talk.home.path().join("mode").exists(), set, "{mode}");
    }
}

#[tokio::test]
async fn what_was_chosen_is_set_once_and_what_is_not_offered_is_told() {
    let mut talk = talk(AgentBounds::default()).await;
    let chosen = |mode: Option<&str>, model: Option<&str>| AgentSettings {
        mode: mode.map(str::to_owned),
        model: model.map(str::to_owned),
    };
    assert!(talk.session.set(&AgentSettings::default()).await.is_empty());
    assert_eq!(talk.text("setting model").await, "model: as it was");
    // Beyond a sixteenth, and by what the agent calls it.
    let told = talk
        .session
        .set(&chosen(Some("free"), Some("model 39")))
        .await;
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(talk.text("setting model").await, "model: m39");
    assert_eq!(talk.text("setting mode").await, "mode: free");
    let told = talk.session.set(&chosen(Some("chaos"), Some("m13"))).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("does not offer the mode chaos"),
        "{told:?}"
    );
    assert!(told[1].contains("did not take the model m13") && told[1].contains("not on this plan"));
    // Said once, and the agent is left alone with what it is set to.
    let told = talk.session.set(&chosen(Some("chaos"), Some("m13"))).await;
    assert!(told.is_empty(), "{told:?}");
    talk.session.set(&AgentSettings::default()).await;
    assert_eq!(
        talk.text("setting model").await,
        "model: m0",
        "what it began with"
    );
    assert_eq!(talk.text("setting mode").await, "mode: ask");
}

#[tokio::test]
async fn one_that_asks_twice_or_lies_about_what_it_asks_gets_no_more_than_a_no() {
    let talk = talk(AgentBounds::default()).await;
    assert_eq!(talk.text("twice rm x").await, "answered 2 times");
    // What it calls its options is not what they are taken for: a no is the kind that says no.
    assert_eq!(talk.text("asks").await, "it was yes");
    let asked = lock(&talk.people.asked).clone();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(talk.session.is_alive());
}

#[tokio::test]
async fn tools_that_are_renamed_and_plans_without_measure_fill_nothing() {
    let talk = talk(AgentBounds::default()).await;
    assert_eq!(talk.text("rename 3000").await, "renamed");
    let noted = std::mem::take(&mut *lock(&talk.people.noted));
    assert!((1000..=1001).contains(&noted.len()), "{}", noted.len());
    assert_eq!(noted[0].title, "ls");
    assert_eq!(
        noted[1].title, "rm -r 0",
        "the new name is the recorded one"
    );
    assert_eq!(talk.text("plans 60").await, "planned");
}

#[tokio::test]
async fn what_an_agent_asks_after_it_was_told_to_stop_reaches_nobody() {
    let talk = talk(AgentBounds::default()).await;
    talk.stop.cancel();
    let (ended, heard) = talk.says("late").await;
    assert_eq!(ended.expect("an end").reason, StopReason::Cancelled);
    assert!(lock(&talk.people.asked).is_empty());
    assert!(heard.text.contains("too late"), "{}", heard.text);
    assert!(talk.session.is_alive());
}
