use super::*;
use crate::test_lab::TestLab;

fn started(joined: Joined) -> Control {
    match joined {
        Joined::Starts(_, control) => control,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn commands_of_one_conversation_run_one_after_the_other_in_order() {
    let (lab, lanes) = (TestLab::new().await, Lanes::new(CancellationToken::new()));
    let first = lab.says(7, "/sh 0").await;
    let alice = first.conversation().clone();
    started(lanes.join_commands(first));
    for number in 1..=3 {
        let message = lab.says(7, &format!("/sh {number}")).await;
        assert!(matches!(lanes.join_commands(message), Joined::Waits));
    }
    // Neither another conversation nor the turn of this one waits for them.
    started(lanes.join_commands(lab.says(8, "/sh bob").await));
    started(lanes.join(lab.says(7, "hello").await, Busy::Queue));
    assert_eq!(lanes.state(&alice), (true, 3));
    for number in 1..=3 {
        let (next, _) = lanes.next(&alice, Line::Commands).unwrap();
        assert_eq!(next.said().text, format!("/sh {number}"));
    }
    assert!(lanes.next(&alice, Line::Commands).is_none());
    assert_eq!(lanes.state(&alice), (true, 0), "the turn goes on");
    assert!(lanes.next(&alice, Line::Turns).is_none());
    assert_eq!(lanes.active(), 1, "Bob's is left");
}

#[tokio::test]
async fn a_stop_ends_the_one_that_runs_and_hands_back_those_that_wait() {
    let (lab, lanes) = (TestLab::new().await, Lanes::new(CancellationToken::new()));
    let first = lab.says(7, "/sh 0").await;
    let alice = first.conversation().clone();
    let control = started(lanes.join_commands(first));
    for number in 1..=2 {
        let message = lab.says(7, &format!("/sh {number}")).await;
        assert!(matches!(lanes.join_commands(message), Joined::Waits));
    }
    let stopped = lanes.stop(&alice);
    assert!(stopped.anything && control.stop.is_cancelled());
    let texts: Vec<_> = stopped.dropped.iter().map(|one| &one.said().text).collect();
    assert_eq!(texts, ["/sh 1", "/sh 2"]);
    assert!(lanes.next(&alice, Line::Commands).is_none());
    let nothing = lanes.stop(&alice);
    assert!(!nothing.anything && nothing.dropped.is_empty());
}

#[tokio::test]
async fn a_full_line_of_commands_says_so_once() {
    let (lab, lanes) = (TestLab::new().await, Lanes::new(CancellationToken::new()));
    started(lanes.join_commands(lab.says(7, "/sh 0").await));
    for _ in 0..MOST_WAITING {
        let joined = lanes.join_commands(lab.says(7, "/sh more").await);
        assert!(matches!(joined, Joined::Waits));
    }
    let full = lanes.join_commands(lab.says(7, "/sh one too many").await);
    assert!(matches!(full, Joined::Full(_, Told::Now)), "{full:?}");
    let again = lanes.join_commands(lab.says(7, "/sh and another").await);
    assert!(matches!(again, Joined::Full(_, Told::Before)), "{again:?}");
}

#[tokio::test]
async fn a_new_conversation_drops_what_waits_in_both_lines() {
    let (lab, lanes) = (TestLab::new().await, Lanes::new(CancellationToken::new()));
    let turn = started(lanes.join(lab.says(7, "a").await, Busy::Queue));
    let command = started(lanes.join_commands(lab.says(7, "/sh b").await));
    assert!(matches!(
        lanes.join(lab.says(7, "c").await, Busy::Queue),
        Joined::Waits
    ));
    assert!(matches!(
        lanes.join_commands(lab.says(7, "/sh d").await),
        Joined::Waits
    ));
    let (joined, dropped) = lanes.cut_in(lab.says(7, "/new").await);
    assert!(matches!(joined, Joined::Waits));
    assert_eq!(dropped.len(), 2);
    assert!(turn.stop.is_cancelled() && command.stop.is_cancelled());
}
