use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::thread;

use crate::lab::{Lab, at, ran};

#[test]
fn writers_at_once_do_not_fork_the_chain() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 100;
    let lab = Lab::new();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            // Each with a file of its own, as another process would have.
            let audit = lab.open();
            scope.spawn(move || {
                for _ in 0..EACH {
                    audit.append(&ran("true"), at(1)).unwrap();
                }
            });
        }
    });
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.mended), (WRITERS * EACH, 0));
}

#[test]
fn threads_of_one_process_share_writes_and_each_waits_for_its_own() {
    const THREADS: u64 = 8;
    const EACH: u64 = 150;
    let lab = Lab::new();
    let audit = lab.open();
    let heads = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let audit = &audit;
                scope.spawn(move || {
                    let append = |step: u64| {
                        let said = ran(&format!("echo {number} {step}"));
                        let head = audit.append(&said, at(1)).unwrap();
                        let noted = audit.noted_head().unwrap();
                        assert!(noted.seq >= head.seq, "it was not written yet");
                        head.seq
                    };
                    (0..EACH).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    for own in &heads {
        assert!(own.is_sorted(), "what one thread says stays in its order");
    }
    let all: BTreeSet<u64> = heads.into_iter().flatten().collect();
    assert_eq!(all, (1..=THREADS * EACH).collect());
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.mended), (THREADS * EACH, 0));
}

/// Set for the process whose disk is full.
const FULL: &str = "HERMETIC_AUDIT_TEST_FULL";

#[test]
fn on_a_full_disk_those_fail_that_are_not_written_and_no_others() {
    let lab = Lab::new();
    let program = std::env::current_exe().unwrap();
    let limited =
        "trap '' XFSZ; ulimit -S -f 48; exec \"$0\" --exact writers::writes_until_full --nocapture";
    let child = Command::new("bash")
        .args(["-c", limited])
        .arg(program)
        .env(FULL, lab.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    let written = said.lines().filter(|line| line.ends_with("written"));
    let written = u64::try_from(written.count()).unwrap();
    assert!(child.status.success() && written > 10, "{said}");
    let report = lab.verify().unwrap();
    assert_eq!(report.records - report.mended, written, "{report:?}");
    assert_eq!(report.torn, 0, "{report:?}");
}

/// No story of its own: what the one above starts.
#[test]
fn writes_until_full() {
    let Some(path) = std::env::var_os(FULL) else {
        return;
    };
    let audit = hermetic_audit::AuditLog::open(path.as_ref()).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while audit.append(&ran(&"x".repeat(300)), at(1)).is_ok() {
                    println!("\nwritten");
                }
            });
        }
    });
    // A line that was cut off is vouched for once there is room, by this very process, and not before.
    for _ in 0..3 {
        assert!(audit.append(&ran("no room"), at(2)).is_err());
    }
    let own = std::process::id().to_string();
    let room = Command::new("prlimit")
        .args(["--fsize=unlimited", "--pid", &own])
        .status();
    assert!(room.unwrap().success());
    for _ in 0..2 {
        audit.append(&ran("room"), at(3)).unwrap();
        println!("\nwritten");
    }
}

#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::with(1);
    let mode = std::fs::metadata(lab.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
