use super::*;
use crate::test_databases::TestDatabase;

#[tokio::test]
async fn a_conversation_comes_back_in_order_and_alone() {
    for database in TestDatabase::each().await {
        let history = database.open().await.unwrap().history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let now = Timestamp::from_millis(1);
        for (key, message) in [(&a, "1"), (&a, "2"), (&b, "other"), (&a, "3")] {
            history.append(key, message, now).await.unwrap();
        }
        assert!(history.append(&a, "4\n5", now).await.is_err());
        assert_eq!(history.recent(&a, 2).await.unwrap(), ["2", "3"]);
        history.clear(&a).await.unwrap();
        assert_eq!(history.recent(&a, 9).await.unwrap(), [""; 0]);
        assert_eq!(history.recent(&b, 9).await.unwrap(), ["other"]);
    }
}

#[tokio::test]
async fn a_silent_conversation_is_forgotten_and_a_living_one_is_whole() {
    for database in TestDatabase::each().await {
        let history = database.open().await.unwrap().history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        for (key, at) in [(&a, 1), (&b, 1), (&b, 9)] {
            let at = Timestamp::from_millis(at);
            history.append(key, "x", at).await.unwrap();
        }
        assert_eq!(
            history.last_at(&b).await.unwrap(),
            Some(Timestamp::from_millis(9))
        );
        let forgotten = history
            .forget_silent(Timestamp::from_millis(5))
            .await
            .unwrap();
        assert_eq!(forgotten, 1);
        assert_eq!(history.last_at(&a).await.unwrap(), None);
        assert_eq!(history.recent(&b, 9).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_conversation_that_goes_on_for_ever_loses_what_an_old_summary_stands_for() {
    for database in TestDatabase::each().await {
        let history = history(&database).await;
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let at = Timestamp::from_millis;
        let mut numbers = Vec::new();
        for time in 1..=6 {
            numbers.push(
                history
                    .append(&a, &time.to_string(), at(time))
                    .await
                    .unwrap(),
            );
            history.append(&b, "other", at(time)).await.unwrap();
        }
        history
            .compact(&a, numbers[0], "first", at(2))
            .await
            .unwrap();
        history.compact(&a, numbers[2], "old", at(4)).await.unwrap();
        history.compact(&a, numbers[4], "new", at(6)).await.unwrap();
        // Lines 1 to 3 are old, and so is the summary that stands for them; 4 and 5 wait for theirs.
        assert_eq!(history.forget_silent(at(5)).await.unwrap(), 3);
        let kept = history.lines(&a, ViewBounds::default()).await.unwrap();
        let kept: Vec<_> = kept.iter().map(|line| line.number).collect();
        assert_eq!(kept, numbers[3..]);
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(
            (view.summary.as_deref(), texts(&view)),
            (Some("new"), vec!["6"])
        );
        assert_eq!(history.recent(&b, 9).await.unwrap().len(), 6);
        // What is taken back leads to the old summary, and to nothing that is missing.
        history
            .take_back(&a, numbers[4], None, at(7))
            .await
            .unwrap();
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(
            (view.summary.as_deref(), texts(&view)),
            (Some("old"), vec!["4"])
        );
    }
}

async fn history(database: &TestDatabase) -> HistoryRows {
    let opened = database.open().await;
    opened.unwrap().history()
}

fn texts(view: &HistoryView) -> Vec<&str> {
    view.lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn a_summary_stands_for_lines_that_stay_and_come_back_with_what_is_taken_back() {
    for database in TestDatabase::each().await {
        let history = history(&database).await;
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let now = Timestamp::from_millis(1);
        let mut numbers = Vec::new();
        for text in ["1", "2 and more", "3", "4"] {
            numbers.push(history.append(&a, text, now).await.unwrap());
            history.append(&b, "other", now).await.unwrap();
        }
        history.compact(&a, numbers[1], "S", now).await.unwrap();
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(view.summary.as_deref(), Some("S"));
        assert_eq!(texts(&view), ["3", "4"]);
        assert_eq!(view.lines[0].number, numbers[2]);
        let lines = history.lines(&a, ViewBounds::default()).await.unwrap();
        let kept: Vec<_> = lines.iter().map(|line| line.number).collect();
        assert_eq!(kept, numbers, "all are kept");
        history.compact(&a, numbers[2], "T", now).await.unwrap();
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(
            (view.summary.as_deref(), texts(&view)),
            (Some("T"), vec!["4"])
        );
        // The third line is under the second summary only.
        let taken = history.take_back(&a, numbers[2], Some("new"), now).await;
        taken.unwrap();
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(
            (view.summary.as_deref(), texts(&view)),
            (Some("S"), vec!["new"])
        );
        history.take_back(&a, numbers[0], None, now).await.unwrap();
        let view = history.view(&a, ViewBounds::default()).await.unwrap();
        assert_eq!(view, HistoryView::default());
        let other = history.view(&b, ViewBounds::default()).await.unwrap();
        assert_eq!((other.summary, other.lines.len()), (None, 4));
    }
}

#[tokio::test]
async fn a_view_is_bounded_and_says_how_much_it_leaves_out() {
    for database in TestDatabase::each().await {
        let history = history(&database).await;
        let key = ConversationKey::new("k");
        for text in ["aaaa", "bbbb", "cccc"] {
            let now = Timestamp::from_millis(1);
            history.append(&key, text, now).await.unwrap();
        }
        let bounds = |lines, characters| ViewBounds { lines, characters };
        for (bounds, shown) in [
            (bounds(2, 99), vec!["bbbb", "cccc"]),
            (bounds(9, 8), vec!["bbbb", "cccc"]),
            (bounds(9, 7), vec!["cccc"]),
            (bounds(9, 12), vec!["aaaa", "bbbb", "cccc"]),
        ] {
            let view = history.view(&key, bounds).await.unwrap();
            assert_eq!(texts(&view), shown, "{bounds:?}");
            assert_eq!(view.left_out, 3 - shown.len());
        }
    }
}
