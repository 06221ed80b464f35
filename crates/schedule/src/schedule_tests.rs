use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_seconds(1_790_000_000);

fn parse(text: &str) -> Result<Schedule, InvalidSchedule> {
    Schedule::parse(text, NOW, &TimeZone::UTC)
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

#[test]
fn schedules_are_read_as_hermes_users_write_them() {
    assert_eq!(parse("30m"), Ok(Schedule::Once(NOW.plus(minutes(30)))));
    assert_eq!(parse(" in 2h "), Ok(Schedule::Once(NOW.plus(minutes(120)))));
    assert_eq!(parse("every 2h"), Ok(Schedule::Every(minutes(120))));
    assert_eq!(parse("Every hour"), Ok(Schedule::Every(minutes(60))));
    assert_eq!(parse("every day at 9am").unwrap().to_string(), "0 9 * * *");
    assert_eq!(parse("weekdays at 9am").unwrap().to_string(), "0 9 * * 1-5");
    assert_eq!(parse("0 9 * * MON").unwrap().to_string(), "0 9 * * mon");
    assert_eq!(parse("@daily").unwrap().to_string(), "0 0 * * *");
    let at = Timestamp::from_seconds(1_893_456_000);
    assert_eq!(parse("2030-01-01"), Ok(Schedule::Once(at)));
    assert_eq!(parse("2030-01-01T01:00:00+01:00"), Ok(Schedule::Once(at)));
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    assert_eq!(
        Schedule::parse("2030-01-01T01:00", NOW, &zone),
        Ok(Schedule::Once(at))
    );
}

#[test]
fn what_is_no_schedule_is_answered_with_what_is() {
    for text in [
        "",
        "soon",
        "every",
        "every 0m",
        "every 400d",
        "in 400d",
        "0m",
        "* * * *",
        "every blue moon",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("'every 30m'"), "{text:?}: {error}");
    }
    assert!(matches!(
        parse("61 * * * *"),
        Err(InvalidSchedule::Cron { .. })
    ));
    assert!(matches!(
        parse("2020-01-01T00:00Z"),
        Err(InvalidSchedule::Over { .. })
    ));
    assert!(matches!(
        parse("2030-13-01T00:00"),
        Err(InvalidSchedule::Time { .. })
    ));
    assert!(parse("äääääääääääää").is_err());
}

#[test]
fn a_period_is_counted_from_its_beginning() {
    let every = Schedule::Every(minutes(60));
    let next = |after: u64| every.next_after(NOW.plus(minutes(after)), NOW, &TimeZone::UTC);
    assert_eq!(next(0), Some(NOW.plus(minutes(60))));
    assert_eq!(next(59), Some(NOW.plus(minutes(60))));
    assert_eq!(next(60), Some(NOW.plus(minutes(120))));
    // A clock that was set back before the beginning.
    let before = NOW.minus(minutes(600));
    assert_eq!(
        every.next_after(before, NOW, &TimeZone::UTC),
        Some(NOW.plus(minutes(60)))
    );
    let end = Timestamp::from_millis(i64::MAX);
    assert_eq!(every.next_after(end, NOW, &TimeZone::UTC), None);
}

#[test]
fn the_shortest_gap_is_found_in_an_irregular_expression() {
    let gap = |text: &str| parse(text).unwrap().shortest_gap(NOW, &TimeZone::UTC);
    assert_eq!(gap("30m"), None);
    assert_eq!(gap("every 90m"), Some(minutes(90)));
    assert_eq!(gap("0,5 9 * * *"), Some(minutes(5)));
    assert_eq!(gap("* * * * *"), Some(minutes(1)));
}

proptest! {
    #[test]
    fn whatever_is_written_nothing_panics_and_a_row_is_read_again(text in ".{0,40}") {
        if let Ok(read) = parse(&text) {
            prop_assert_eq!(Schedule::of_row(&read.to_row()), Some(read));
        }
        let _ = Schedule::of_row(&text);
    }
}
