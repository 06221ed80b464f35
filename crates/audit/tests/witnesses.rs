//! Chains that witness each other.

use std::fs;
use std::path::Path;

use hermetic_audit::{
    AuditEvent, PublishedHead, VerifiedChain, WitnessDoubt, WitnessFlaw, WitnessReport,
    check_witnesses, walk,
};

use crate::lab::{Lab, at, ran, words};

impl Lab {
    fn chain(&self) -> VerifiedChain {
        walk(&self.path()).unwrap().finish_for_others().unwrap()
    }

    fn published(&self) -> PublishedHead {
        self.open().published_head().unwrap()
    }

    fn witness(&self, said: &PublishedHead) {
        let event = AuditEvent::Witnessed {
            chain: said.chain,
            place: words("machine:/home"),
            head: said.head.to_string(),
            seal: said.seal,
        };
        // A clock that was put back: no time is compared.
        self.open().append(&event, at(-5)).unwrap();
    }

    fn sees(&self, other: &Self) {
        self.witness(&other.published());
    }

    fn act(&self, many: u64) {
        for number in 0..many {
            self.open()
                .append(&ran(&number.to_string()), at(9))
                .unwrap();
        }
    }

    /// Cuts the record and has its note agree, as somebody does who has the key: here by having the same records
    /// written anew.
    fn cut_to(&self, lines: usize, noted: &[u8]) {
        self.put_lines(&self.lines()[..lines]);
        fs::write(self.note(), noted).unwrap();
        self.verify().unwrap();
    }
}

fn report(labs: &[&Lab]) -> WitnessReport {
    let chains: Vec<_> = labs.iter().map(|lab| lab.chain()).collect();
    check_witnesses(&chains)
}

fn is(path: &Path, lab: &Lab) -> bool {
    path == lab.path()
}

#[test]
fn chains_that_are_what_others_saw_are_proven() {
    let (one, two) = (Lab::with(3), Lab::with(1));
    two.sees(&one);
    one.sees(&two);
    one.act(2);
    two.sees(&one);
    let report = report(&[&one, &two]);
    assert_eq!((report.proven, report.flaws.len()), (3, 0));
    assert!(report.doubts.is_empty(), "{:?}", report.doubts);
}

#[test]
fn a_chain_that_was_cut_behind_a_witnessed_head_is_told_with_where_from() {
    let (one, two) = (Lab::with(2), Lab::with(1));
    let noted = one.noted();
    one.act(1);
    two.sees(&one);
    one.act(4);
    two.sees(&one);
    one.cut_to(2, &noted);
    let report = report(&[&one, &two]);
    assert_eq!(report.proven, 0);
    assert!(
        matches!(&report.flaws[..], [WitnessFlaw::Cut { path, ends: 2, witnessed: 3, by, record: 2 }]
            if is(path, &one) && is(by, &two)),
        "{:?}",
        report.flaws
    );
}

#[test]
fn a_chain_that_was_written_anew_is_told_even_where_it_is_longer() {
    let (one, two) = (Lab::with(2), Lab::with(1));
    let noted = one.noted();
    two.sees(&one);
    one.act(1);
    two.sees(&one);
    one.cut_to(2, &noted);
    one.append();
    one.act(7);
    let report = report(&[&one, &two]);
    assert_eq!(report.proven, 1);
    assert!(
        matches!(&report.flaws[..], [WitnessFlaw::Rewritten { path, witnessed: 3, record: 3, .. }]
            if is(path, &one)),
        "{:?}",
        report.flaws
    );
}

#[test]
fn a_word_that_the_chain_never_gave_is_no_proof_against_it() {
    let (one, two, stranger) = (Lab::with(3), Lab::with(1), Lab::with(9));
    let forged = PublishedHead {
        chain: one.published().chain,
        ..stranger.published()
    };
    two.witness(&forged);
    let report = report(&[&one, &two]);
    assert_eq!((report.proven, report.flaws.len()), (0, 0));
    assert!(
        matches!(report.doubts[..], [WitnessDoubt::Forged { chain, heads: 1, record: 2, .. }]
            if chain == forged.chain),
        "{:?}",
        report.doubts
    );
}

#[test]
fn a_chain_that_is_not_at_hand_is_said_to_be_unproven() {
    let (one, two) = (Lab::with(3), Lab::with(1));
    two.sees(&one);
    one.act(1);
    two.sees(&one);
    let last = one.published().head;
    let report = report(&[&two]);
    assert!(
        matches!(&report.doubts[..], [WitnessDoubt::Missing { heads: 2, last: seen, record: 3, .. }]
            if *seen == last),
        "{:?}",
        report.doubts
    );
    // Without its key nobody can tell which chain a file is.
    fs::remove_file(one.key()).unwrap();
    let report = crate::witnesses::report(&[&two, &one]);
    assert_eq!((report.proven, report.doubts.len()), (0, 1));
}

#[test]
fn of_two_chains_with_one_key_either_may_be_the_one_that_was_seen() {
    let (one, two, by) = (Lab::with(0), Lab::with(0), Lab::with(1));
    fs::copy(one.key(), two.key()).unwrap();
    fs::remove_file(two.note()).unwrap();
    one.act(3);
    two.act(1);
    by.sees(&one);
    by.sees(&two);
    let both = report(&[&one, &two, &by]);
    assert_eq!((both.proven, both.flaws.len()), (2, 0));
    // And where neither is, it is told.
    one.put_lines(&one.lines()[..1]);
    fs::remove_file(one.note()).unwrap();
    let cut = report(&[&one, &two, &by]);
    assert_eq!((cut.proven, cut.flaws.len()), (1, 1));
}

#[test]
fn what_was_seen_of_records_that_were_moved_elsewhere_is_left_open() {
    let (one, two) = (Lab::with(3), Lab::with(1));
    two.sees(&one);
    fs::rename(one.path(), one.path().with_extension("old")).unwrap();
    one.act(2);
    let report = report(&[&one, &two]);
    assert!(report.flaws.is_empty());
    assert!(
        matches!(report.doubts[..], [WitnessDoubt::Earlier { heads: 1, .. }]),
        "{:?}",
        report.doubts
    );
}
