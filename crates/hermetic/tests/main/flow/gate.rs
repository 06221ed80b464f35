//! The agent tries to edit what stops it: rules, settings, its own files.

use std::fs;

use hermetic_testkit::model::Reply;
use serde_json::json;

use super::approvals::{lab, name};
use super::lab::{ALICE, calls_terminal, calls_tool};

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_writes_the_rules_without_a_yes() {
    let Some(lab) = lab("no_tool_writes_the_rules_without_a_yes", [], "").await else {
        return;
    };
    let config = lab.path("config.yaml");
    let before = fs::read_to_string(&config).unwrap();
    let path = config.display().to_string();
    let loose = "approvals: {mode: off}";
    let attempts = [
        calls_terminal(&format!("echo '{loose}' > {path}")),
        calls_terminal(&format!("sed -i s/manual/off/ {path}")),
        calls_terminal(&format!("ln -sf {path} /tmp/innocent.yaml")),
        calls_terminal(&format!("cp /dev/null {path}")),
        calls_tool("write_file", &json!({"path": path, "content": loose})),
        calls_tool(
            "patch",
            &json!({"mode": "replace", "path": path, "old_string": "manual", "new_string": "off"}),
        ),
        calls_tool(
            "execute_code",
            &json!({"code": format!("open({path:?}, 'w').write({loose:?})")}),
        ),
    ];
    for (at, attempt) in attempts.into_iter().enumerate() {
        lab.model
            .will_reply([attempt, Reply::streams(&["I could not"])]);
        let question = lab.ask(ALICE, "stop asking me").await;
        assert!(question.contains("own files"), "{at}: {question}");
        let sent = lab.sent_to(ALICE);
        lab.telegram
            .says(ALICE, &format!("/deny {}", name(&question)));
        let replies = lab.replies(ALICE, sent + 2).await;
        assert!(
            replies[sent..].iter().any(|reply| reply == "I could not"),
            "{replies:?}"
        );
        assert_eq!(fs::read_to_string(&config).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn always_is_a_rule_that_a_person_writes_and_reads() {
    let Some(lab) = lab("always_is_a_rule_that_a_person_writes_and_reads", [], "").await else {
        return;
    };
    let command = "chmod 777 /tmp/hermetic-always-not-there";
    let question = lab.ask(ALICE, &format!("/sh {command}")).await;
    let refused = lab
        .ask(ALICE, &format!("/approve {} always", name(&question)))
        .await;
    assert!(refused.contains("hermetic approvals allow"), "{refused}");
    let sent = lab.sent_to(ALICE);
    lab.telegram
        .says(ALICE, &format!("/deny {}", name(&question)));
    lab.replies(ALICE, sent + 2).await;
    // On the command line it is a line in the file, as it was written.
    let allowed = lab.run(&["approvals", "allow", command]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    let config = fs::read_to_string(lab.path("config.yaml")).unwrap();
    assert!(config.contains("command_allowlist"), "{config}");
    assert!(config.contains(command), "{config}");
}
