use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Central Europe: forward on the last Sunday of March at 2, back on that of October at 3. Spelt out, so that
/// a machine without a database of zones can test it.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn moment(local: &str, zone: &TimeZone) -> Timestamp {
    let time: jiff::civil::DateTime = local.parse().unwrap();
    time.to_zoned(zone.clone()).unwrap().timestamp().into()
}

/// The next moments after a time of that zone, as its clock shows them.
fn next(expression: &str, after: &str, count: usize) -> Vec<String> {
    let (zone, expression) = (berlin(), CronExpression::parse(expression).unwrap());
    let mut at = moment(after, &zone);
    let mut shown = Vec::new();
    for _ in 0..count {
        at = expression.next_after(at, &zone).unwrap();
        let here = at.calendar().to_zoned(zone.clone());
        shown.push(here.strftime("%m-%d %H:%M%:z").to_string());
    }
    shown
}

#[test]
fn plain_expressions_mean_what_cron_means() {
    for (expression, after, expected) in [
        ("0 9 * * 1-5", "2026-11-20T09:00", "11-23 09:00+01:00"),
        ("*/15 * * * *", "2026-11-18T10:14:59", "11-18 10:15+01:00"),
        ("30 4 1,15 * 5", "2026-11-18T00:00", "11-20 04:30+01:00"),
        ("0 0 29 2 *", "2026-11-18T00:00", "02-29 00:00+01:00"),
        ("5 4 * * SUN", "2026-11-18T00:00", "11-22 04:05+01:00"),
        (
            "0 12 * JAN-mar fri-sun",
            "2026-11-18T00:00",
            "01-01 12:00+01:00",
        ),
        ("10/20 8 * * 7", "2026-11-18T00:00", "11-22 08:10+01:00"),
        ("@monthly", "2026-11-18T00:00", "12-01 00:00+01:00"),
    ] {
        assert_eq!(next(expression, after, 1), [expected], "{expression}");
    }
}

#[test]
fn a_time_that_is_skipped_is_due_when_the_clock_has_jumped() {
    assert_eq!(
        next("30 2 * * *", "2026-03-28T12:00", 2),
        ["03-29 03:00+02:00", "03-30 02:30+02:00"]
    );
    // Both fall on the same moment, which is one.
    assert_eq!(
        next("0,30 2,3 * * *", "2026-03-29T00:00", 3),
        [
            "03-29 03:00+02:00",
            "03-29 03:30+02:00",
            "03-30 02:00+02:00"
        ]
    );
}

#[test]
fn a_time_that_comes_twice_is_due_once() {
    assert_eq!(
        next("30 2 * * *", "2026-10-24T12:00", 2),
        ["10-25 02:30+02:00", "10-26 02:30+01:00"]
    );
}

#[test]
fn every_hour_goes_by_the_hours_that_pass() {
    assert_eq!(
        next("30 * * * *", "2026-10-25T01:45", 3),
        [
            "10-25 02:30+02:00",
            "10-25 02:30+01:00",
            "10-25 03:30+01:00"
        ]
    );
    assert_eq!(
        next("30 * * * *", "2026-03-29T01:00", 2),
        ["03-29 01:30+01:00", "03-29 03:30+02:00"]
    );
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "+5 * * * *",
        "a * * * *",
        "* * L * *",
        "* * * * 1#2",
        "1- * * * *",
        ", * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "@reboot",
        "*/256 * * * *",
    ] {
        assert!(CronExpression::parse(text).is_err(), "{text:?}");
    }
    let long = format!("{} * * * *", "1,".repeat(200));
    assert_eq!(
        CronExpression::parse(&long),
        Err(InvalidCronExpression::TooLong)
    );
}

fn field(least: u8, most: u8) -> impl Strategy<Value = String> {
    let number = least..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => number.clone().prop_map(|number| number.to_string()),
        1 => (1_u8..30).prop_map(|step| format!("*/{step}")),
        1 => (number.clone(), number).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
    ]
}

fn expression() -> impl Strategy<Value = CronExpression> {
    let fields = (
        field(0, 59),
        field(0, 23),
        field(1, 28),
        field(1, 12),
        field(0, 6),
    );
    fields.prop_map(|(minute, hour, day, month, weekday)| {
        CronExpression::parse(&format!("{minute} {hour} {day} {month} {weekday}")).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every next moment lies ahead, is one that is meant, and none between was left out.
    #[test]
    fn moments_go_forward_and_none_is_left_out(
        expression in expression(), start in 1_700_000_000_i64..1_900_000_000, steps in 1_usize..8,
    ) {
        let zone = berlin();
        let mut at = Timestamp::from_seconds(start);
        for _ in 0..steps {
            let next = expression.next_after(at, &zone).unwrap();
            prop_assert!(next > at);
            // Whatever moment one asks from on the way, the answer is the same.
            let halfway = Timestamp::from_millis(i64::midpoint(at.millis(), next.millis()));
            if halfway < next {
                prop_assert_eq!(expression.next_after(halfway, &zone), Some(next));
            }
            let just_before = next.minus(Duration::from_millis(1));
            prop_assert_eq!(expression.next_after(just_before, &zone), Some(next));
            at = next;
        }
    }

    #[test]
    fn whatever_is_written_nothing_panics_and_what_is_read_is_read_again(text in "[-*/,0-9a-z@# ]{0,30}") {
        if let Ok(read) = CronExpression::parse(&text) {
            prop_assert_eq!(CronExpression::parse(&read.to_string()), Ok(read));
        }
    }
}
