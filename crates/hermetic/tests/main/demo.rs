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
    // The story ends by the gateway being stopped, which is no trouble of a part of it.
    assert!(!ended.err.contains("degraded"), "{}", ended.err);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// As on a system as small as a container's.
#[test]
fn without_certificates_of_authorities_that_is_what_is_said() {
    let small = |home: Hermetic| {
        home.variable("SSL_CERT_FILE", "/nonexistent")
            .variable("SSL_CERT_DIR", "/nonexistent")
    };
    let bot = "telegram: {token: '1:a'}\n";
    for (home, command) in [
        (Hermetic::new(), "demo"),
        (Hermetic::with(bot), "gateway run"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ended = small(home).run(&words);
        assert_ne!(ended.code, 0, "{command}");
        assert!(
            ended.err.contains("no certificates of authorities"),
            "{command}: {}",
            ended.err
        );
        assert!(
            ended.err.contains("apt-get install ca-certificates"),
            "{command}: {}",
            ended.err
        );
    }
}
