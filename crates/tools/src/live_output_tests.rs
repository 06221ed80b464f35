use hermetic_redact::RedactorSettings;
use hermetic_types::Secret;

use super::*;

const SECRET: &str = "correct-horse-battery";

fn outputs() -> LiveOutputs {
    let known = [Secret::new(SECRET)];
    LiveOutputs::new(Redactor::new(known, RedactorSettings::default()))
}

fn place() -> ConversationKey {
    ConversationKey::new("agent:main:telegram:dm:7")
}

fn text(outputs: &LiveOutputs) -> String {
    let shown = outputs.of(&place());
    shown.map_or_else(String::new, |shown| shown.text.into_inner())
}

#[test]
fn it_grows_while_the_call_runs_and_is_gone_with_it() {
    let outputs = outputs();
    let changes = outputs.changes();
    assert_eq!(outputs.of(&place()), None);
    let call = outputs.begin(&place());
    assert_eq!(outputs.of(&place()), None, "nothing was written yet");
    call.heard(OutputStream::Out, b"one\n\x1b[31mtwo\x1b[0m\r\n");
    assert!(changes.has_changed().unwrap());
    assert!(text(&outputs).starts_with("one\ntwo"), "{}", text(&outputs));
    call.heard(OutputStream::Err, b"a complaint\n");
    call.heard(OutputStream::Out, b"three, and the end of it\n");
    let shown = text(&outputs);
    assert!(
        shown.contains("three") && shown.contains("compl"),
        "{shown}"
    );
    let other = ConversationKey::new("agent:main:telegram:dm:8");
    assert_eq!(outputs.of(&other), None);
    drop(call);
    assert_eq!(outputs.of(&place()), None);
    assert!(outputs.calls().is_empty());
}

#[test]
fn a_later_call_is_not_ended_by_the_end_of_an_earlier_one() {
    let outputs = outputs();
    let earlier = outputs.begin(&place());
    earlier.heard(OutputStream::Out, b"of the earlier one\n");
    let later = outputs.begin(&place());
    later.heard(OutputStream::Out, b"of the later one\n");
    drop(earlier);
    assert!(text(&outputs).contains("later"));
    drop(later);
    assert_eq!(text(&outputs), "");
}

/// Looked at after every byte, as the quickest reader would.
#[test]
fn no_piece_of_a_secret_shows_however_it_was_cut() {
    let line = format!("it is {SECRET}\nand that was all of it, as far as anybody knows\n");
    for size in [1, 2, 3, 5, 7, line.len()] {
        let outputs = outputs();
        let call = outputs.begin(&place());
        for piece in line.as_bytes().chunks(size) {
            call.heard(OutputStream::Out, piece);
            let shown = text(&outputs);
            for length in 4..SECRET.len() {
                assert!(!shown.contains(&SECRET[..length]), "{size}: {shown}");
            }
        }
        assert!(text(&outputs).contains("[redacted]"), "{}", text(&outputs));
    }
}

#[test]
fn the_other_stream_does_not_cut_a_secret_in_two() {
    let outputs = outputs();
    let call = outputs.begin(&place());
    for byte in SECRET.as_bytes().chunks(4) {
        call.heard(OutputStream::Out, byte);
        call.heard(OutputStream::Err, b".");
    }
    call.heard(OutputStream::Out, b"\nmore than that comes after it\n");
    let shown = text(&outputs);
    assert!(shown.contains("[redacted]"), "{shown}");
    assert!(
        !shown.contains("corr") && !shown.contains("tery"),
        "{shown}"
    );
}

#[test]
fn what_is_kept_and_shown_is_bounded_and_no_half_secret_stands_at_the_cut() {
    let outputs = outputs();
    let call = outputs.begin(&place());
    // Every place of a cut falls into a secret sooner or later.
    let filler = format!("{SECRET} {}\n", "x".repeat(30));
    for _ in 0..20_000 {
        call.heard(OutputStream::Out, filler.as_bytes());
    }
    let shown = outputs.of(&place()).unwrap();
    assert!(shown.is_cut);
    assert_eq!(shown.bytes, 20_000 * filler.len() as u64);
    assert!(shown.text.as_str().len() <= MOST_SHOWN);
    for piece in ["corr", "horse", "tery"] {
        assert!(!shown.text.as_str().contains(piece));
    }
    let streams = call.tails.streams();
    assert!(streams.iter().all(|one| one.bytes.len() <= MOST_KEPT));
    drop(streams);
    // A single write that is larger than all that is kept.
    call.heard(OutputStream::Err, &vec![b'y'; 5 * MOST_KEPT]);
    assert!(call.tails.streams()[1].bytes.len() <= MOST_KEPT);
}

#[test]
fn many_who_look_cost_one_pass() {
    let outputs = outputs();
    let call = outputs.begin(&place());
    call.heard(OutputStream::Out, b"a line that everybody reads\n");
    let first = outputs.of(&place()).unwrap();
    // What was shown is remembered, so the mark stands where a pass would have made another text.
    let mark = RunningOutput {
        text: Redacted::constant("remembered"),
        ..first
    };
    *call.tails.shown.lock().unwrap() = Some(mark);
    assert_eq!(text(&outputs), "remembered");
    call.heard(OutputStream::Out, b"and one more\n");
    assert!(text(&outputs).contains("everybody"));
}
