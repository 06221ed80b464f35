use std::fs;

use hermetic_audit::{
    ApprovalAnswer, ApprovalSubject, AuditEvent, AuditText, ChainFlaw, LONGEST_RECORD_LINE,
    WalkError, walk,
};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::{ConversationKey, Secret};
use proptest::prelude::*;

use crate::lab::{Lab, at, ran, words};

#[test]
fn the_longest_record_fits_whatever_is_in_it() {
    let lab = Lab::new();
    let long = words(&"\u{1}".repeat(1 << 20));
    let event = AuditEvent::Answered {
        request: long.clone(),
        conversation: ConversationKey::new("k".repeat(1000)),
        subject: ApprovalSubject::Command,
        what: long.clone(),
        answer: ApprovalAnswer::Approved,
        scope: long.clone(),
        by: long.clone(),
        via: long.clone(),
        reason: long,
    };
    lab.open().append(&event, at(1)).unwrap();
    assert!(lab.bytes().len() <= LONGEST_RECORD_LINE);
    assert_eq!(lab.verify().unwrap().records, 1);
}

#[test]
fn a_secret_is_not_written_down() {
    let redactor = Redactor::new(
        [Secret::new("correct-horse-battery")],
        RedactorSettings::default(),
    );
    let lab = Lab::new();
    let command = AuditText::from(redactor.redact("curl -u me:correct-horse-battery host"));
    let mut event = ran("");
    if let AuditEvent::Command { command: slot, .. } = &mut event {
        *slot = command;
    }
    lab.open().append(&event, at(1)).unwrap();
    let text = String::from_utf8(lab.bytes()).unwrap();
    assert!(
        !text.contains("correct-horse") && text.contains("[redacted]"),
        "{text}"
    );
}

#[test]
fn a_line_without_end_costs_no_memory() {
    let lab = Lab::new();
    lab.put(&vec![b'x'; 4 * LONGEST_RECORD_LINE]);
    let error = lab.verify().unwrap_err();
    assert!(
        matches!(
            error,
            WalkError::Tampered {
                flaw: ChainFlaw::TooLong,
                ..
            }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_file_can_be_walked_and_any_that_holds_can_be_added_to(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        records in 0u64..3,
    ) {
        let lab = Lab::with(records);
        let mut whole = fs::read(lab.path()).unwrap_or_default();
        whole.extend_from_slice(&bytes);
        lab.put(&whole);
        let walked = walk(&lab.path()).unwrap().finish();
        if walked.is_ok() {
            lab.append();
            let report = lab.verify().unwrap();
            prop_assert_eq!(report.torn, 0);
            prop_assert!(report.records > records);
        }
    }
}
