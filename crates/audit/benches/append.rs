//! Records added to a file, one writer and four, and a file walked.
//!
//! `cargo bench -p hermetic-audit`

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use hermetic_audit::{AuditEvent, AuditLog, AuditText, CommandDecision, walk};
use hermetic_types::{BackendKind, ConversationKey, Timestamp};

const RECORDS: u32 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("audit.jsonl");
    let audit = AuditLog::open(&path)?;
    let event = AuditEvent::Command {
        conversation: ConversationKey::new("agent:main:telegram:dm:7"),
        backend: BackendKind::Native,
        command: AuditText::constant("cargo test --workspace && git push origin main"),
        decision: CommandDecision::Run,
        grounds: AuditText::constant("sealed"),
    };
    let append = |count: u32| {
        for _ in 0..count {
            if let Err(error) = audit.append(&event, Timestamp::from_millis(1)) {
                println!("cannot append: {error}");
            }
        }
    };
    let started = Instant::now();
    append(RECORDS);
    say("added by one thread", started.elapsed());
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| append(RECORDS / 4));
        }
    });
    say("added by four threads", started.elapsed());
    let started = Instant::now();
    let report = walk(&path)?.finish()?;
    say(
        "walked",
        started.elapsed() * RECORDS / u32::try_from(report.records)?,
    );
    Ok(())
}

fn say(what: &str, took: Duration) {
    let rate = f64::from(RECORDS) / took.as_secs_f64();
    println!(
        "{what:>24}: {rate:8.0} records/s, {:?} each",
        took / RECORDS
    );
}
