//! Daytona, as somebody at a keyboard meets it. Nothing here reaches further than loopback.

use crate::hermetic::{Ended, Hermetic};

/// Nobody listens on port 1 of this machine.
const NOWHERE: &str = "DAYTONA_API_KEY=dtn_hunter2\nDAYTONA_API_URL=http://127.0.0.1:1/api\n";

fn row(ended: &Ended) -> serde_json::Value {
    let rows: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["backend"] == "daytona")
        .unwrap()
        .clone()
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let without = row(&Hermetic::new().run(&["backends", "--json"]));
    assert_eq!(without["available"], false);
    assert_eq!(without["notes"][0]["what"], "there is no key for Daytona");
    let remedy = without["notes"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("DAYTONA_API_KEY"), "{remedy}");

    let away = Hermetic::new().file(".env", NOWHERE);
    let ended = away.run(&["backends", "--json"]);
    assert!(!ended.out.contains("hunter2"), "{}", ended.out);
    let away = row(&ended);
    assert_eq!(away["available"], false);
    let what = away["notes"][0]["what"].as_str().unwrap();
    assert!(what.contains("127.0.0.1 cannot be reached"), "{what}");
}

#[test]
fn a_disk_that_daytona_does_not_have_is_refused_when_it_was_written() {
    let hermetic = Hermetic::with("terminal: {container_disk: 20GB}\n").file(".env", NOWHERE);
    let ended = hermetic.run(&["exec", "--backend", "daytona", "--", "true"]);
    assert_eq!(ended.code, 125, "{}", ended.err);
    assert!(ended.err.contains("10 GiB at most"), "{}", ended.err);
}
