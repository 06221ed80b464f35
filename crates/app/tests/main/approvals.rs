//! A person decides: who is asked, whose answer counts, and that nothing runs twice.
//!
//! On the host itself, because only there is anybody asked.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use hermetic_testkit::chat::{Record, Speech};
use hermetic_testkit::model::Reply;
use hermetic_types::MessageId;
use serde_json::json;

use crate::lab::{ALICE, BOB, Lab, post, webhook};

const SECOND: Duration = Duration::from_secs(1);

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
pub(super) async fn lab(script: impl IntoIterator<Item = Reply>, more: &str) -> Lab {
    let approvals = config(&format!("approvers: ['telegram:7'], {more}"));
    let builder = Lab::builder().script(script);
    builder.config(&approvals).start().await
}

/// The name of the question that was asked last.
pub(super) fn name(question: &str) -> String {
    let name = question.split("❓ ").nth(1).expect("a question");
    name.split(':').next().unwrap().to_owned()
}

/// The message with the last question in this chat, and what its buttons carry.
fn buttons(lab: &Lab, user: i64) -> (MessageId, Vec<(String, String)>) {
    lab.chat().record().buttons(&user.into())
}

pub(super) fn press(lab: &Lab, presser: i64, chat: i64, label: &str) {
    lab.chat().presses(presser, chat, label);
}

pub(super) async fn notices(lab: &Lab, count: usize) -> Vec<String> {
    lab.notices(count).await
}

#[tokio::test]
async fn an_approver_is_asked_in_the_same_chat_and_a_yes_counts_once() {
    let deed = Deed::new();
    let lab = lab([], "").await;
    let sh = format!("/sh {}", deed.command());
    let question = lab.ask(ALICE, &sh).await;
    assert!(
        question.contains("may I run this?") && question.contains("chmod 777"),
        "{question}"
    );
    assert_eq!(deed.times(), 0, "it ran before anybody answered");
    lab.says(ALICE, "/approve");
    let replies = lab.replies(ALICE, 3).await;
    assert!(
        replies.iter().any(|reply| reply.ends_with("allowed once.")),
        "{replies:?}"
    );
    assert_eq!(deed.times(), 1);
    // Once is once.
    let again = lab.ask(ALICE, &sh).await;
    assert!(again.contains("may I run this?"), "{again}");
    lab.says(ALICE, "/deny not now");
    let replies = lab.replies(ALICE, 6).await;
    assert!(
        replies
            .iter()
            .any(|reply| reply.contains("said no: not now")),
        "{replies:?}"
    );
    assert_eq!(deed.times(), 1);
    // All of it is in the record.
    let shown = lab.audit("answered");
    assert!(
        shown.contains(r#""answer":"approved""#) && shown.contains(r#""reason":"not now""#),
        "{shown}"
    );
    let shown = lab.audit("command");
    assert!(shown.contains(r#""decision":"deny""#), "{shown}");
}

#[tokio::test]
async fn silence_is_no_and_a_late_button_says_so() {
    let deed = Deed::new();
    let lab = lab([], "timeout: 1").await;
    lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    lab.pass(2 * SECOND).await;
    let reply = lab.replies(ALICE, 2).await.remove(1);
    assert!(
        reply.contains("nobody answered within 1 seconds"),
        "{reply}"
    );
    press(&lab, ALICE, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.contains("ran out of time"), "{notice}");
    // The message does not ask any more.
    let edited = |record: &Record| !record.edits.is_empty();
    let record = lab.chat().wait_for("an edit", edited).await;
    let text = record.edits[0].text();
    assert!(text.contains("nobody answered"), "{text}");
    assert_eq!(deed.times(), 0);
}

#[tokio::test]
async fn somebody_who_may_not_approve_cannot_approve_himself() {
    let deed = Deed::new();
    let lab = lab([], "").await;
    let told = lab.ask(BOB, &format!("/sh {}", deed.command())).await;
    assert!(told.contains("somebody who may give it"), "{told}");
    let question = lab.replies(ALICE, 1).await.remove(0);
    let id = name(&question);
    for words in [
        "/approve",
        &format!("/approve {id}"),
        &format!("/deny {id}"),
    ] {
        let reply = lab.ask(BOB, words).await;
        assert!(
            reply.contains("Only somebody who may approve"),
            "{words}: {reply}"
        );
    }
    // Not with a button either, should he come by what it carries.
    press(&lab, BOB, ALICE, "Allow once");
    let notice = notices(&lab, 1).await.remove(0);
    assert!(notice.contains("Only somebody who may approve"), "{notice}");
    assert_eq!(deed.times(), 0);
    press(&lab, ALICE, ALICE, "Allow once");
    lab.replies(BOB, 5).await;
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn a_button_is_good_for_its_own_question_and_cannot_be_made_up() {
    let deed = Deed::new();
    let lab = lab([], "").await;
    let sh = format!("/sh {}", deed.command());
    lab.ask(ALICE, &sh).await;
    let (message, old) = buttons(&lab, ALICE);
    press(&lab, ALICE, ALICE, "Deny");
    lab.replies(ALICE, 2).await;
    lab.ask(ALICE, &sh).await;
    let (_, new) = buttons(&lab, ALICE);
    let old = &old.iter().find(|(text, _)| text == "Allow once").unwrap().1;
    let new = &new.iter().find(|(text, _)| text == "Allow once").unwrap().1;
    assert_ne!(old, new);
    // The yes of the last question, and what somebody might make up from the one at hand.
    let made_up = [
        old.clone(),
        new.to_uppercase(),
        format!("{new} "),
        new[..new.len() - 1].to_owned(),
        format!("{new}{new}"),
        "once".to_owned(),
        "%".to_owned(),
        "' OR 1=1 --".to_owned(),
    ];
    for data in &made_up {
        lab.chat().presses_data(ALICE, &message, data);
    }
    let told = notices(&lab, 1 + made_up.len()).await;
    assert!(
        told.iter().all(|text| !text.contains("allowed")),
        "{told:?}"
    );
    assert_eq!(deed.times(), 0);
    press(&lab, ALICE, ALICE, "Allow once");
    lab.replies(ALICE, 4).await;
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn of_two_approvers_at_once_one_is_too_late_and_a_press_twice_does_nothing() {
    let deed = Deed::new();
    // Nobody is named, so that everybody on the allowlist may approve.
    let lab = Lab::builder().config(&config("")).start().await;
    let question = lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    press(&lab, ALICE, ALICE, "Allow once");
    press(&lab, BOB, ALICE, "Deny");
    press(&lab, ALICE, ALICE, "Allow once");
    lab.says(BOB, &format!("/approve {}", name(&question)));
    let notices = notices(&lab, 3).await;
    let late = notices
        .iter()
        .filter(|text| text.starts_with("Too late"))
        .count();
    assert_eq!(late, 2, "{notices:?}");
    assert!(lab.replies(BOB, 1).await[0].starts_with("Too late"));
    let reply = lab.replies(ALICE, 2).await.remove(1);
    let expected = usize::from(!reply.contains("said no"));
    assert_eq!(deed.times(), expected, "{reply}");
    let answered = lab.audit("answered");
    assert_eq!(answered.lines().count(), 1, "{answered}");
}

#[tokio::test]
async fn a_session_is_allowed_exactly_this_until_it_starts_anew() {
    let (deed, other) = (Deed::new(), Deed::new());
    let lab = lab([], "").await;
    let sh = format!("/sh {}", deed.command());
    let id = name(&lab.ask(ALICE, &sh).await);
    lab.says(ALICE, &format!("/approve {id} session"));
    lab.replies(ALICE, 3).await;
    let reply = lab.ask(ALICE, &sh).await;
    assert!(!reply.contains("may I run this?"), "{reply}");
    assert_eq!(deed.times(), 2);
    let asked = lab.ask(ALICE, &format!("/sh {}", other.command())).await;
    assert!(asked.contains("may I run this?"), "{asked}");
    lab.says(ALICE, "/deny");
    lab.replies(ALICE, 7).await;
    lab.ask(ALICE, "/new").await;
    let anew = lab.ask(ALICE, &sh).await;
    assert!(anew.contains("may I run this?"), "{anew}");
}

#[tokio::test]
async fn a_yes_without_a_name_is_for_what_was_shown_before_it_was_written() {
    let (deed, other) = (Deed::new(), Deed::new());
    let lab = lab([], "").await;
    lab.ask(ALICE, &format!("/sh {}", deed.command())).await;
    let (shown, _) = buttons(&lab, ALICE);
    // The question, the stop and what was interrupted.
    lab.says(ALICE, "/stop");
    lab.replies(ALICE, 3).await;
    let second = name(&lab.ask(ALICE, &format!("/sh {}", other.command())).await);
    // Written right after the first question, and heard after the second was asked.
    let shown: i64 = shown.as_str().parse().unwrap();
    let late = Speech::by(ALICE, "/approve").numbered(shown + 1);
    lab.chat().hear(late);
    let told = lab.replies(ALICE, 5).await.remove(4);
    assert!(
        told.contains(&second) && told.contains("cannot be told"),
        "{told}"
    );
    assert_eq!((deed.times(), other.times()), (0, 0));
    lab.says(ALICE, "/approve");
    lab.replies(ALICE, 7).await;
    assert_eq!((deed.times(), other.times()), (0, 1));
}

#[tokio::test]
async fn what_is_only_known_when_it_runs_is_asked_about_each_time() {
    let deed = Deed::new();
    let lab = lab([], "").await;
    let sh = format!("/sh {} && cat \"$(cat pointer)\"", deed.command());
    let asked = lab.ask(ALICE, &sh).await;
    assert!(asked.contains("only known when it runs"), "{asked}");
    assert!(!asked.contains("session"), "{asked}");
    let id = name(&asked);
    lab.says(ALICE, &format!("/approve {id} session"));
    let replies = lab.replies(ALICE, 3).await;
    let answered = |reply: &String| reply.contains("allowed once");
    assert!(replies.iter().any(answered), "{replies:?}");
    let again = lab.ask(ALICE, &sh).await;
    assert!(again.contains("may I run this?"), "{again}");
    assert_eq!(deed.times(), 1);
}

#[tokio::test]
async fn a_name_of_the_webhook_answers_for_its_own_messages_only() {
    let deed = Deed::new();
    let (secret, access) = webhook();
    let approvers = config("approvers: ['webhook:alice', 'webhook:carol']");
    let lab = Lab::builder()
        .configured_chats()
        .config(&approvers)
        .access(&access)
        .start()
        .await;
    let say = async |user: &str, text: &str| {
        let body = json!({"chat": user, "user": user, "text": text}).to_string();
        post(lab.intake(), lab.clock(), &secret, &body).await
    };
    let asked = say("carol", &format!("/sh {}", deed.command())).await;
    let id = name(&asked);
    // Neither by its name nor by a look at what waits.
    let others = say("alice", &format!("/approve {id}")).await;
    assert!(others.contains("Only somebody who may approve"), "{others}");
    let looked = say("alice", "/approve").await;
    assert!(looked.contains("Nothing waits"), "{looked}");
    assert_eq!(deed.times(), 0);
    let own = say("carol", &format!("/approve {id}")).await;
    assert!(own.contains("200"), "{own}");
    // Done once it is over: the next command of that chat waits for it.
    say("carol", "/sh true").await;
    assert_eq!(deed.times(), 1);
}
