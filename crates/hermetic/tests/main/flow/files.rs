//! Files both ways, through the workspace.

use hermetic_testkit::model::Reply;
use hermetic_testkit::telegram::Failure;
use serde_json::json;

use super::lab::{ALICE, Lab, calls_terminal};

const NOTES: &str = "one\ntwo\nthree\n";

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
