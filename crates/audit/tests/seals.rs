//! Somebody who may write the file, and does not have the key.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hermetic_audit::{
    AppendError, AuditLog, AuditPaths, ChainFlaw, ChainReport, ProofStrength, WalkError, walk_at,
};

use crate::lab::{Lab, at, ran};

fn flaw(result: Result<ChainReport, WalkError>) -> ChainFlaw {
    match result {
        Err(WalkError::Tampered { flaw, .. }) => flaw,
        other => panic!("not noticed: {other:?}"),
    }
}

/// A whole record of somebody else's, which holds by itself.
fn forged(records: u64) -> Vec<u8> {
    Lab::with(records).bytes()
}

/// Lines without seals, as they were written before there were any.
fn without_seals(lab: &Lab) -> Vec<String> {
    let strip = |line: &String| {
        let (hash, rest) = line.split_once("\",\"seal\":\"").unwrap();
        format!("{hash}{}", &rest[64..])
    };
    lab.lines().iter().map(strip).collect()
}

#[test]
fn a_record_with_its_key_and_note_is_proven_whole() {
    let lab = Lab::with(3);
    let report = lab.verify().unwrap();
    assert_eq!((report.proof, report.sealed), (ProofStrength::Whole, 3));
    assert_eq!(report.noted, report.head);
    for file in [lab.key(), lab.note(), lab.path()] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_record_written_anew_as_a_whole_is_noticed() {
    let lab = Lab::with(3);
    for records in [1, 3, 5] {
        lab.put(&forged(records));
        assert_eq!(flaw(lab.verify()), ChainFlaw::ForeignSeal);
        let refused = lab.open().append(&ran("true"), at(1));
        assert!(
            matches!(refused, Err(AppendError::Broken { .. })),
            "{refused:?}"
        );
    }
    // Without seals it would have to be older than the key.
    lab.put_lines(&without_seals(&Lab::with(3)));
    assert_eq!(flaw(lab.verify()), ChainFlaw::Unsealed);
    let refused = lab.open().append(&ran("true"), at(1));
    assert!(
        matches!(refused, Err(AppendError::Broken { .. })),
        "{refused:?}"
    );
}

#[test]
fn an_end_that_was_cut_off_is_noticed_and_goes_on_only_with_a_word_about_it() {
    let lab = Lab::with(5);
    let lines = lab.lines();
    lab.put_lines(&lines[..3]);
    assert_eq!(flaw(lab.verify()), ChainFlaw::Cut);
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.resumed), (5, 1));
    let said = &lab.lines()[3];
    assert!(
        said.contains("\"kind\":\"resumed\"") && said.contains("\"noted\":\"5:"),
        "{said}"
    );
}

#[test]
fn a_forged_last_line_is_no_crash() {
    let lab = Lab::with(3);
    let mut lines = lab.lines();
    let other = Lab::with(4).lines();
    lines.push(other[3].clone());
    lab.put_lines(&lines);
    assert_eq!(flaw(lab.verify()), ChainFlaw::ForeignSeal);
    // Nor is one that carries no seal.
    let bare = without_seals(&Lab::with(4));
    lines[3].clone_from(&bare[3]);
    lab.put_lines(&lines);
    assert!(matches!(
        flaw(lab.verify()),
        ChainFlaw::Unsealed | ChainFlaw::Unchained
    ));
}

#[test]
fn a_line_that_was_written_and_not_noted_is_a_crash() {
    let lab = Lab::with(2);
    let noted = lab.noted();
    lab.append();
    fs::write(lab.note(), noted).unwrap();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.proof), (3, ProofStrength::Whole));
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.resumed), (4, 0));
}

#[test]
fn a_record_from_before_there_were_seals_goes_on_and_says_from_where() {
    let lab = Lab::with(2);
    let old = without_seals(&lab);
    for file in [lab.key(), lab.note()] {
        fs::remove_file(file).unwrap();
    }
    lab.put_lines(&old);
    assert_eq!(lab.verify().unwrap().proof, ProofStrength::NoKey);
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!(
        (report.records, report.sealed, report.proof),
        (4, 2, ProofStrength::OldBeginning)
    );
    assert!(lab.lines()[2].contains("\"kind\":\"sealed\""));
}

#[test]
fn without_its_key_a_record_is_not_written_and_says_what_is_not_proven() {
    let lab = Lab::with(2);
    fs::remove_file(lab.key()).unwrap();
    assert_eq!(lab.verify().unwrap().proof, ProofStrength::NoKey);
    let refused = hermetic_audit::AuditLog::open(&lab.path());
    assert!(
        matches!(refused, Err(AppendError::NoKey { .. })),
        "{refused:?}"
    );
    assert!(
        !lab.key().exists(),
        "no new key was made over the old record"
    );
}

#[test]
fn a_key_that_is_none_is_named_as_the_broken_file() {
    use std::error::Error as _;
    for wrong in [&b"garbage\xff"[..], b"no key\n", b""] {
        let lab = Lab::with(2);
        fs::write(lab.key(), wrong).unwrap();
        let error = lab.verify().unwrap_err();
        let said = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(
            said.contains(&lab.key().display().to_string()),
            "{error}: {said}"
        );
    }
}

#[test]
fn without_the_note_the_end_is_not_proven_and_the_next_writer_says_so() {
    let lab = Lab::with(2);
    for note in [
        None,
        Some("00000000000000000002:nonsense\n"),
        Some("\0\0\0"),
    ] {
        match note {
            None => fs::remove_file(lab.note()).unwrap(),
            Some(text) => fs::write(lab.note(), text).unwrap(),
        }
        assert_eq!(lab.verify().unwrap().proof, ProofStrength::NoNote);
        let before = lab.verify().unwrap().resumed;
        lab.append();
        let report = lab.verify().unwrap();
        assert_eq!(
            (report.resumed, report.proof),
            (before + 1, ProofStrength::Whole)
        );
    }
}

#[test]
fn an_emptied_record_is_not_called_whole() {
    // Written to, and nobody has said anything yet.
    let lab = Lab::with(0);
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.proof), (0, ProofStrength::Whole));

    let lab = Lab::with(3);
    lab.put(b"");
    assert_eq!(flaw(lab.verify()), ChainFlaw::Emptied { noted: 3 });
    fs::remove_file(lab.path()).unwrap();
    assert_eq!(flaw(lab.verify()), ChainFlaw::Emptied { noted: 3 });
    let stepped = hermetic_audit::walk(&lab.path()).unwrap().next();
    assert!(matches!(stepped, Some(Err(_))), "{stepped:?}");
    // Without the note, the key says that there was one; without the key, the note does.
    let noted = lab.noted();
    for note in [None, Some(&b"nonsense\n"[..])] {
        match note {
            None => fs::remove_file(lab.note()).unwrap(),
            Some(text) => fs::write(lab.note(), text).unwrap(),
        }
        assert_eq!(flaw(lab.verify()), ChainFlaw::NothingLeft);
    }
    fs::write(lab.note(), noted).unwrap();
    fs::remove_file(lab.key()).unwrap();
    assert_eq!(flaw(lab.verify()), ChainFlaw::NothingLeft);
    // A home in which nothing was ever written.
    fs::remove_file(lab.note()).unwrap();
    assert_eq!(lab.verify().unwrap().records, 0);
}

/// Nor is it by whoever opens it next, or by what is recorded then.
#[test]
fn a_record_that_was_removed_with_its_note_does_not_begin_anew_in_silence() {
    let lab = Lab::with(3);
    fs::remove_file(lab.path()).unwrap();
    fs::remove_file(lab.note()).unwrap();
    drop(lab.open());
    assert_eq!(flaw(lab.verify()), ChainFlaw::NothingLeft);
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.resumed), (2, 1));
    assert!(lab.lines()[0].contains("\"kind\":\"resumed\""));
}

#[test]
fn after_a_move_a_new_process_goes_on_where_the_old_one_stood() {
    let lab = Lab::with(3);
    let last = lab.verify().unwrap().head.unwrap();
    fs::rename(lab.path(), lab.path().with_extension("1")).unwrap();
    lab.append();
    let report = lab.verify().unwrap();
    assert_eq!((report.first, report.resumed), (Some(last.seq + 1), 0));
}

/// The folder of the record, as it was on an earlier day.
fn copy_of(lab: &Lab) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let folder = lab.path().parent().unwrap().to_owned();
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn a_folder_restored_from_an_earlier_day_is_noticed_where_the_note_lies_elsewhere() {
    let (lab, elsewhere) = (Lab::new(), tempfile::tempdir().unwrap());
    let places = AuditPaths::beside(&lab.path()).with_head(Some(elsewhere.path().join("head")));
    assert!(places.key_is_beside() && !places.head_is_beside());
    let append = |count| {
        let audit = AuditLog::open_at(places.clone()).unwrap();
        for _ in 0..count {
            audit.append(&ran("true"), at(1)).unwrap();
        }
    };
    append(3);
    let earlier = copy_of(&lab);
    append(2);
    let whole = walk_at(&places).unwrap().finish().unwrap();
    assert_eq!(whole.records, 5);
    let noted = AuditLog::open_at(places.clone()).unwrap().noted_head();
    assert_eq!(noted, whole.head, "what a log is told");
    for (path, bytes) in earlier {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(flaw(walk_at(&places).unwrap().finish()), ChainFlaw::Cut);
    // It goes on, and says so.
    append(1);
    let report = walk_at(&places).unwrap().finish().unwrap();
    assert_eq!((report.records, report.resumed), (5, 1));
    assert!(!lab.note().exists(), "no second note beside the record");
}

#[test]
fn a_key_that_somebody_else_keeps_is_used_and_none_is_made_beside_the_record() {
    let (lab, elsewhere) = (Lab::new(), tempfile::tempdir().unwrap());
    let key = elsewhere.path().join("credential");
    fs::write(&key, format!("{}\n", "5a".repeat(32))).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
    let places = AuditPaths::beside(&lab.path()).with_key(Some(key));
    let audit = AuditLog::open_at(places.clone()).unwrap();
    audit.append(&ran("true"), at(1)).unwrap();
    assert!(!lab.key().exists());
    let report = walk_at(&places).unwrap().finish().unwrap();
    assert_eq!((report.proof, report.sealed), (ProofStrength::Whole, 2));
    // Such a key says nothing about whether there was a record before, so this one begins with a word about it.
    assert_eq!(report.resumed, 1);
    // Without the way to it nothing is proven, and nothing is written.
    assert_eq!(lab.verify().unwrap().proof, ProofStrength::NoKey);
    let refused = AuditLog::open(&lab.path());
    assert!(
        matches!(refused, Err(AppendError::NoKey { .. })),
        "{refused:?}"
    );
}
