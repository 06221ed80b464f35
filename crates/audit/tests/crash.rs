//! A write that was cut anywhere is told apart from tampering, and buried by nothing.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::lab::{Lab, at, ran};

/// Set for the process that is going to be killed.
const CHILD: &str = "HERMETIC_AUDIT_TEST_FILE";

#[test]
fn a_write_cut_at_any_byte_is_vouched_for_by_the_next() {
    let lab = Lab::with(1);
    let noted = lab.noted();
    lab.append();
    let whole = lab.bytes();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first + 1..whole.len() - 1 {
        lab.die_at(&whole[..cut], &noted);
        let torn = lab.verify().unwrap();
        assert_eq!((torn.records, torn.torn), (1, (cut - first) as u64));
        lab.append();
        let mended = lab.verify().unwrap();
        assert_eq!((mended.records, mended.mended, mended.torn), (3, 1, 0));
        // Nothing was taken away for it.
        assert!(lab.bytes().starts_with(&whole[..cut]));
    }
    // Only the end of its line is missing: it is a record.
    lab.die_at(&whole[..whole.len() - 1], &noted);
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.mended), (3, 0));
}

#[test]
fn the_record_that_mends_may_be_cut_as_well() {
    let lab = Lab::with(1);
    let noted = lab.noted();
    lab.append();
    let whole = lab.bytes();
    lab.die_at(&whole[..whole.len() - 20], &noted);
    lab.append();
    let mended = lab.bytes();
    for cut in whole.len() - 19..mended.len() {
        lab.die_at(&mended[..cut], &noted);
        lab.append();
        let report = lab.verify().unwrap();
        assert!(report.mended >= 1 && report.torn == 0, "{cut}: {report:?}");
    }
}

#[test]
fn the_very_first_record_may_be_cut() {
    let lab = Lab::with(0);
    let noted = lab.noted();
    lab.append();
    let whole = lab.bytes();
    for cut in 1..whole.len() - 1 {
        lab.die_at(&whole[..cut], &noted);
        lab.append();
        let report = lab.verify().unwrap();
        assert_eq!(
            (report.records, report.mended, report.first),
            (2, 1, Some(1))
        );
    }
}

#[test]
fn zeros_that_a_power_cut_leaves_are_a_cut_write() {
    let lab = Lab::with(2);
    let mut bytes = lab.bytes();
    bytes.extend([0; 4096]);
    lab.put(&bytes);
    assert_eq!(lab.verify().unwrap().torn, 4096);
    lab.append();
    assert_eq!(lab.verify().unwrap().mended, 1);
}

#[test]
fn killed_writers_leave_a_chain_that_holds() {
    let lab = Lab::new();
    for round in 1..=8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::writes_until_killed", "--nocapture"])
            .env(CHILD, lab.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let written = said
            .by_ref()
            .map(Result::unwrap)
            .filter(|line| line == "written");
        assert_eq!(written.take(round * 5).count(), round * 5);
        child.kill().unwrap();
        child.wait().unwrap();
        lab.append();
        let report = lab.verify().unwrap();
        assert_eq!(report.torn, 0, "{report:?}");
    }
    assert!(lab.verify().unwrap().records > 8 * 5);
}

/// No story of its own: what the one above starts and kills.
#[test]
fn writes_until_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let audit = hermetic_audit::AuditLog::open(path.as_ref()).unwrap();
    loop {
        audit.append(&ran(&"x".repeat(1000)), at(1)).unwrap();
        println!("written");
    }
}
