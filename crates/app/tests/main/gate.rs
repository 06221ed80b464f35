//! The agent tries to edit what stops it: rules, settings, its own files.

use std::fs;

use hermetic_testkit::model::Reply;
use serde_json::json;

use crate::approvals::{config, name};
use crate::lab::{ALICE, Lab, calls_terminal, calls_tool};

#[tokio::test]
async fn no_tool_writes_the_rules_without_a_yes() {
    let approvals = config("approvers: ['telegram:7']");
    // The real thing: where a path leads is asked of a warden.
    let builder = Lab::builder().configured_backends();
    let lab = builder.config(&approvals).start().await;
    let file = lab.path("config.yaml");
    let before = fs::read_to_string(&file).unwrap();
    let path = file.display().to_string();
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
        lab.says(ALICE, &format!("/deny {}", name(&question)));
        let replies = lab.replies(ALICE, sent + 2).await;
        assert!(
            replies[sent..].iter().any(|reply| reply == "I could not"),
            "{replies:?}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
}
