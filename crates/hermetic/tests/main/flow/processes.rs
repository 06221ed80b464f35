//! Background processes and the turns they start.

use hermetic_testkit::model::Reply;

use super::lab::{ALICE, Lab, Shared, calls_tool};
use serde_json::json;

fn starts(command: &str) -> Reply {
    calls_tool(
        "terminal",
        &json!({"command": command, "background": true, "notify_on_complete": true}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_outlives_a_killed_gateway_and_its_end_is_told_once() {
    let shared = Shared::new();
    let script = [
        starts("echo at it > /shared/pipe; read -r line < /shared/go; echo \"built $line\""),
        Reply::streams(&["I am building."]),
        Reply::streams(&["The build is done."]),
    ];
    let test = "a_process_outlives_a_killed_gateway_and_its_end_is_told_once";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(mut lab) = Lab::start_with(test, script, &shared.config(), access).await else {
        return;
    };
    assert_eq!(lab.ask(ALICE, "build it").await, "I am building.");
    assert_eq!(shared.heard().await, "at it\n");
    lab.kill();
    // It ends while nobody is there.
    shared.say("alone\n");
    lab.restart();
    let done = "The build is done.";
    // The first reply may come twice: the gateway was killed when it had just been sent.
    if lab.replies(ALICE, 2).await[1] != done {
        assert_eq!(lab.replies(ALICE, 3).await[2], done);
    }
    let asked = lab.asked().remove(2);
    assert!(asked.contains("built alone"), "{asked}");
    // Another start has nothing more to tell.
    lab.terminate();
    lab.restart();
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    let replies = lab.replies(ALICE, 3).await;
    let told = replies
        .iter()
        .filter(|reply| *reply == "The build is done.");
    assert_eq!(
        (told.count(), lab.model.received().len()),
        (1, 3),
        "{replies:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_was_cut_with_its_gateway_leaves_nothing() {
    let shared = Shared::new();
    let code = "open('/shared/pipe', 'w').write('at it\\n')\nopen('/shared/go').read()";
    let looks = "ls -d /tmp/hermes_exec_* 2>/dev/null; ps -eo args | grep -c '[s]cript.py'; true";
    let script = [
        calls_tool("execute_code", &json!({"code": code})),
        Reply::streams(&["Cut off."]),
        calls_tool("execute_code", &json!({"code": "print(1)"})),
        calls_tool("terminal", &json!({"command": looks})),
        Reply::streams(&["Nothing is left."]),
    ];
    let test = "a_script_that_was_cut_with_its_gateway_leaves_nothing";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(mut lab) = Lab::start_with(test, script, &shared.config(), access).await else {
        return;
    };
    lab.telegram.says(ALICE, "run it");
    assert_eq!(shared.heard().await, "at it\n");
    lab.kill();
    lab.restart();
    let reply = lab.replies(ALICE, 1).await.remove(0);
    assert!(reply.ends_with("Cut off."), "{reply}");
    assert_eq!(lab.ask(ALICE, "look").await, "Nothing is left.");
    assert_eq!(lab.tool_result(4)["output"], "0");
}
