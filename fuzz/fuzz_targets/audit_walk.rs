//! Any bytes as a record, and any bytes put into a true one: nothing panics, and what was put in is
//! noticed.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use hermetic_audit::{AuditLog, CommandDecision, AuditEvent, AuditText, walk};
use hermetic_fuzz::folder;
use hermetic_types::{BackendKind, ConversationKey, Timestamp};
use libfuzzer_sys::fuzz_target;

/// A record of three lines, with its key and its note.
static TRUE_RECORD: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let path = folder().join("true").join("audit.jsonl");
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
    let audit = AuditLog::open(&path).expect("a record can be begun");
    for _ in 0..3 {
        audit
            .append(&event(), Timestamp::from_millis(1))
            .expect("it can be written");
    }
    let bytes = fs::read(&path).expect("it was just written");
    (path, bytes)
});

fuzz_target!(|bytes: &[u8]| {
    let hostile = folder().join("audit.jsonl");
    try_to_go_on(&hostile, bytes);

    let [first, second, put_in @ ..] = bytes else {
        return;
    };
    let (path, whole) = &*TRUE_RECORD;
    let at = usize::from(u16::from_le_bytes([*first, *second])) % whole.len();
    let mut forged = whole.clone();
    forged.splice(at..at, put_in.iter().copied());
    fs::write(path, &forged).expect("it can be written");
    let walked = walk(path).and_then(hermetic_audit::RecordWalk::finish);
    // At the very end, what is no record may be a write that was cut: it is told as that, and no flaw.
    let noticed = walked.as_ref().map_or(true, |report| report.torn > 0);
    assert_eq!(noticed, !put_in.is_empty(), "{walked:?}");
});

/// Walks a file of which nothing is ours, then lets a writer go on behind it. Both may refuse.
fn try_to_go_on(path: &Path, bytes: &[u8]) {
    for entry in fs::read_dir(folder()).expect("our own folder").flatten() {
        // The key and the note of the run before.
        let _ = fs::remove_file(entry.path());
    }
    fs::write(path, bytes).expect("it can be written");
    let walked = walk(path).and_then(hermetic_audit::RecordWalk::finish);
    let Ok(audit) = AuditLog::open(path) else { return };
    if audit.append(&event(), Timestamp::from_millis(2)).is_ok() && walked.is_ok() {
        let again = walk(path).and_then(hermetic_audit::RecordWalk::finish);
        assert!(
            again.is_ok(),
            "what was whole is broken by going on: {again:?}"
        );
    }
}

fn event() -> AuditEvent {
    AuditEvent::Command {
        conversation: ConversationKey::new("fuzz"),
        backend: BackendKind::Native,
        command: AuditText::constant("true"),
        decision: CommandDecision::Run,
        grounds: AuditText::constant("sealed"),
    }
}
