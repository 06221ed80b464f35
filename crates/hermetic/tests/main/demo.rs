//! `hermetic demo`: a story through the real flow.

use std::fs;

use crate::hermetic::Hermetic;

#[test]
fn everything_holds_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let hermetic = Hermetic::new().variable("TMPDIR", folder.path().to_str().unwrap());
    if !hermetic.has_sandboxes("everything_holds_and_nothing_is_left") {
        return;
    }
    let ended = hermetic
        .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .run(&["demo", "--json"]);
    let story = ended.json();
    let attempts = story["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 9);
    for attempt in attempts {
        assert_eq!(attempt["held"], true, "{attempt}");
        assert_ne!(attempt["met"], "", "{attempt}");
    }
    assert_eq!(story["secret_said_aloud"]["held"], true);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
