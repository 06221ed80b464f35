use hermetic_store::{MessageEnd, RowOwner};
use hermetic_types::{Platform, SystemClock};

use super::*;
use crate::conversation::journal::end_answers;
use crate::test_lab::TestLab;

fn person(user: i64) -> AskedPerson {
    AskedPerson {
        account: Platform::Telegram.into(),
        user: UserId::from(user),
    }
}

fn open(choices: &[&str]) -> (OpenClarification, oneshot::Receiver<String>) {
    let (answer, receiver) = oneshot::channel();
    let question = OpenClarification {
        number: 0,
        asked: person(7),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        tokens: (0..choices.len()).map(|at| format!("c:{at}")).collect(),
        answer,
        turn: TurnControl::below(&CancellationToken::new()),
    };
    (question, receiver)
}

#[test]
fn a_number_is_a_choice_and_words_are_an_answer() {
    let (question, _receiver) = open(&["staging", "production"]);
    for (words, meant) in [
        ("2", "production"),
        (" 1. ", "staging"),
        ("2)", "production"),
        ("0", "0"),
        ("3", "3"),
        ("neither", "neither"),
        ("99999999999999999999", "99999999999999999999"),
    ] {
        assert_eq!(question.meant_by(words), meant);
    }
}

#[test]
fn only_who_was_asked_answers_and_only_once() {
    let (key, clarifications) = (ConversationKey::new("a"), Clarifications::default());
    let (question, mut receiver) = open(&["yes", "no"]);
    let guard = clarifications.begin(&key, question);
    assert!(!clarifications.answer_in_words(&key, &person(8), "1", None));
    assert!(!clarifications.answer_in_words(&ConversationKey::new("b"), &person(7), "1", None));
    assert_eq!(clarifications.press(&person(8), "c:0"), NOT_ASKED);
    assert_eq!(clarifications.press(&person(7), "c:7"), STALE);
    assert_eq!(clarifications.press(&person(7), "c:1"), "Thank you.");
    assert_eq!(receiver.try_recv().unwrap(), "no");
    assert_eq!(clarifications.press(&person(7), "c:0"), STALE);
    assert!(!clarifications.answer_in_words(&key, &person(7), "1", None));
    drop(guard);
}

#[tokio::test]
async fn an_answer_stays_open_until_the_turn_has_written_it_down() {
    let lab = TestLab::new().await;
    let clarifications = Clarifications::default();
    let message = lab.says(7, "1").await;
    let answer = |question: OpenClarification| {
        let turn = question.turn.clone();
        let _open = clarifications.begin(message.conversation(), question);
        let by = person(7);
        let key = message.conversation();
        (
            turn,
            clarifications.answer_in_words(key, &by, "1", Some(&message)),
        )
    };
    let (question, mut receiver) = open(&["yes"]);
    let (turn, answered) = answer(question);
    assert!(answered);
    assert_eq!(receiver.try_recv().unwrap(), "yes");
    let open_rows = || lab.store.inbox();
    let is_open = async || {
        let open = open_rows().open(RowOwner::ThisGateway).await.unwrap();
        open.iter().any(|open| open.row == message.row())
    };
    assert!(is_open().await, "a crash now would lose the answer");
    let clock = SystemClock::shared();
    end_answers(&lab.store.inbox(), &turn, MessageEnd::Answered, &clock).await;
    assert!(!is_open().await);
    // One that nobody waits for is an ordinary message, which no turn ends as an answer.
    let (question, receiver) = open(&["yes"]);
    drop(receiver);
    let (turn, answered) = answer(question);
    assert!(!answered && turn.take_answers().is_empty());
}

#[test]
fn a_question_that_nobody_waits_for_is_gone() {
    let (key, clarifications) = (ConversationKey::new("a"), Clarifications::default());
    let (first, receiver) = open(&[]);
    let first = clarifications.begin(&key, first);
    drop(receiver);
    assert!(
        !clarifications.answer_in_words(&key, &person(7), "late", None),
        "it is a message of its own"
    );
    let (second, _receiver) = open(&[]);
    let _second = clarifications.begin(&key, second);
    drop(first);
    assert!(clarifications.answer_in_words(&key, &person(7), "words", None));
    assert!(clarifications.open().is_empty());
}
