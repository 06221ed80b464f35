use std::fs;

use hermetic_audit::{AppendError, ChainFlaw, WalkError, walk};

use crate::lab::{Lab, at, ran};

fn flaw(result: Result<hermetic_audit::ChainReport, WalkError>) -> (u64, ChainFlaw) {
    match result {
        Err(WalkError::Tampered { line, flaw, .. }) => (line, flaw),
        other => panic!("not noticed: {other:?}"),
    }
}

#[test]
fn what_was_written_is_read_and_holds_together() {
    let lab = Lab::with(3);
    let said: Vec<_> = walk(&lab.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(said[2].event["command"], "echo 2");
    assert_eq!(said[2].seq, 3);
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.first, report.torn), (3, Some(1), 0));
    // A head that was noted elsewhere is found again.
    let noted = report.head.unwrap().to_string();
    assert_eq!(noted.parse(), Ok(report.head.unwrap()));
}

#[test]
fn a_changed_byte_never_passes() {
    let lab = Lab::with(3);
    let whole = lab.bytes();
    for index in 0..whole.len() {
        for mask in [0x01, 0x20, 0x80] {
            let mut changed = whole.clone();
            changed[index] ^= mask;
            lab.put(&changed);
            match lab.verify() {
                Err(WalkError::Tampered { .. }) => {}
                // In the last line it may look like a cut write, and then it says so.
                Ok(report) => assert!(report.torn > 0, "byte {index} passed: {report:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_removed_a_moved_and_a_repeated_line_are_noticed() {
    let lab = Lab::with(4);
    let lines = lab.lines();
    let mut removed = lines.clone();
    removed.remove(1);
    lab.put_lines(&removed);
    assert_eq!(flaw(lab.verify()), (2, ChainFlaw::Unchained));

    let mut moved = lines.clone();
    moved.swap(1, 2);
    lab.put_lines(&moved);
    assert_eq!(flaw(lab.verify()), (2, ChainFlaw::Unchained));

    let mut repeated = lines.clone();
    repeated.insert(2, lines[1].clone());
    lab.put_lines(&repeated);
    assert_eq!(flaw(lab.verify()), (3, ChainFlaw::Unchained));

    let mut begun = lines;
    begun[0] = begun[0].replace("\"seq\":1", "\"seq\":0");
    lab.put_lines(&begun);
    assert_eq!(flaw(lab.verify()), (1, ChainFlaw::Changed));
}

#[test]
fn a_line_put_in_between_is_noticed_even_if_it_says_it_mends() {
    let lab = Lab::with(2);
    let mut lines = lab.lines();
    lines.insert(1, "rubbish".to_owned());
    lab.put_lines(&lines);
    assert_eq!(flaw(lab.verify()), (2, ChainFlaw::NoRecord));
}

#[test]
fn a_last_line_that_was_changed_is_not_built_upon() {
    let lab = Lab::with(2);
    let text = String::from_utf8(lab.bytes()).unwrap();
    lab.put(text.replace("echo 1", "echo 9").as_bytes());
    let refused = lab.open().append(&ran("true"), at(1));
    assert!(
        matches!(refused, Err(AppendError::Broken { .. })),
        "{refused:?}"
    );
}

#[test]
fn whoever_writes_notices_that_the_end_was_cut_off() {
    let lab = Lab::with(3);
    let audit = lab.open();
    audit.append(&ran("true"), at(1)).unwrap();
    let lines = lab.lines();
    lab.put_lines(&lines[..2]);
    let refused = audit.append(&ran("true"), at(1));
    assert!(
        matches!(refused, Err(AppendError::Broken { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_file_that_is_moved_away_is_followed_by_one_that_goes_on() {
    let lab = Lab::new();
    let audit = lab.open();
    let last = (0..3)
        .map(|_| audit.append(&ran("a"), at(1)).unwrap())
        .last();
    let kept = lab.path().with_extension("1");
    fs::rename(lab.path(), &kept).unwrap();
    audit.append(&ran("b"), at(2)).unwrap();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.first), (1, Some(4)));
    let first = walk(&lab.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(Some(first.prev), last.map(|head| head.hash));
}

/// To the end on several cores, and record by record: whichever way, the same is found.
#[test]
fn both_ways_through_a_record_come_to_the_same() {
    let lab = Lab::new();
    let audit = lab.open();
    for number in 0..1500 {
        let said = ran(&format!("echo {number} {}", "x".repeat(300)));
        audit.append(&said, at(1)).unwrap();
    }
    let (whole, noted) = (lab.bytes(), lab.noted());
    // More than one block, or only one core would read it.
    assert!(whole.len() > 3 * 4 * hermetic_audit::LONGEST_RECORD_LINE / 2);
    let lines: Vec<Vec<u8>> = whole
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let both = |what: &str, bytes: &[u8]| {
        lab.die_at(bytes, &noted);
        let at_once = lab.verify().map_err(|error| error.to_string());
        let mut walked = walk(&lab.path()).unwrap();
        let step_by_step = match walked.find_map(Result::err) {
            Some(error) => Err(error.to_string()),
            None => Ok(walked.report().clone()),
        };
        assert_eq!(at_once, step_by_step, "{what}");
        at_once
    };
    assert_eq!(both("untouched", &whole).unwrap().records, 1500);
    for place in [0, 1, 700, 1499] {
        let edit = |edit: &dyn Fn(&mut Vec<Vec<u8>>)| {
            let mut edited = lines.clone();
            edit(&mut edited);
            edited.concat()
        };
        let removed = edit(&|lines| drop(lines.remove(place)));
        let doubled = edit(&|lines| lines.insert(place, lines[place].clone()));
        let scrap = edit(&|lines| lines.insert(place, b"not a record\n".to_vec()));
        let long =
            edit(&|lines| lines.insert(place, [b"y".repeat(70_000), b"\n".to_vec()].concat()));
        let cut = edit(&|lines| lines[place].truncate(200));
        let changed = edit(&|lines| *lines[place].last_chunk_mut::<20>().unwrap() = [b'z'; 20]);
        let unsealed = edit(&|lines| {
            let text = String::from_utf8(lines[place].clone()).unwrap();
            let (before, rest) = text.split_once("\",\"seal\":\"").unwrap();
            lines[place] = format!("{before}{}", &rest[64..]).into_bytes();
        });
        let edits = [
            ("removed", removed),
            ("doubled", doubled),
            ("scrap", scrap),
            ("long", long),
            ("cut", cut),
            ("changed", changed),
            ("unsealed", unsealed),
        ];
        for (what, bytes) in edits {
            let found = both(&format!("{what} at {place}"), &bytes);
            // At its ends a record may have been moved aside, older than its key, or cut by a crash.
            assert!(
                found.is_err() || place != 700,
                "{what} at {place}: {found:?}"
            );
        }
    }
}
