use super::*;
use crate::test_lab::TestLab;

fn started(enqueued: Enqueued) -> TurnControl {
    match enqueued {
        Enqueued::Starts(_, control) => control,
        other => panic!("{other:?}"),
    }
}

async fn lab() -> (TestLab, ConversationQueues) {
    let queues = ConversationQueues::new(CancellationToken::new());
    (TestLab::new().await, queues)
}

#[tokio::test]
async fn commands_of_one_conversation_run_one_after_the_other_in_order() {
    let (lab, mut queues) = lab().await;
    started(queues.enqueue_command(lab.says(7, "/sh 0").await));
    for number in 1..=3 {
        let message = lab.says(7, &format!("/sh {number}")).await;
        assert!(matches!(queues.enqueue_command(message), Enqueued::Waits));
    }
    // The turn does not wait for them.
    started(queues.enqueue_turn(lab.says(7, "hello").await, BusyMode::Queue));
    assert_eq!((queues.is_at_work(), queues.waiting()), (true, 3));
    for number in 1..=3 {
        let (next, _) = queues.next(QueueKind::Commands).unwrap();
        assert_eq!(next.said().text, format!("/sh {number}"));
    }
    assert!(queues.next(QueueKind::Commands).is_none());
    assert!(queues.is_at_work(), "the turn goes on");
    assert!(queues.next(QueueKind::Turns).is_none());
    assert!(queues.is_idle());
}

#[tokio::test]
async fn a_stop_ends_the_one_that_runs_and_hands_back_those_that_wait() {
    let (lab, mut queues) = lab().await;
    let control = started(queues.enqueue_command(lab.says(7, "/sh 0").await));
    for number in 1..=2 {
        let message = lab.says(7, &format!("/sh {number}")).await;
        assert!(matches!(queues.enqueue_command(message), Enqueued::Waits));
    }
    let stopped = queues.stop();
    assert!(stopped.anything && control.stop.is_cancelled());
    let texts: Vec<_> = stopped.dropped.iter().map(|one| &one.said().text).collect();
    assert_eq!(texts, ["/sh 1", "/sh 2"]);
    assert!(queues.next(QueueKind::Commands).is_none());
    let nothing = queues.stop();
    assert!(!nothing.anything && nothing.dropped.is_empty());
}

#[tokio::test]
async fn a_full_queue_of_commands_says_so_once() {
    let (lab, mut queues) = lab().await;
    started(queues.enqueue_command(lab.says(7, "/sh 0").await));
    for _ in 0..MOST_WAITING_MESSAGES {
        let enqueued = queues.enqueue_command(lab.says(7, "/sh more").await);
        assert!(matches!(enqueued, Enqueued::Waits));
    }
    let full = queues.enqueue_command(lab.says(7, "/sh one too many").await);
    assert!(matches!(full, Enqueued::Full(_, Notified::Now)), "{full:?}");
    let again = queues.enqueue_command(lab.says(7, "/sh and another").await);
    assert!(
        matches!(again, Enqueued::Full(_, Notified::Already)),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_new_conversation_drops_what_waits_in_both_queues() {
    let (lab, mut queues) = lab().await;
    let turn = started(queues.enqueue_turn(lab.says(7, "a").await, BusyMode::Queue));
    let command = started(queues.enqueue_command(lab.says(7, "/sh b").await));
    let waits = queues.enqueue_turn(lab.says(7, "c").await, BusyMode::Queue);
    assert!(matches!(waits, Enqueued::Waits));
    let waits = queues.enqueue_command(lab.says(7, "/sh d").await);
    assert!(matches!(waits, Enqueued::Waits));
    let (enqueued, dropped) = queues.cut_in(lab.says(7, "/new").await);
    assert!(matches!(enqueued, Enqueued::Waits));
    assert_eq!(dropped.len(), 2);
    assert!(turn.stop.is_cancelled() && command.stop.is_cancelled());
}

#[tokio::test]
async fn a_deleted_message_is_interrupted_at_work_and_taken_out_where_it_waits() {
    let (lab, mut queues) = lab().await;
    let first = lab.says(7, "a").await;
    let (second, third) = (lab.says(7, "b").await, lab.says(7, "/sh c").await);
    let ids = [&first, &second, &third].map(|message| message.said().message.clone());
    let turn = started(queues.enqueue_turn(first, BusyMode::Queue));
    let command = started(queues.enqueue_command(lab.says(7, "/sh 0").await));
    assert!(matches!(
        queues.enqueue_turn(second, BusyMode::Queue),
        Enqueued::Waits
    ));
    assert!(matches!(queues.enqueue_command(third), Enqueued::Waits));
    for (id, text) in [(&ids[1], "b"), (&ids[2], "/sh c")] {
        let dropped = queues.withdraw(id).unwrap();
        assert_eq!(dropped.said().text, text);
        assert!(queues.withdraw(id).is_none());
    }
    assert!(!turn.stop.is_cancelled());
    assert!(queues.withdraw(&ids[0]).is_none());
    assert!(turn.stop.is_cancelled() && !command.stop.is_cancelled());
}

#[tokio::test]
async fn what_was_said_into_a_turn_is_taken_back_until_the_turn_has_heard_it() {
    let (lab, mut queues) = lab().await;
    let turn = started(queues.enqueue_turn(lab.says(7, "a").await, BusyMode::Queue));
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        let message = lab.says(7, text).await;
        ids.push(message.said().message.clone());
        let enqueued = queues.enqueue_turn(message, BusyMode::Steer);
        assert!(matches!(enqueued, Enqueued::Steers));
    }
    let dropped = queues.withdraw(&ids[1]).unwrap();
    assert_eq!(dropped.said().text, "two");
    // The turn takes the words of the first, as it does before it asks the model again.
    assert_eq!(turn.steer.take_back(1).as_deref(), Some("one"));
    assert!(queues.withdraw(&ids[0]).is_none(), "it was heard");
    assert_eq!(queues.withdraw(&ids[2]).unwrap().said().text, "three");
}

#[tokio::test]
async fn when_everything_ends_nothing_that_waits_is_started() {
    let lab = TestLab::new().await;
    let cut = CancellationToken::new();
    let mut queues = ConversationQueues::new(cut.clone());
    started(queues.enqueue_turn(lab.says(7, "a").await, BusyMode::Queue));
    let waits = queues.enqueue_turn(lab.says(7, "b").await, BusyMode::Queue);
    assert!(matches!(waits, Enqueued::Waits));
    cut.cancel();
    assert!(queues.next(QueueKind::Turns).is_none());
    assert!(queues.is_idle() && queues.waiting() == 0);
}

#[tokio::test]
async fn where_each_person_has_a_budget_nobody_rides_on_the_turn_of_another() {
    let (lab, queues) = lab().await;
    let mut queues = queues.steered_by_sender_only(true);
    started(queues.enqueue_turn(lab.says(7, "a").await, BusyMode::Queue));
    let own = queues.enqueue_turn(lab.says(7, "and").await, BusyMode::Steer);
    assert!(matches!(own, Enqueued::Steers), "{own:?}");
    let other = queues.enqueue_turn(lab.says(8, "me too").await, BusyMode::Steer);
    assert!(matches!(other, Enqueued::Waits), "{other:?}");
}

#[tokio::test]
async fn a_change_of_a_message_leaves_the_notice_of_its_process_alone() {
    let (lab, mut queues) = lab().await;
    let first = lab.says(7, "build it").await;
    let id = first.said().message.clone();
    let notice = lab.notice(&first, 7).await;
    let turn = started(queues.enqueue_turn(lab.says(7, "something else").await, BusyMode::Queue));
    let waits = queues.enqueue_turn(notice.clone(), BusyMode::Queue);
    assert!(matches!(waits, Enqueued::Waits));
    // Waiting, and then at work.
    for _ in 0..2 {
        assert!(!queues.knows(&id, &first.said().sender.id));
        let edited = queues.edit(first.admitted().clone(), |_| false);
        assert!(matches!(edited, Edited::TooLate), "{edited:?}");
        assert!(queues.withdraw(&id).is_none());
        if let Some((next, control)) = queues.next(QueueKind::Turns) {
            assert_eq!(next.said().text, "has ended");
            assert!(!control.stop.is_cancelled());
        }
    }
    assert!(!turn.stop.is_cancelled());
}

#[tokio::test]
async fn a_change_that_is_told_twice_is_written_down_twice_while_it_waits() {
    let (lab, mut queues) = lab().await;
    started(queues.enqueue_turn(lab.says(7, "a").await, BusyMode::Queue));
    let second = lab.says(7, "b").await;
    let waits = queues.enqueue_turn(second.clone(), BusyMode::Queue);
    assert!(matches!(waits, Enqueued::Waits));
    // The words are the same: of the first time nobody knows whether they reached the disk.
    let again = queues.edit(second.admitted().clone(), |_| false);
    assert!(matches!(again, Edited::InPlace(_)), "{again:?}");
    let (next, _) = queues.next(QueueKind::Turns).unwrap();
    assert_eq!(next.said().text, "b");
    let at_work = queues.edit(second.admitted().clone(), |_| false);
    assert!(matches!(at_work, Edited::TooLate), "{at_work:?}");
}
