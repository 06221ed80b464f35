//! Records added to a file, one writer and four, and a file verified; beside each what the machine takes for the
//! same without us, in the same run: the system calls of an append alone, and the hashes of a record alone.
//! Processor time is given beside the time on the clock, which other work on a machine falsifies.
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
    let floor = measured("system calls alone", RECORDS, || {
        system_calls(folder.path())
    })?;
    let alone = measured("added by one thread", RECORDS, || {
        append(RECORDS);
        Ok(())
    })?;
    say_ratio(alone, floor);
    let together = measured("added by four threads", RECORDS, || {
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| append(RECORDS / WRITERS));
            }
        });
        Ok(())
    })?;
    say_ratio(together, floor);
    append(VERIFIED - 2 * RECORDS);
    let floor = measured("hashes alone, one core", VERIFIED, || {
        hashes(VERIFIED);
        Ok(())
    })?;
    let verified = measured("verified", VERIFIED, || {
        let report = walk(&path)?.finish()?;
        assert_eq!(report.records, u64::from(VERIFIED), "all of them");
        Ok(())
    })?;
    say_ratio(verified, floor);
    println!("{:>24}: {:?}", "a million records", verified.clock);
    Ok(())
}

/// Lock, look at the file and at its name, a line, the note, unlock.
fn system_calls(folder: &Path) -> Done<()> {
    let path = folder.join("floor.jsonl");
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(&path)?;
    let note = File::create(folder.join("floor.head"))?;
    let (line, head) = ([b'x'; LINE], [b'y'; 151]);
    for _ in 0..RECORDS {
        file.try_lock()?;
        file.metadata()?;
        fs::metadata(&path)?;
        file.write_all(&line)?;
        note.write_all_at(&head, 0)?;
        file.unlock()?;
    }
    Ok(())
}

/// A record's own hash, and the two of its seal, which is over a few bytes.
fn hashes(count: u32) {
    let body = [b'x'; LINE - 180];
    for _ in 0..count {
        let hash = Sha256::digest(std::hint::black_box(body));
        let inner = Sha256::digest(hash);
        std::hint::black_box(Sha256::digest(inner));
    }
}

/// What something took.
#[derive(Clone, Copy)]
struct TimeTaken {
    clock: Duration,
    /// Of all threads.
    processor: Duration,
}

fn measured(what: &str, count: u32, run: impl FnOnce() -> Done<()>) -> Done<TimeTaken> {
    let (began, used) = (Instant::now(), processor_time()?);
    run()?;
    let took = TimeTaken {
        clock: began.elapsed(),
        processor: processor_time()?.saturating_sub(used),
    };
    let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
    println!(
        "{what:>24}: {:8.0} records/s, {:?} each; by processor time {:8.0}, {:?} each",
        rate(took.clock),
        took.clock / count,
        rate(took.processor),
        took.processor / count
    );
    Ok(took)
}

fn say_ratio(ours: TimeTaken, floor: TimeTaken) {
    let ratio = |ours: Duration, floor: Duration| ours.as_secs_f64() / floor.as_secs_f64();
    println!(
        "{:>24}: {:.2} × on the clock, {:.2} × by processor time",
        "of that",
        ratio(ours.clock, floor.clock),
        ratio(ours.processor, floor.processor)
    );
}

/// Of this process, its own and the kernel's for it, in the kernel's unit of a hundredth of a second.
fn processor_time() -> Done<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(')').ok_or("no name")?;
    let mut numbers = rest.split_whitespace().skip(11);
    let mut ticks = || {
        numbers
            .next()
            .ok_or("too short")?
            .parse::<u64>()
            .map_err(|_| "no number")
    };
    Ok(Duration::from_millis(10 * (ticks()? + ticks()?)))
}
