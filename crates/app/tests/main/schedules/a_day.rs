//! A day on which clocks change, with restarts in between; in its long form hundreds of moments.

use std::time::Duration;

use hermetic_store::{RunEnd, ScheduledJobs};
use hermetic_types::Timestamp;

use super::{ALICE, BOB, HOUR, Lab, Line, jobs, until_quiet};

/// Central Europe without a database of zones: on 28 March 2027 the clock goes from 2 to 3.
const ZONE: &str = "timezone: 'CET-1CEST,M3.5.0,M10.5.0/3'\nstreaming: false\n";
const MIDNIGHT: i64 = 1_806_188_400_000;

#[tokio::test]
async fn on_a_day_on_which_clocks_change_each_moment_is_run_once() {
    let lines = std::iter::repeat_n(Line::says("tick"), 2000);
    let model = std::sync::Arc::new(super::ScriptedModel::new(lines));
    let mut lab = Lab::builder().config(ZONE).model(model).start().await;
    let midnight = Timestamp::from_millis(MIDNIGHT);
    lab.clock().set(midnight);
    let mut expected = vec![
        (ALICE, "0 * * * *", "a1", 23),
        (ALICE, "every 90m", "a2", 15),
        (ALICE, "30 2 * * *", "a3", 1),
        (BOB, "in 3h", "b1", 1),
        // 1:15, 1:45, the two that are skipped at once at 3, 3:15, 3:45.
        (BOB, "15,45 1-3 * * *", "b2", 5),
    ];
    if hermetic_testkit::long() {
        let more = [
            (ALICE, "a4"),
            (ALICE, "a5"),
            (BOB, "b3"),
            (BOB, "b4"),
            (BOB, "b5"),
        ];
        expected.extend(more.map(|(user, name)| (user, "*/30 * * * *", name, 46)));
    }
    for (user, schedule, name, _) in &expected {
        let add = format!("/cron add \"{schedule}\" \"look\" --name {name}");
        let made = lab.ask(*user, &add).await;
        assert!(made.starts_with("Made"), "{made}");
    }
    // The day has 23 hours.
    let end = midnight.plus(23 * HOUR);
    let rows = lab.store().await.scheduled_jobs();
    let mut moments = 0;
    while let Some(next) = rows
        .next_moment()
        .await
        .unwrap()
        .filter(|next| *next <= end)
    {
        lab.clock().set(next);
        moments += 1;
        match moments % 13 {
            // In the middle of whatever it does.
            4 => {
                lab.nudge().await;
                lab.crash_and_start().await;
            }
            8 => lab.restart().await,
            // Nobody is there at the time, and a little later somebody is.
            11 => {
                lab.stop().await;
                lab.clock().advance(Duration::from_secs(90));
                lab.start().await;
            }
            _ => lab.nudge().await,
        }
        until_quiet(&lab).await;
    }
    is_as_expected(&lab, &rows, &expected).await;

    // A clock that is set back fires nothing again.
    lab.clock().set(end.minus(3 * HOUR));
    lab.nudge().await;
    // Two answers later it has looked.
    lab.ask(ALICE, "/cron").await;
    lab.ask(BOB, "/cron").await;
    until_quiet(&lab).await;
    is_as_expected(&lab, &rows, &expected).await;
    let next = rows.next_moment().await.unwrap().unwrap();
    assert!(next > end, "{next}");

    // A month ahead, nothing floods: each job is run once at most, and who missed is told once.
    let before = (lab.sent_to(ALICE), lab.sent_to(BOB));
    lab.clock()
        .set(end.plus(30 * 24 * HOUR + Duration::from_secs(600)));
    lab.nudge().await;
    until_quiet(&lab).await;
    let more = lab.sent_to(ALICE) - before.0 + lab.sent_to(BOB) - before.1;
    assert!(more <= 8, "{more} messages");
    lab.stop().await;
}

/// Whose job it is, when it is due, its name, and how often it is due on that day.
type ExpectedRuns = (i64, &'static str, &'static str, usize);

async fn is_as_expected(lab: &Lab, rows: &ScheduledJobs, expected: &[ExpectedRuns]) {
    for (user, _, name, count) in expected {
        let own = jobs(lab, *user).await;
        let job = own.iter().find(|job| job.name == *name).unwrap();
        let runs = rows.runs(&job.id, 400).await.unwrap();
        let answered = runs.iter().filter(|run| run.end == Some(RunEnd::Answered));
        assert_eq!(answered.count(), *count, "{name}: {runs:?}");
        assert_eq!(runs.len(), *count, "{name}: {runs:?}");
        let sent = lab.chat().record().messages_in(&(*user).into());
        let head = format!("⏰ {name}");
        let texts = sent.iter().map(|message| message.text());
        // What a crash may have sent before says that it is a possible duplicate.
        let unmarked = texts.filter(|text| text.starts_with(&head)).count();
        assert!(unmarked <= *count, "{name}: {unmarked} of {count}");
    }
}
