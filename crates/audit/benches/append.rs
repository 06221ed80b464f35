//! Records added to a file, one writer and four, and a file verified; beside each what the machine takes for the
//! same without us, in the same run: the system calls of an append alone, and the hashes of a record alone.
//!
//! `cargo bench -p hermetic-audit`

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hermetic_audit::{AuditEvent, AuditLog, AuditText, CommandDecision, walk};
use hermetic_types::{BackendKind, ConversationKey, Timestamp};
use sha2::{Digest as _, Sha256};

const RECORDS: u32 = 100_000;
const VERIFIED: u32 = 1_000_000;
/// Writers at once, as turns of several conversations are.
const WRITERS: u32 = 4;
/// About a line of the record below.
const LINE: usize = 560;

type Done<T> = Result<T, Box<dyn Error>>;

fn main() -> Done<()> {
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
    let floor = system_calls(folder.path())?;
    say("system calls alone", RECORDS, floor);
    let began = Instant::now();
    append(RECORDS);
    let alone = began.elapsed();
    say("added by one thread", RECORDS, alone);
    say_ratio(alone, floor);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| append(RECORDS / WRITERS));
        }
    });
    let together = began.elapsed();
    say("added by four threads", RECORDS, together);
    say_ratio(together, floor);
    append(VERIFIED - 2 * RECORDS);
    let floor = hashes(VERIFIED);
    say("hashes alone, one core", VERIFIED, floor);
    let began = Instant::now();
    let report = walk(&path)?.finish()?;
    let took = began.elapsed();
    assert_eq!(report.records, u64::from(VERIFIED), "all of them");
    say("verified", VERIFIED, took);
    say_ratio(took, floor);
    println!("{:>24}: {took:?}", "a million records");
    Ok(())
}

/// Lock, look at the file and at its name, a line, the note, unlock.
fn system_calls(folder: &Path) -> Done<Duration> {
    let path = folder.join("floor.jsonl");
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(&path)?;
    let note = File::create(folder.join("floor.head"))?;
    let (line, head) = ([b'x'; LINE], [b'y'; 151]);
    let began = Instant::now();
    for _ in 0..RECORDS {
        file.try_lock()?;
        file.metadata()?;
        fs::metadata(&path)?;
        file.write_all(&line)?;
        note.write_all_at(&head, 0)?;
        file.unlock()?;
    }
    Ok(began.elapsed())
}

/// A record's own hash, and the two of its seal, which is over a few bytes.
fn hashes(count: u32) -> Duration {
    let body = [b'x'; LINE - 180];
    let began = Instant::now();
    for _ in 0..count {
        let hash = Sha256::digest(std::hint::black_box(body));
        let inner = Sha256::digest(hash);
        std::hint::black_box(Sha256::digest(inner));
    }
    began.elapsed()
}

fn say(what: &str, count: u32, took: Duration) {
    let rate = f64::from(count) / took.as_secs_f64();
    println!("{what:>24}: {rate:8.0} records/s, {:?} each", took / count);
}

fn say_ratio(ours: Duration, floor: Duration) {
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("{:>24}: {ratio:.2} ×", "of that");
}
