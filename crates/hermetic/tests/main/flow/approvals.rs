//! A person decides: who is asked, whose answer counts, and that nothing runs twice.
//!
//! On the host itself, because only there is anybody asked.

use std::fs;
use std::path::PathBuf;

use hermetic_testkit::model::Reply;
use serde_json::Value;

use super::lab::{ALICE, BOB, Lab, calls_terminal};

/// A command that has to be asked about, and leaves a line for each time it ran.
pub(super) struct Deed {
    folder: tempfile::TempDir,
}

impl Deed {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn count(&self) -> PathBuf {
        self.folder.path().join("count")
    }

    pub(super) fn command(&self) -> String {
        let count = self.count();
        let count = count.display();
        format!("echo ran >> {count}; chmod 777 {count}")
    }

    pub(super) fn times(&self) -> usize {
        fs::read_to_string(self.count()).map_or(0, |text| text.lines().count())
    }
}

pub(super) fn config(approvals: &str) -> String {
    format!("gateway: {{terminal_backend: local}}\napprovals: {{mode: manual, {approvals}}}\n")
}

/// A lab in which Alice may approve and Bob may only write.
pub(super) async fn lab(
    test: &str,
    script: impl IntoIterator<Item = Reply>,
    more: &str,
) -> Option<Lab> {
    let approvals = format!("approvers: ['telegram:7'], {more}");
    Lab::start_with(
        test,
        script,
        &config(&approvals),
        "TELEGRAM_ALLOWED_USERS=7,8",
    )
    .await
}

/// The name of the question that was asked last.
pub(super) fn name(question: &str) -> String {
    let name = question.split("❓ ").nth(1).expect("a question");
    name.split(':').next().unwrap().to_owned()
}

/// The message with the last question in this chat, and what its buttons carry.
fn buttons(lab: &Lab, user: i64) -> (i64, Vec<(String, String)>) {
    let calls = lab.telegram.calls("sendMessage");
    let call = calls
        .iter()
        .rfind(|call| call.params["chat_id"] == user && call.params["reply_markup"].is_object())
        .expect("a question with buttons");
    let rows = call.params["reply_markup"]["inline_keyboard"].as_array();
    let text = |button: &Value, field: &str| button[field].as_str().unwrap().to_owned();
    let buttons = rows.unwrap().iter().flat_map(|row| row.as_array().unwrap());
    let buttons = buttons.map(|one| (text(one, "text"), text(one, "callback_data")));
    (call.message, buttons.collect())
}

pub(crate) fn press(lab: &Lab, presser: i64, chat: i64, label: &str) {
    let (message, buttons) = buttons(lab, chat);
    let (_, data) = buttons.iter().find(|(text, _)| text == label).unwrap();
    lab.telegram.presses(presser, message, data);
}

pub(super) async fn notices(lab: &Lab, count: usize) -> Vec<String> {
    let calls = lab.telegram.wait_for("answerCallbackQuery", count).await;
    let text =
        |call: &hermetic_testkit::telegram::Call| call.params["text"].as_str().unwrap().to_owned();
    calls.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_waits_the_question_stands_and_the_old_button_counts() {
    let deed = Deed::new();
    let test = "killed_while_it_waits_the_question_stands_and_the_old_button_counts";
    let Some(mut lab) = lab(test, [], "").await else {
        return;
    };
    lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.kill();
    lab.restart();
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.ends_with("allowed once."), "{notice}");
    // Killed right after the question was sent, it may have been sent again.
    let mut replies = lab.replies(ALICE, 2).await;
    if replies[1].contains("may I run this?") {
        replies = lab.replies(ALICE, 3).await;
        assert_eq!(name(&replies[0]), name(&replies[1]));
    }
    assert_eq!(deed.times(), 1, "{replies:?}");
    lab.terminate();
    lab.restart();
    assert!(lab.ask(ALICE, "/help").await.contains("/approve"));
    assert_eq!(deed.times(), 1, "it ran again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_given_while_the_gateway_is_down_is_taken_up_by_the_turn() {
    let deed = Deed::new();
    let test = "a_yes_given_while_the_gateway_is_down_is_taken_up_by_the_turn";
    let script = [
        calls_terminal(&deed.command()),
        calls_terminal(&deed.command()),
        Reply::streams(&["done"]),
    ];
    let Some(mut lab) = lab(test, script, "").await else {
        return;
    };
    lab.telegram.says(ALICE, "do it");
    let id = name(&lab.replies(ALICE, 1).await.remove(0));
    lab.kill();
    let ended = lab.run(&["approvals", "approve", &id]);
    assert!(
        ended.code == 0 && ended.out.contains("not running"),
        "{}{}",
        ended.out,
        ended.err
    );
    assert!(lab.run(&["audit", "show"]).out.contains("answer=approved"));
    lab.restart();
    let reply = lab.replies(ALICE, 2).await.remove(1);
    assert!(reply.ends_with("done"), "{reply}");
    // The model knew that nothing had run, and asked for it again.
    assert!(
        lab.asked()[1].contains("not run: a restart came first"),
        "{}",
        lab.asked()[1]
    );
    assert_eq!(deed.times(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_answers_a_running_gateway() {
    let (deed, other) = (Deed::new(), Deed::new());
    let Some(lab) = lab("the_command_line_answers_a_running_gateway", [], "").await else {
        return;
    };
    // Two at once, told apart by their names.
    let first = name(&lab.ask(ALICE, &format!("/sh {}", deed.command())).await);
    let bobs = format!("/sh {}", other.command());
    let second = name(&lab.ask_through(BOB, &bobs, ALICE).await);
    let several = lab.ask(ALICE, "/approve").await;
    assert!(
        several.contains(&first) && several.contains(&second),
        "{several}"
    );
    let listed = lab.run(&["approvals", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(lab.run(&["approvals", "deny", &first, "no", "way"]).code, 0);
    assert_eq!(lab.run(&["approvals", "approve", &second]).code, 0);
    let replies = lab.replies(ALICE, 4).await;
    let no = replies
        .iter()
        .find(|reply| reply.contains("said no: no way"));
    // What is meant for the model is not shown to people.
    assert!(
        no.is_some_and(|no| !no.contains("another way")),
        "{replies:?}"
    );
    lab.replies(BOB, 2).await;
    assert_eq!((deed.times(), other.times()), (0, 1));
    let late = lab.run(&["approvals", "approve", &first]);
    assert!(
        late.code == 1 && late.err.contains("is refused"),
        "{}",
        late.err
    );
    assert_eq!(lab.run(&["approvals", "approve", "zzzzz"]).code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_runs_cannot_answer_for_a_person() {
    let deed = Deed::new();
    let test = "what_the_agent_runs_cannot_answer_for_a_person";
    let Some(lab) = lab(test, [], "").await else {
        return;
    };
    let bobs = format!("/sh {}", deed.command());
    let id = name(&lab.ask_through(BOB, &bobs, ALICE).await);
    // Straight, it is asked about.
    let program = env!("CARGO_BIN_EXE_hermetic");
    let straight = lab
        .ask(ALICE, &format!("/sh {program} approvals approve {id}"))
        .await;
    assert!(straight.contains("answers for a person"), "{straight}");
    lab.telegram
        .says(ALICE, &format!("/deny {}", name(&straight)));
    lab.replies(ALICE, 4).await;
    // Behind the policy's back, as a file that nobody read, it is refused by itself.
    let script = deed.folder.path().join("innocent.py");
    let code = format!(
        "import subprocess, sys\nfor words in ['approvals approve {id}', 'dashboard token', 'dashboard link', \
         'pairing approve telegram ABCD2345', 'egress allow evil.example', 'backup /tmp/never.tar']:\n    \
         r = subprocess.run([{program:?}, '--home', sys.argv[1], *words.split()], capture_output=True, text=True)\n    \
         print(r.returncode, r.stdout, r.stderr)\n"
    );
    fs::write(&script, code).unwrap();
    let reply = lab
        .ask(
            ALICE,
            &format!("/sh python3 {} {}", script.display(), lab.home().display()),
        )
        .await;
    assert_eq!(
        reply.matches("cannot answer for a person").count(),
        6,
        "{reply}"
    );
    assert_eq!(deed.times(), 0);
}
