//! Questions that are asked where one sits, and answered there or by nobody.

use std::os::unix::fs::MetadataExt;

use hermetic_testkit::model::Reply;
use serde_json::json;

use super::{Chat, with_model};
use crate::flow::lab::calls_terminal;
use crate::hermetic::Hermetic;

/// What takes a yes on the host, and shows whether it was done.
struct Delicate(tempfile::NamedTempFile);

impl Delicate {
    fn new() -> Self {
        Self(tempfile::NamedTempFile::new().unwrap())
    }

    fn command(&self) -> String {
        format!("chmod 777 {}", self.0.path().display())
    }

    fn was_done(&self) -> bool {
        self.0.as_file().metadata().unwrap().mode() & 0o777 == 0o777
    }
}

const ON_THE_HOST: [&str; 2] = ["--backend", "local"];
const CHOICES: &str = "y: once, s: this session, n: no › ";

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_where_one_sits_and_a_yes_runs_it() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let script = [calls_terminal(&command), Reply::streams(&["It is done."])];
    let test = "a_question_is_asked_where_one_sits_and_a_yes_runs_it";
    let Some((hermetic, _model)) = with_model(test, script).await else {
        return;
    };
    let mut chat = Chat::at_a_terminal(&hermetic, &ON_THE_HOST);
    chat.types("clean up");
    let shown = chat.until(CHOICES);
    assert!(
        shown.contains("May I run this?") && shown.contains(&command),
        "{shown}"
    );
    chat.types("what does it do?");
    chat.until(CHOICES);
    assert!(!delicate.was_done(), "it ran before anybody said yes");
    chat.types("y");
    chat.until("It is done.");
    assert!(delicate.was_done());
    let record = hermetic.run(&["audit", "show", "--json"]).out;
    assert!(
        record.contains("terminal") && record.contains("approved"),
        "{record}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_the_question_does_not_answer_it() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let script = [
        calls_terminal(&command),
        Reply::streams(&["You said no."]),
        Reply::streams(&["Yes to what?"]),
    ];
    let test = "what_was_typed_before_the_question_does_not_answer_it";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let mut chat = Chat::at_a_terminal(&hermetic, &ON_THE_HOST);
    chat.types("clean up");
    chat.types("y");
    chat.until(CHOICES);
    chat.types("n not today");
    chat.until("You said no.");
    // What was typed ahead is the next thing said.
    chat.until("Yes to what?");
    assert!(!delicate.was_done());
    let told = model.received()[1].body["messages"].to_string();
    assert!(told.contains("A person said no: not today"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_ends_with_what_was_said() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let hermetic = Hermetic::new();
    let mut chat = Chat::at_a_terminal(&hermetic, &ON_THE_HOST);
    let typed = format!("/sh {command}; echo done");
    chat.types(&typed);
    chat.until(CHOICES);
    chat.types("s");
    chat.until("done");
    chat.types(&typed);
    assert!(!chat.until("done").contains("May I"));
    chat.types("/new");
    chat.until("A fresh conversation");
    chat.types(&typed);
    chat.until(CHOICES);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_a_question_is_no_yes() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let test = "ctrl_c_at_a_question_is_no_yes";
    let Some((hermetic, _model)) = with_model(test, [calls_terminal(&command)]).await else {
        return;
    };
    let mut chat = Chat::at_a_terminal(&hermetic, &ON_THE_HOST);
    chat.types("clean up");
    chat.until(CHOICES);
    chat.interrupt();
    chat.until("[Interrupted.]");
    assert!(!delicate.was_done());
    assert_eq!(
        hermetic.run(&["approvals", "list", "--json"]).json(),
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_sits_it_is_refused_with_the_reason() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let script = [calls_terminal(&command), Reply::streams(&["I may not."])];
    let test = "where_nobody_sits_it_is_refused_with_the_reason";
    let Some((hermetic, model)) = with_model(test, script).await else {
        return;
    };
    let ended = hermetic.run(&["chat", "--backend", "local", "-q", "clean up"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "I may not.\n"));
    assert!(
        ended.err.contains("nobody is at a keyboard"),
        "{}",
        ended.err
    );
    let told = model.received()[1].body["messages"].to_string();
    assert!(told.contains("nobody is at a keyboard"), "{told}");
    let mut piped = Chat::start(&hermetic, &ON_THE_HOST);
    piped.types(&format!("/sh {command}"));
    piped.until("nobody is at a keyboard");
    assert!(!delicate.was_done());
}

/// On the host the agent could start this very program, with a terminal of its own making.
#[test]
fn what_the_agent_runs_is_not_somebody_at_a_keyboard() {
    let delicate = Delicate::new();
    let command = delicate.command();
    let hermetic = Hermetic::new().file("memories/USER.md", "is called Ada");
    let chat = format!(
        "HERMES_HOME={} {} chat --backend local",
        hermetic.path("").display(),
        env!("CARGO_BIN_EXE_hermetic")
    );
    let inside =
        format!("printf '/sh {command}\\ny\\n/memory\\n/quit\\n' | script -qec '{chat}' /dev/null");
    let ended = hermetic.run(&[
        "exec",
        "--backend",
        "local",
        "--yes",
        "--",
        "sh",
        "-c",
        &inside,
    ]);
    assert!(
        ended.out.contains("nobody is at a keyboard"),
        "{}{}",
        ended.out,
        ended.err
    );
    assert!(!delicate.was_done());
    assert!(
        ended.out.contains("Nothing is remembered here") && !ended.out.contains("Ada"),
        "{}",
        ended.out
    );
}
