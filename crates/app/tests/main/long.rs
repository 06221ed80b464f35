//! Long conversations, and the way back in them.

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hermetic_store::ViewBounds;
use hermetic_testkit::chat::Speech;
use hermetic_testkit::model::{Piece, Reply};
use hermetic_types::ConversationKey;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::lab::{ALICE, BOB, Lab, calls_terminal, calls_tool, has_sandboxes};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The conversation with Alice.
const ALICES: &str = "agent:main:telegram:dm:7";
/// What the model that summarises is told first.
const TASK: &str = "You keep the notes of a conversation";

fn says(text: &str) -> Reply {
    Reply::events([json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})])
}

fn is_task(asked: &Value) -> bool {
    asked["messages"][0]["content"].to_string().contains(TASK)
}

fn last_words(asked: &Value) -> String {
    let messages = asked["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Long answers that repeat the question, and short notes.
fn talkative(asked: &Value) -> Reply {
    match is_task(asked) {
        true => says("NOTES"),
        false => says(&format!("to {}: {}", last_words(asked), "x".repeat(3000))),
    }
}

/// A gateway whose model can see 20,000 tokens, by the table that a person edits.
async fn narrow(builder: crate::lab::Builder) -> Lab {
    let mut lab = builder.config("streaming: false\n").start().await;
    lab.stop().await;
    fs::write(lab.path("models.txt"), "scripted 20000 - -\n").unwrap();
    lab.start().await;
    lab
}

async fn ask_until_summarised(lab: &Lab, user: i64) -> usize {
    for number in 0..20 {
        let said = lab.ask(user, &format!("question {number}")).await;
        assert!(said.contains(&format!("to question {number}")), "{said}");
        if said.starts_with("[This conversation has become long: I have summarised") {
            return number;
        }
    }
    panic!("it was never summarised");
}

#[tokio::test]
async fn a_long_conversation_is_summarised_and_a_restart_knows_the_summary_and_all_that_was_said() {
    let mut lab = narrow(Lab::builder().answering(talkative)).await;
    let last = ask_until_summarised(&lab, ALICE).await;
    lab.restart().await;
    lab.ask(ALICE, "and now?").await;
    let asked = lab.asked();
    let shown = asked.last().unwrap();
    assert!(
        shown.contains("NOTES") && shown.contains("> question 0"),
        "{shown}"
    );
    assert!(!shown.contains("to question 0"), "{shown}");
    assert_eq!(asked.iter().filter(|asked| asked.contains(TASK)).count(), 1);
    let history = lab.store().await.history();
    let conversation = ConversationKey::new(ALICES);
    let lines = history
        .lines(&conversation, ViewBounds::default())
        .await
        .unwrap();
    assert_eq!(lines.len(), (last + 2) * 2, "nothing is struck out");
    lab.stop().await;
}

#[tokio::test]
async fn a_gateway_killed_anywhere_in_a_summary_has_the_old_history_or_the_new_one() {
    let mut lab = narrow(Lab::builder().answering(talkative)).await;
    let due = ask_until_summarised(&lab, ALICE).await;
    lab.ask(ALICE, "/new").await;
    // How often it waits in a turn with a summary, from a conversation that is about to be due.
    for death in [1, 4, 8, 12, 16, 20, 25, 30, 40] {
        for number in 0..due {
            lab.ask(ALICE, &format!("question {number}")).await;
        }
        let seen = lab.sent_to(ALICE);
        lab.dies_after(death);
        lab.says(ALICE, "the last");
        let ended = async {
            while !lab.is_dead() && lab.sent_to(ALICE) == seen {
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, ended).await.expect("dead or answered");
        lab.crash_and_start().await;
        let answered = async {
            while lab.sent_to(ALICE) == seen {
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, answered).await.expect("an answer");
        let replies = lab.replies(ALICE, seen + 1).await;
        assert!(
            replies[seen].contains("to the last"),
            "{death}: {}",
            replies[seen]
        );
        let conversation = ConversationKey::new(ALICES);
        let history = lab.store().await.history();
        let view = history
            .view(&conversation, ViewBounds::default())
            .await
            .unwrap();
        let said = view
            .lines
            .iter()
            .filter(|line| line.text.contains("\"the last\""));
        assert_eq!(said.count(), 1, "{death}: its words are there once");
        let all = history
            .lines(&conversation, ViewBounds::default())
            .await
            .unwrap();
        assert_eq!(all.len(), (due + 1) * 2, "{death}: all of it is kept");
        lab.ask(ALICE, "/new").await;
    }
    lab.stop().await;
}

/// Whoever is called `stuck` never gets notes.
fn stuck(asked: &Value) -> Reply {
    let whole = asked.to_string();
    match is_task(asked) && whole.contains("stuck") {
        true => Reply::events([]).then(Piece::Stall),
        false => talkative(asked),
    }
}

#[tokio::test]
async fn a_summary_that_takes_for_ever_holds_up_nobody_else_and_can_be_stopped() {
    let lab = narrow(Lab::builder().answering(stuck)).await;
    let mut asked = 0;
    while !lab.asked().iter().any(|asked| asked.contains(TASK)) {
        let seen = lab.sent_to(ALICE);
        lab.says(ALICE, &format!("stuck {asked}"));
        asked += 1;
        let answered = async {
            while lab.sent_to(ALICE) == seen
                && !lab.asked().iter().any(|asked| asked.contains(TASK))
            {
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, answered)
            .await
            .expect("an answer or a summary");
    }
    assert!(lab.ask(BOB, "hello").await.starts_with("to hello"));
    let seen = lab.sent_to(ALICE);
    lab.says(ALICE, "/stop");
    // What was stopped says so, too, and may be first.
    let told = lab.replies(ALICE, seen + 2).await;
    assert!(told.iter().any(|reply| reply == "Stopped."), "{told:?}");
}

#[tokio::test]
async fn fifty_conversations_are_summarised_at_once() {
    let people: Vec<i64> = (100..150).collect();
    let names: Vec<_> = people.iter().map(i64::to_string).collect();
    let access = format!("TELEGRAM_ALLOWED_USERS={}", names.join(","));
    let lab = narrow(Lab::builder().access(&access).answering(talkative)).await;
    let each = people
        .iter()
        .map(|person| ask_until_summarised(&lab, *person));
    let rounds = timeout(PATIENCE * 3, futures::future::join_all(each)).await;
    assert_eq!(rounds.expect("all of them").len(), 50);
    let tasks = lab.asked();
    assert_eq!(
        tasks.iter().filter(|asked| asked.contains(TASK)).count(),
        50
    );
}

#[tokio::test]
async fn a_summary_is_counted_like_any_request_and_refused_where_the_budget_is_reached() {
    let mut lab = narrow(Lab::builder().answering(talkative)).await;
    for number in 0..2 {
        lab.ask(BOB, &format!("question {number}")).await;
    }
    lab.stop().await;
    let config = lab.path("config.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(
        config,
        format!("{text}budgets: {{person: {{tokens: 10}}}}\n"),
    )
    .unwrap();
    lab.start().await;
    let said = lab.ask(BOB, "and another").await;
    assert!(said.contains("your budget for today is reached"), "{said}");
    let asked = lab.asked().len();
    lab.ask(BOB, "/compact").await;
    assert_eq!(lab.asked().len(), asked, "nobody was asked for notes");
}

#[tokio::test]
async fn a_person_has_it_summarised_takes_it_back_and_says_it_again() {
    let lab = narrow(Lab::builder().answering(talkative)).await;
    assert_eq!(
        lab.ask(ALICE, "/undo").await,
        "There is nothing to take back."
    );
    assert_eq!(
        lab.ask(ALICE, "/retry").await,
        "There is nothing to say once more."
    );
    lab.ask(ALICE, "alpha-word").await;
    lab.ask(ALICE, "beta-word").await;
    let said = lab.ask(ALICE, "/compress").await;
    assert!(said.starts_with("Summarised: 2 messages"), "{said}");
    let said = lab.ask(ALICE, "/compact").await;
    assert!(
        said.starts_with("There is nothing to summarise yet"),
        "{said}"
    );
    let said = lab.ask(ALICE, "/undo").await;
    assert_eq!(
        said,
        "Taken back: your last message (beta-word) and my answer. No files were touched by it."
    );
    lab.ask(ALICE, "gamma-word").await;
    let shown = lab.asked().last().unwrap().clone();
    assert!(
        shown.contains("NOTES") && !shown.contains("beta-word"),
        "{shown}"
    );
    // What a summary stands for comes back with it.
    lab.ask(ALICE, "/undo").await;
    lab.ask(ALICE, "/undo").await;
    lab.ask(ALICE, "delta-word").await;
    let shown = lab.asked().last().unwrap().clone();
    assert!(
        !shown.contains("NOTES") && !shown.contains("alpha-word"),
        "{shown}"
    );
    assert!(lab.ask(ALICE, "/retry").await.starts_with("to delta-word"));
    let again = lab.asked().last().unwrap().clone();
    assert_eq!(again, shown, "the same question, without the first answer");
}

#[tokio::test]
async fn what_was_said_before_is_resumed_in_its_own_conversation_only() {
    let lab = narrow(Lab::builder().answering(talkative)).await;
    lab.ask(ALICE, "a secret plan").await;
    let said = lab.ask(ALICE, "/new").await;
    assert!(said.starts_with("A fresh conversation"), "{said}");
    let listed = lab.ask(ALICE, "/sessions").await;
    assert!(listed.contains("a secret plan"), "{listed}");
    let name = listed
        .lines()
        .find_map(|line| line.strip_prefix("/resume "));
    let name = name.unwrap().split(' ').next().unwrap().to_owned();
    let refused = lab.ask(BOB, &format!("/resume {name}")).await;
    assert!(
        refused.starts_with("This conversation has no such session"),
        "{refused}"
    );
    assert!(!lab.ask(BOB, "/sessions").await.contains("secret"));
    // Nor by the same person where others read along.
    let group = -500;
    for words in [format!("/resume {name}"), "/sessions".to_owned()] {
        let seen = lab.sent_to(group);
        lab.chat().hear(Speech::by(ALICE, &words).in_group(group));
        let said = lab.chat().await_reply(group, seen).await.text();
        assert!(
            !said.contains("secret") && !said.contains("before me"),
            "{said}"
        );
    }
    lab.ask(ALICE, "other-words").await;
    let said = lab.ask(ALICE, &format!("/resume {name}")).await;
    assert!(said.starts_with("I have it before me again"), "{said}");
    lab.ask(ALICE, "where were we?").await;
    let shown = lab.asked().last().unwrap().clone();
    assert!(
        shown.contains("a secret plan") && !shown.contains("other-words"),
        "{shown}"
    );
    assert!(lab.ask(ALICE, "/sessions").await.contains("other-words"));
    lab.destroy(ALICE).await;
    let listed = lab.ask(ALICE, "/sessions").await;
    assert!(
        listed.starts_with("There is nothing from before"),
        "{listed}"
    );
}

fn stalls_on_wait(asked: &Value) -> Reply {
    match last_words(asked).as_str() {
        "stall-word" => Reply::events([]).then(Piece::Stall),
        _ => talkative(asked),
    }
}

#[tokio::test]
async fn undo_while_a_turn_is_at_work_ends_it_and_takes_that_one_back() {
    let lab = narrow(Lab::builder().answering(stalls_on_wait)).await;
    lab.ask(ALICE, "alpha-word").await;
    lab.says(ALICE, "stall-word");
    lab.model_asked(2).await;
    lab.says(ALICE, "/undo");
    let told = |record: &hermetic_testkit::chat::Record| {
        let sent = record.messages_in(&ALICE.into());
        sent.iter()
            .any(|sent| sent.text().starts_with("Taken back"))
    };
    let record = lab.chat().wait_for("an undo", told).await;
    let sent = record.messages_in(&ALICE.into());
    assert!(
        sent.last().unwrap().text().contains("(stall-word)"),
        "{sent:?}"
    );
    lab.ask(ALICE, "beta-word").await;
    let shown = lab.asked().last().unwrap().clone();
    assert!(
        shown.contains("alpha-word") && !shown.contains("stall-word"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_model_is_chosen_by_who_may_and_among_those_there_are() {
    let lab = Lab::builder()
        .config(&format!(
            "approvals: {{approvers: ['telegram:{ALICE}']}}\nfallback_model: {{model: other, base_url: 'http://127.0.0.1:9/v1'}}\n"
        ))
        .start()
        .await;
    let shown = lab.ask(BOB, "/model").await;
    assert!(
        shown.starts_with("here: scripted") && shown.contains("/model other"),
        "{shown}"
    );
    let refused = lab.ask(BOB, "/model other").await;
    assert!(
        refused.starts_with("Only somebody who may approve"),
        "{refused}"
    );
    let unknown = lab.ask(ALICE, "/model gpt-9").await;
    assert!(unknown.contains("is not among the models"), "{unknown}");
    let chosen = lab.ask(ALICE, "/model other").await;
    assert!(
        chosen.starts_with("From now on other answers here"),
        "{chosen}"
    );
    assert!(lab.ask(ALICE, "/model").await.starts_with("here: other"));
    assert!(
        lab.ask(BOB, "/model").await.starts_with("here: scripted"),
        "another conversation"
    );
    lab.ask(ALICE, "/model default").await;
    assert!(lab.ask(ALICE, "/model").await.starts_with("here: scripted"));
    let sandbox = lab.ask(ALICE, "/sandbox").await;
    assert!(sandbox.contains("sandbox: none yet"), "{sandbox}");
    assert!(lab.ask(ALICE, "/egress").await.starts_with("network: "));
    let outside = lab.ask(ALICE, "/files ../etc").await;
    assert!(
        outside.starts_with("Write a folder below the workspace"),
        "{outside}"
    );
}

#[tokio::test]
async fn undo_brings_files_back_in_a_real_sandbox() {
    let test = "long::undo_brings_files_back_in_a_real_sandbox";
    if !has_sandboxes(test).await {
        return;
    }
    let lab = Lab::builder()
        .configured_backends()
        .config("streaming: false\n")
        .script([
            calls_terminal("echo first >a; ln -s /etc way; mkdir d; echo x >d/x"),
            says("made"),
            calls_terminal("echo second >a; rm -r d; rm way; echo new >b"),
            says("changed"),
        ])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "make it").await, "made");
    assert_eq!(lab.ask(ALICE, "change it").await, "changed");
    let files = lab.ask(ALICE, "/files").await;
    assert!(files.contains("\nb") && !files.contains("d/"), "{files}");
    let said = lab.ask(ALICE, "/undo").await;
    assert!(said.contains("Files are as they were before it"), "{said}");
    let files = lab.ask(ALICE, "/files").await;
    assert!(
        files.contains("d/") && files.contains("way@") && !files.contains("\nb"),
        "{files}"
    );
    let shown = lab.ask(ALICE, "/sh cat a d/x").await;
    assert!(shown.contains("first\nx"), "{shown}");
    // The copy was of the last turn; the one before has none any more, and that is said.
    let said = lab.ask(ALICE, "/undo").await;
    assert!(said.contains("Files stay as they are"), "{said}");
}

#[tokio::test]
async fn an_image_that_comes_along_is_shown_to_the_model_and_a_disguised_one_is_not() {
    let test = "long::an_image_that_comes_along_is_shown_to_the_model_and_a_disguised_one_is_not";
    if !has_sandboxes(test).await {
        return;
    }
    let lab = Lab::builder()
        .configured_backends()
        .answering(looks)
        .config("streaming: false\n")
        .start()
        .await;
    let png = b"\x89PNG\r\n\x1a\nrest".to_vec();
    let seen = lab.sent_to(ALICE);
    lab.chat()
        .hear(Speech::by(ALICE, "look").with_file("photo.txt", png));
    lab.chat().await_reply(ALICE, seen).await;
    lab.chat()
        .hear(Speech::by(ALICE, "and this").with_file("photo.png", b"<svg/>".to_vec()));
    lab.chat().await_reply(ALICE, seen + 1).await;
    let asked = lab.asked();
    let shown = "data:image/png;base64,iVBORw0KGgpyZXN0";
    assert!(asked[0].contains(shown), "{}", asked[0]);
    assert!(asked[1].contains(shown), "it stays in the conversation");
    assert_eq!(asked[1].matches("data:image").count(), 1, "{}", asked[1]);
}

/// A picture of one pixel that is as large as a photograph: what stands behind its end is no part of it.
fn large_picture() -> Vec<u8> {
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut picture = BASE64.decode(pixel).unwrap();
    picture.resize(3 << 20, 0);
    picture
}

#[tokio::test]
async fn a_photograph_that_is_too_large_for_a_message_is_shown_smaller() {
    let test = "long::a_photograph_that_is_too_large_for_a_message_is_shown_smaller";
    if !has_sandboxes(test).await {
        return;
    }
    let read = calls_tool("read_file", &json!({"path": "uploads/picture.png"}));
    let lab = Lab::builder()
        .configured_backends()
        .script([says("I see"), read, says("still")])
        .config("streaming: false\n")
        .start()
        .await;
    let seen = lab.sent_to(ALICE);
    lab.chat()
        .hear(Speech::by(ALICE, "look").with_file("photo.png", large_picture()));
    lab.chat().await_reply(ALICE, seen).await;
    let shown = "data:image/jpeg;base64,/9j/";
    assert!(lab.asked()[0].contains(shown), "{}", lab.asked()[0]);
    // As it came, and with its own name, in the workspace.
    assert!(
        lab.asked()[0].contains("3145728 bytes"),
        "{}",
        lab.asked()[0]
    );
    lab.ask(ALICE, "/sh cp uploads/*-photo.png uploads/picture.png")
        .await;
    // A file of the workspace is shown the same way.
    assert_eq!(lab.ask(ALICE, "and again").await, "still");
    let asked = lab.asked();
    assert_eq!(asked[2].matches(shown).count(), 2, "{}", asked[2]);
}

/// The server of the lab speaks chat completions, and nobody knows whether it takes files.
#[tokio::test]
async fn a_pdf_for_a_model_that_takes_none_is_read_to_it() {
    let test = "long::a_pdf_for_a_model_that_takes_none_is_read_to_it";
    if !has_sandboxes(test).await {
        return;
    }
    let pdf = "%PDF-1.4\n1 0 obj << /Type /Page /Contents 2 0 R /Resources << /Font << /F1 3 0 R >> >> >> endobj\n\
        2 0 obj << /Length 33 >> stream\nBT /F1 9 Tf (first words) Tj ET  \nendstream endobj\n\
        3 0 obj << /Type /Font /Subtype /Type1 >> endobj\n%%EOF";
    let read = calls_tool("read_file", &json!({"path": "uploads/note.pdf"}));
    let lab = Lab::builder()
        .configured_backends()
        .script([says("I see"), read, says("first words")])
        .config("streaming: false\n")
        .start()
        .await;
    let seen = lab.sent_to(ALICE);
    lab.chat()
        .hear(Speech::by(ALICE, "read").with_file("note.pdf", pdf.as_bytes().to_vec()));
    lab.chat().await_reply(ALICE, seen).await;
    let asked = &lab.asked()[0];
    assert!(asked.contains("read_file reads its words"), "{asked}");
    assert!(!asked.contains("not shown]"), "{asked}");
    lab.ask(ALICE, "/sh cp uploads/*-note.pdf uploads/note.pdf")
        .await;
    assert_eq!(lab.ask(ALICE, "and now").await, "first words");
    assert_eq!(lab.tool_result(2)["content"], "1|first words");
}

fn looks(_: &Value) -> Reply {
    says("I see")
}
