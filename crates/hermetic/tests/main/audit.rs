//! The record, as somebody at a keyboard meets it.

use std::fs;

use crate::hermetic::Hermetic;

/// Two lines that an earlier version wrote: the format does not drift.
const RECORD: &str = include_str!("audit.jsonl");

fn with_record() -> Hermetic {
    let hermetic = Hermetic::new();
    fs::create_dir(hermetic.path("hermetic")).unwrap();
    hermetic.file("hermetic/audit.jsonl", RECORD)
}

#[test]
fn a_home_without_a_record_has_nothing_to_hide() {
    let hermetic = Hermetic::new();
    let ended = hermetic.run(&["audit", "verify"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "the chain holds: 0 records\n")
    );
    let shown = hermetic.run(&["audit", "show"]).out;
    assert_eq!(shown, "nothing is recorded yet\n");
}

#[test]
fn a_record_that_was_removed_is_a_failure() {
    let hermetic = Hermetic::new();
    let allowed = hermetic.run(&["egress", "allow", "example.com"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    assert_eq!(hermetic.run(&["audit", "verify"]).code, 0);
    fs::remove_file(hermetic.path("hermetic/audit.jsonl")).unwrap();
    for asked in ["verify", "head"] {
        let ended = hermetic.run(&["audit", asked]);
        assert!(
            ended.code == 1 && ended.err.contains("no record is left"),
            "{asked}: {} {}",
            ended.out,
            ended.err
        );
    }
}

#[test]
fn a_record_is_shown_and_verified() {
    let hermetic = with_record();
    let shown = hermetic.run(&["audit", "show"]).out;
    assert!(shown.contains("command=echo 1"), "{shown}");
    let one = hermetic.run(&["audit", "show", "-n", "1", "--json"]).json();
    assert_eq!(one["event"]["command"], "echo 1");
    let verified = hermetic.run(&["audit", "verify", "--json"]).json();
    assert_eq!(verified["report"]["records"], 2);
    let report = &verified["report"]["head"];
    let head = format!("{}:{}", report["seq"], report["hash"].as_str().unwrap());
    assert_eq!(hermetic.run(&["audit", "verify", "--head", &head]).code, 0);
}

#[test]
fn a_change_and_a_missing_end_are_failures() {
    let hermetic = with_record();
    let head = hermetic.run(&["audit", "verify"]).out;
    let head = head.lines().last().unwrap().strip_prefix("head ").unwrap();
    let cut = RECORD.lines().next().unwrap();
    let hermetic = hermetic.file("hermetic/audit.jsonl", &format!("{cut}\n"));
    assert_eq!(hermetic.run(&["audit", "verify"]).code, 0);
    let ended = hermetic.run(&["audit", "verify", "--head", head]);
    assert!(
        ended.code == 1 && ended.err.contains("cut off"),
        "{}",
        ended.err
    );

    let changed = RECORD.replace("echo 0", "echo 7");
    let hermetic = hermetic.file("hermetic/audit.jsonl", &changed);
    let ended = hermetic.run(&["audit", "verify"]);
    assert!(
        ended.code == 1 && ended.err.contains("line 1"),
        "{}",
        ended.err
    );
}
