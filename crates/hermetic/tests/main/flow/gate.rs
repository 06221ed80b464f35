//! The agent tries to edit what stops it: rules, settings, its own files.

use std::fs;

use super::approvals::{lab, name};
use super::lab::ALICE;

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
