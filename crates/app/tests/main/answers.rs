//! Message, model, terminal, redacted reply.

use std::sync::Arc;

use hermetic_testkit::model::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use crate::lab::{ALICE, BOB, KEY, Lab, Shared, calls_terminal, has_sandboxes, stalls};

#[tokio::test]
async fn two_chats_at_once_see_nothing_of_each_other() {
    if !has_sandboxes("two_chats_at_once_see_nothing_of_each_other").await {
        return;
    }
    let lab = Lab::builder().configured_backends().start().await;
    let write = |who: &str| {
        format!(
            "/sh echo {who} > /workspace/{who}; export V={who}; sleep 300 & sleep 0.2; cat /workspace/*"
        )
    };
    let (alices, bobs) = (write("alices"), write("bobs"));
    let (alice, bob) = tokio::join!(lab.ask(ALICE, &alices), lab.ask(BOB, &bobs));
    assert_eq!((alice.trim(), bob.trim()), ("alices", "bobs"));
    let look = "/sh ls /workspace /tmp; echo V=$V; ps ax 2>/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    let (alice, bob) = tokio::join!(lab.ask(ALICE, look), lab.ask(BOB, look));
    assert!(
        alice.contains("alices") && !alice.contains("bobs"),
        "{alice}"
    );
    assert!(bob.contains("bobs") && !bob.contains("alices"), "{bob}");
    assert_eq!(lab.sandboxes().await.len(), 2);
}

#[tokio::test]
async fn a_secret_of_the_configuration_reaches_neither_chat_nor_model() {
    let print = format!("echo {KEY}; echo {KEY} | base64");
    let script = [
        calls_terminal(&print),
        Reply::streams(&["The key is ", KEY]),
    ];
    let lab = Lab::builder().script(script).start().await;
    assert_eq!(
        lab.ask(ALICE, "what is the key?").await,
        "The key is [redacted]"
    );
    let output = lab.tool_result(1)["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with("[redacted]\n[redacted]"), "{output}");
    let own = lab.ask(ALICE, &format!("/sh echo {KEY}")).await;
    assert_eq!(own.trim(), "[redacted]");
}

#[tokio::test]
async fn a_command_that_nobody_has_is_answered_without_the_model() {
    let lab = Lab::builder()
        .script([Reply::streams(&["hm"])])
        .start()
        .await;
    let answer = lab.ask(ALICE, "/stauts").await;
    assert!(answer.contains("Did you mean /status?"), "{answer}");
    // A path is no command.
    assert_eq!(lab.ask(ALICE, "/etc/passwd is a file").await, "hm");
}

#[tokio::test]
async fn reset_forgets_and_keeps_the_files_and_destroy_asks_first() {
    if !has_sandboxes("reset_forgets_and_keeps_the_files_and_destroy_asks_first").await {
        return;
    }
    let script = [Reply::streams(&["one"]), Reply::streams(&["two"])];
    let lab = Lab::builder()
        .configured_backends()
        .script(script)
        .start()
        .await;
    lab.ask(ALICE, "remember the apple").await;
    lab.ask(ALICE, "/sh echo here > f").await;
    let said = lab.ask(ALICE, "/reset").await;
    assert!(said.contains("files in its sandbox stay"), "{said}");
    lab.ask(ALICE, "what was it?").await;
    assert!(!lab.asked()[1].contains("apple"), "{}", lab.asked()[1]);
    let found = lab.ask(ALICE, "/sh cat f").await;
    assert_eq!(found.trim(), "here");
    // A yes that nobody asked for, and somebody else's, are none.
    for user in [ALICE, BOB] {
        let asked = lab.ask(user, "/destroy yes").await;
        assert!(asked.contains("/destroy yes"), "{asked}");
    }
    assert_eq!(lab.ask(ALICE, "/sh cat f").await.trim(), "here");
    let said = lab.ask(ALICE, "/destroy yes").await;
    assert!(said.contains("are gone"), "{said}");
    assert_eq!(lab.sandboxes().await, [""; 0]);
    let found = lab.ask(ALICE, "/sh cat f").await;
    assert!(found.contains("exit code 1"), "{found}");
}

#[tokio::test]
async fn destroy_acts_at_once_where_the_operator_says_so() {
    let config = "approvals: {destructive_slash_confirm: false}\n";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let lab = Lab::builder().config(config).access(access).start().await;
    lab.ask(ALICE, "/sh echo here > f").await;
    let said = lab.ask(ALICE, "/destroy").await;
    assert!(said.contains("are gone"), "{said}");
    assert_eq!(lab.sandboxes().await, [""; 0]);
}

#[tokio::test]
async fn commands_of_one_chat_are_answered_in_order_and_a_stop_drops_those_that_wait() {
    if !has_sandboxes("commands_of_one_chat_are_answered_in_order_and_a_stop_drops_those_that_wait")
        .await
    {
        return;
    }
    let shared = Shared::new();
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let lab = Lab::builder()
        .configured_backends()
        .config(&shared.config())
        .access(access)
        .start()
        .await;
    lab.says(
        ALICE,
        "/sh echo 0; echo at it > /shared/pipe; read word < /shared/go",
    );
    for number in 1..=4 {
        lab.says(ALICE, &format!("/sh cd /tmp; echo {number}"));
    }
    lab.says(ALICE, "/py print(5)");
    shared.heard().await;
    shared.say("go\n");
    let replies = lab.replies(ALICE, 6).await;
    let trimmed: Vec<_> = replies.iter().map(|reply| reply.trim()).collect();
    assert_eq!(trimmed, ["0", "1", "2", "3", "4", "5"]);

    lab.says(ALICE, "/sh echo at it > /shared/pipe; sleep 1000");
    shared.heard().await;
    for _ in 0..3 {
        lab.says(ALICE, "/sh echo never > /tmp/never");
    }
    lab.says(ALICE, "/stop");
    let replies = lab.replies(ALICE, 8).await;
    assert!(
        replies[6..]
            .iter()
            .any(|reply| reply.contains("3 commands")),
        "{replies:?}"
    );
    let after = lab.ask(ALICE, "/sh ls /tmp/never").await;
    assert!(after.contains("exit code 2"), "{after}");
}

#[tokio::test]
async fn a_second_message_interrupts_the_first_and_both_are_answered() {
    let script = [stalls(), Reply::streams(&["second"])];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "first");
    lab.model_asked(1).await;
    lab.says(ALICE, "then this");
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies, ["[Interrupted.]", "second"]);
}

#[tokio::test]
async fn a_deleted_message_ends_its_turn_and_one_that_waits_is_never_answered() {
    let script = [stalls(), Reply::streams(&["third"])];
    let lab = Lab::builder()
        .script(script)
        .config("display: {busy_input_mode: queue}\n")
        .start()
        .await;
    let first = lab.chat().says(ALICE, "first");
    lab.model_asked(1).await;
    let second = lab.chat().says(ALICE, "second");
    lab.says(ALICE, "third");
    // Somebody else's deletion in another chat, of a message with the same number.
    lab.chat().deletes(BOB, &lab.chat().message_of(first));
    lab.chat().deletes(ALICE, &lab.chat().message_of(second));
    lab.chat().all_signed().await;
    assert_eq!(lab.sent_to(ALICE), 0, "the turn goes on");
    lab.chat().deletes(ALICE, &lab.chat().message_of(first));
    assert_eq!(
        lab.replies(ALICE, 2).await,
        ["[Interrupted.]", "third"],
        "the second is not answered"
    );
    assert!(!lab.asked()[1].contains("second"), "{}", lab.asked()[1]);
}

#[tokio::test]
async fn a_changed_message_that_waits_is_answered_as_it_reads_now() {
    let script = [stalls(), stalls(), Reply::streams(&["blue it is"])];
    let mut lab = Lab::builder()
        .script(script)
        .config("display: {busy_input_mode: queue}\n")
        .start()
        .await;
    let first = lab.chat().says(ALICE, "wait");
    lab.model_asked(1).await;
    let second = lab.chat().says(ALICE, "paint it red");
    let second = lab.chat().message_of(second);
    // Nobody changes somebody else's message, whatever a platform says.
    lab.chat().edits(BOB, &second, "paint it black");
    lab.chat().edits(ALICE, &second, "paint it blue");
    lab.chat().all_signed().await;
    // It is written down so: a crash makes no difference.
    lab.crash_and_start().await;
    lab.model_asked(2).await;
    lab.chat().deletes(ALICE, &lab.chat().message_of(first));
    let answer = lab.replies(ALICE, 2).await.remove(1);
    assert!(answer.contains("blue it is"), "{answer}");
    let asked = lab.asked().pop().unwrap();
    assert!(asked.contains("paint it blue"), "{asked}");
    assert!(
        !asked.contains("it red") && !asked.contains("black"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_change_of_what_is_being_answered_is_a_correction_and_one_after_the_answer_is_none() {
    let script = [
        stalls(),
        Reply::streams(&["blue it is"]),
        Reply::streams(&["the next"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    let said = lab.chat().says(ALICE, "paint it red");
    let said = lab.chat().message_of(said);
    lab.model_asked(1).await;
    // As platforms tell that a link got a preview: no word is another.
    lab.chat().edits(ALICE, &said, "paint it red");
    lab.chat().edits(ALICE, &said, "paint it blue");
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies, ["[Interrupted.]", "blue it is"]);
    let asked = lab.asked().remove(1);
    assert!(asked.contains("I changed the message"), "{asked}");
    // Over and done with.
    lab.all_done().await;
    lab.chat().edits(ALICE, &said, "paint it green");
    lab.chat().all_signed().await;
    assert_eq!(lab.ask(ALICE, "and now?").await, "the next");
    assert_eq!(lab.model.received().len(), 3);
}

#[tokio::test]
async fn a_message_that_is_changed_into_a_command_keeps_the_rules_of_commands() {
    let script = [stalls()];
    let lab = Lab::builder()
        .script(script)
        .config("display: {busy_input_mode: queue}\n")
        .start()
        .await;
    lab.says(ALICE, "think");
    lab.model_asked(1).await;
    let waits = lab.chat().says(ALICE, "and then say who I am");
    let waits = lab.chat().message_of(waits);
    lab.chat().edits(ALICE, &waits, "/whoami");
    // Not behind the turn, as a command never is.
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(reply.contains("user: 7"), "{reply}");
    // And what is being answered is stopped by making a stop of it.
    let first = lab.chat().says(ALICE, "one more");
    lab.chat()
        .edits(ALICE, &lab.chat().message_of(first), "/stop");
    lab.replies(ALICE, 2).await;
}

#[tokio::test]
async fn a_message_steers_the_turn_that_is_at_work() {
    let shared = Shared::new();
    let (pipe, go) = (shared.path("pipe"), shared.path("go"));
    let (pipe, go) = (pipe.display(), go.display());
    let script = [
        calls_terminal(&format!(
            "echo at it > {pipe}; read word < {go}; echo $word"
        )),
        Reply::streams(&["done, in blue"]),
        Reply::streams(&["next"]),
    ];
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let mut lab = Lab::builder()
        .script(script)
        .config("display: {busy_input_mode: steer}\n")
        .access(access)
        .start()
        .await;
    lab.says(ALICE, "paint it");
    assert_eq!(shared.heard().await, "at it\n");
    lab.says(ALICE, "in blue please");
    // Telegram hears that we have it only after it was handed to the turn or put in the queue.
    lab.chat().all_signed().await;
    shared.say("go\n");
    assert_eq!(lab.replies(ALICE, 1).await, ["done, in blue"]);
    assert!(
        lab.asked()[1].contains("in blue please"),
        "{}",
        lab.asked()[1]
    );
    // It rode along and is not answered again, also not by the next start.
    lab.restart().await;
    assert_eq!(lab.ask(ALICE, "what now?").await, "next");
    assert_eq!(lab.sent_to(ALICE), 2);
}

#[tokio::test]
async fn commands_do_not_wait_for_a_turn() {
    if !has_sandboxes("commands_do_not_wait_for_a_turn").await {
        return;
    }
    let lab = Lab::builder()
        .configured_backends()
        .script([stalls()])
        .start()
        .await;
    lab.says(ALICE, "think");
    lab.model_asked(1).await;
    let status = lab.ask(ALICE, "/status").await;
    assert!(
        status.contains("turn: at work") && status.contains("native (sealed)"),
        "{status}"
    );
    let who = lab.ask(ALICE, "/whoami").await;
    assert!(
        who.contains("user: 7") && who.contains("role: operator"),
        "{who}"
    );
    assert!(lab.ask(ALICE, "/help").await.contains("/sh"));
    assert!(lab.ask(ALICE, "/approve").await.contains("Nothing waits"));
    assert!(lab.ask(ALICE, "/py print(6 * 7)").await.contains("42"));
    lab.says(ALICE, "/stop");
    let all = lab.replies(ALICE, 7).await;
    assert!(
        all.contains(&"[Interrupted.]".to_owned()) && all.contains(&"Stopped.".to_owned()),
        "{all:?}"
    );
}

#[tokio::test]
async fn health_is_answered_while_it_serves() {
    let lab = Lab::builder().start().await;
    let answer = get(&lab, "/health").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains(r#""status":"ok""#) && answer.contains(r#""name":"telegram""#),
        "{answer}"
    );
}

#[tokio::test]
async fn what_happened_is_counted_for_whoever_asks() {
    let lab = Lab::builder().start().await;
    for command in ["/sh true", "/sh false", "/sh true"] {
        lab.ask(ALICE, command).await;
    }
    let answer = get(&lab, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let shown = |line: &str| answer.lines().any(|shown| shown == line);
    let accepted = r#"hermetic_messages_accepted_total{platform="telegram"} 3"#;
    assert!(shown(accepted), "{answer}");
    // One was to prove the backend.
    let created = r#"hermetic_sandboxes_created_total{backend="native"} 2"#;
    assert!(shown(created), "{answer}");
    // A turn is counted when it has ended, a moment after its answer arrived; the last may not be yet.
    let ended = |count| format!(r#"hermetic_turns_total{{outcome="answered"}} {count}"#);
    assert!(shown(&ended(2)) || shown(&ended(3)), "{answer}");
}

/// What a port of the gateway answers.
pub(super) async fn get(lab: &Lab, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(lab.health()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn chats_on_the_host_are_warned_about_in_the_chat_too() {
    let local = "gateway: {terminal_backend: local}\n";
    let lab = Lab::builder()
        .configured_backends()
        .config(local)
        .access("TELEGRAM_ALLOWED_USERS=7")
        .start()
        .await;
    let status = lab.ask(ALICE, "/status").await;
    assert!(status.contains("local terminal backend"), "{status}");
    assert!(status.contains("not sealed"), "{status}");
    // What is judged dangerous waits for a person, and there is no asking yet: it is refused.
    let refused = lab.ask(ALICE, "/sh mkfs.ext4 /dev/no-such-disk").await;
    assert!(!refused.contains("exit_code"), "{refused}");
    assert!(
        refused.to_lowercase().contains("refused") || refused.contains("format"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_stop_does_not_reach_what_was_written_after_it() {
    let go = Arc::new(Notify::new());
    let script = [Reply::streams_through(&go, &["the "], &["answer"])];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "/stop");
    lab.says(ALICE, "and now this");
    lab.model_asked(1).await;
    // Answered by now, or soon; what it ends was decided when it was heard.
    lab.replies(ALICE, 1).await;
    go.notify_one();
    let replies = lab.replies(ALICE, 2).await;
    assert!(
        replies.iter().any(|reply| reply == "the answer"),
        "{replies:?}"
    );
}
