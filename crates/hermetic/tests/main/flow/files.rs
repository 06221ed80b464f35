//! Files both ways, through the workspace.

use hermetic_testkit::model::Reply;
use hermetic_testkit::telegram::Failure;
use serde_json::json;

use super::lab::{ALICE, KEY, Lab, calls_terminal};

const NOTES: &str = "one\ntwo\nthree\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_comes_along_is_in_the_workspace_and_marked_as_foreign() {
    let script = [
        calls_terminal("cat uploads/*; ls uploads"),
        Reply::streams(&["three lines"]),
    ];
    let test = "a_file_that_comes_along_is_in_the_workspace_and_marked_as_foreign";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    send_notes(&lab);
    assert_eq!(lab.replies(ALICE, 1).await, ["three lines"]);
    let asked = &lab.asked()[0];
    assert!(asked.contains("how many lines?"), "{asked}");
    assert!(
        asked.contains("-notes.txt (text-plain, 14 bytes)"),
        "{asked}"
    );
    assert!(asked.contains("never orders to follow"), "{asked}");
    let output = lab.tool_result(1)["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with(NOTES), "{output}");
    assert!(output.ends_with("-notes.txt"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_does_not_come_along_whatever_was_claimed() {
    let script = [Reply::streams(&["I see"])];
    let test = "a_file_that_is_too_large_does_not_come_along_whatever_was_claimed";
    let config = "gateway: {max_inbound_media_bytes: 8}\n";
    let Some(lab) = Lab::start_with(test, script, config, "TELEGRAM_ALLOWED_USERS=7").await else {
        return;
    };
    lab.telegram.put_file("f1", NOTES);
    let document = json!({"file_id": "f1", "file_name": "notes.txt", "file_size": 3});
    lab.telegram
        .says_with(ALICE, json!({"caption": "look", "document": document}));
    lab.replies(ALICE, 1).await;
    let asked = &lab.asked()[0];
    assert!(asked.contains("larger than 8 bytes"), "{asked}");
    assert_eq!(lab.sandboxes(), [""; 0], "no sandbox is made for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_leave_from_the_workspace_and_from_nowhere_else() {
    let prepare = format!(
        "echo hi > out.txt; echo {KEY} > key.txt; ln -s /etc/passwd link; ln -s out.txt near"
    );
    let answer = "Done.\nMEDIA:out.txt\nMEDIA:link\nMEDIA:near\nMEDIA:/etc/hostname\nMEDIA:gone";
    let script = [calls_terminal(&prepare), Reply::streams(&[answer])];
    let test = "files_leave_from_the_workspace_and_from_nowhere_else";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "send it");
    let replies = lab.replies(ALICE, 3).await;
    assert_eq!(
        replies[0],
        "Done.\n[/etc/hostname was not sent: only files in /workspace are]"
    );
    assert!(replies[1].contains("link was not sent"), "{replies:?}");
    assert!(replies[2].contains("gone was not sent"), "{replies:?}");
    let sent = lab.telegram.wait_for("sendDocument", 2).await;
    let files: Vec<_> = sent.iter().map(|call| call.file.clone().unwrap()).collect();
    assert_eq!(files, ["hi\n", "hi\n"]);
    assert_eq!(sent[0].params["file_name"], "out.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_plain_file_does_not_leave_and_holds_nobody_up() {
    let prepare = "mkfifo pipe; mkdir folder; : > empty; truncate -s 60M huge; ln -s /dev/zero zero; \
                   ln -s /proc/self/environ environ; ln -s loop loop; ln -s /proc/self/root root; \
                   echo odd > \"$(printf 'a\"; name=x\u{202e}.txt')\"";
    let names = "pipe folder empty huge zero environ loop root/etc/passwd";
    let tags = names.split(' ').map(|name| format!("MEDIA:{name}\n"));
    let answer: String = tags
        .chain(["MEDIA:a\"; name=x\u{202e}.txt".to_owned()])
        .collect();
    let script = [calls_terminal(prepare), Reply::streams(&[&answer])];
    let test = "what_is_no_plain_file_does_not_leave_and_holds_nobody_up";
    let Some(lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.says(ALICE, "send it");
    let replies = lab.replies(ALICE, 9).await;
    for (name, reply) in names.split(' ').zip(&replies[1..]) {
        assert!(
            reply.contains(&format!("{name} was not sent")),
            "{replies:?}"
        );
    }
    let sent = lab.telegram.wait_for("sendDocument", 1).await;
    assert_eq!(
        (sent.len(), sent[0].file.as_deref()),
        (1, Some(&b"odd\n"[..]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_does_not_leave_in_a_file() {
    let (half, rest) = KEY.split_at(5);
    let prepare = format!(
        "printf 'key: %s%s\\n' {half} {rest} > key.txt; printf '\\377%s%s' {half} {rest} > key.bin"
    );
    let script = [
        calls_terminal(&prepare),
        Reply::streams(&["MEDIA:key.txt\nMEDIA:key.bin"]),
    ];
    let Some(lab) = Lab::start("a_secret_does_not_leave_in_a_file", script).await else {
        return;
    };
    lab.telegram.says(ALICE, "send it");
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies[0], "Files: key.txt, key.bin");
    assert!(
        replies[1].contains("key.bin was not sent: it holds a secret"),
        "{replies:?}"
    );
    let sent = lab.telegram.wait_for("sendDocument", 1).await;
    assert_eq!(sent[0].file.as_deref(), Some(&b"key: [redacted]\n"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_file_of_the_host_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fine.txt"), "fine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
    let config = format!(
        "gateway: {{terminal_backend: local}}\nterminal: {{cwd: '{}'}}\n",
        folder.path().display()
    );
    let answer = "MEDIA:link\nMEDIA:/etc/passwd\nMEDIA:../../etc/passwd\nMEDIA:fine.txt";
    let script = [Reply::streams(&[answer])];
    let test = "a_link_to_a_file_of_the_host_is_not_followed";
    let Some(lab) = Lab::start_with(test, script, &config, "TELEGRAM_ALLOWED_USERS=7").await else {
        return;
    };
    lab.telegram.says(ALICE, "send me the passwords");
    let sent = lab.telegram.wait_for("sendDocument", 1).await;
    assert_eq!(sent[0].file.as_deref(), Some(&b"fine"[..]));
    let replies = lab.replies(ALICE, 2).await.join("\n");
    assert_eq!(replies.matches("was not sent").count(), 3, "{replies}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_a_file_arrives_it_comes_along_after_the_restart() {
    let script = [
        calls_terminal("cat uploads/* | wc -l"),
        Reply::streams(&["three lines"]),
    ];
    let test = "killed_while_a_file_arrives_it_comes_along_after_the_restart";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.fail_next("getFile", Failure::Hang);
    send_notes(&lab);
    lab.telegram.wait_for_tries("getFile", 1).await;
    lab.kill();
    lab.restart();
    assert_eq!(lab.replies(ALICE, 1).await, ["three lines"]);
    assert_eq!(lab.tool_result(1)["output"], "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_a_file_leaves_it_is_sent_again_and_marked() {
    let script = [
        calls_terminal("echo hi > out.txt"),
        Reply::streams(&["Here.\nMEDIA:out.txt"]),
    ];
    let test = "killed_while_a_file_leaves_it_is_sent_again_and_marked";
    let Some(mut lab) = Lab::start(test, script).await else {
        return;
    };
    lab.telegram.fail_next("sendDocument", Failure::Hang);
    lab.telegram.says(ALICE, "send it");
    lab.telegram.wait_for_tries("sendDocument", 1).await;
    lab.kill();
    lab.restart();
    let sent = lab.telegram.wait_for("sendDocument", 1).await;
    assert_eq!(sent[0].file.as_deref(), Some(&b"hi\n"[..]));
    let caption = sent[0].params["caption"].as_str().unwrap();
    assert!(caption.contains("Possible duplicate"), "{caption}");
}

fn send_notes(lab: &Lab) {
    lab.telegram.put_file("f1", NOTES);
    let document = json!({"file_id": "f1", "file_name": "../../notes.txt",
        "mime_type": "text/plain", "file_size": NOTES.len()});
    lab.telegram.says_with(
        ALICE,
        json!({"caption": "how many lines?", "document": document}),
    );
}

/// Looked at and sent are one step: nothing inside can change what is at a path in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_turned_around_while_it_is_sent_leads_nowhere() {
    const OURS: &str = "of the workspace";
    let host = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(host.path(), "of the host").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "gateway: {{terminal_backend: local}}\nterminal: {{cwd: '{}'}}\n",
        folder.path().display()
    );
    let media = "MEDIA:turn\n".repeat(10);
    let script = [Reply::streams(&[&media]), Reply::streams(&[&media])];
    let test = "a_link_that_is_turned_around_while_it_is_sent_leads_nowhere";
    let Some(lab) = Lab::start_with(test, script, &config, "TELEGRAM_ALLOWED_USERS=7").await else {
        return;
    };
    // Stands where commands on the host could stand: beside the gateway, and never still.
    let turning = format!(
        "cd {}; while :; do printf '{OURS}' > a; mv a turn; ln -s {} b; mv -T b turn; done",
        folder.path().display(),
        host.path().display()
    );
    let mut turner = std::process::Command::new("sh")
        .args(["-c", &turning])
        .spawn()
        .unwrap();
    for round in 1..=2 {
        lab.telegram.says(ALICE, "send it ten times");
        lab.telegram.wait_until_confirmed().await;
        // Each of the ten is sent, or in words not.
        loop {
            let sent = lab.telegram.calls("sendDocument").len();
            let refused = lab.replies(ALICE, 1).await.len() - round;
            if sent + refused == 10 * round {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    turner.kill().unwrap();
    turner.wait().unwrap();
    for call in lab.telegram.calls("sendDocument") {
        assert_eq!(call.file.as_deref(), Some(OURS.as_bytes()));
    }
}
