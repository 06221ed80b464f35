//! The words people use for times: `2h`, `weekdays at 9am`.

use std::time::Duration;

/// `30m`, `2h`, `1d`, `hour`: as long as that; nothing for anything else.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let seconds: u64 = match unit.trim_start() {
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    // `every hour` has no number, and means one.
    let number: u64 = match number {
        "" => 1,
        number => number.parse().ok()?,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// `monday 9am`, `weekdays at 9:30`, `mon and wed 14:00` as a cron expression.
pub(crate) fn weekly(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase().replace(',', " ");
    let words: Vec<_> = text.split_whitespace().collect();
    let (days, rest) = match words.first().and_then(|word| days_of(word)) {
        Some(days) => (days.to_owned(), &words[1..]),
        None => weekdays(&words)?,
    };
    let rest = match rest {
        ["at", rest @ ..] => rest,
        rest => rest,
    };
    let (hour, minute) = time_of_day(&rest.concat())?;
    Some(format!("{minute} {hour} * * {days}"))
}

/// A word that stands for several days.
fn days_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "day" | "daily" | "everyday" => "*",
        "weekday" | "weekdays" => "1-5",
        "weekend" | "weekends" => "0,6",
        _ => return None,
    })
}

/// The weekdays at the beginning, and what stands behind them.
fn weekdays<'a>(words: &'a [&'a str]) -> Option<(String, &'a [&'a str])> {
    let mut days: Vec<String> = Vec::new();
    let mut taken = 0;
    for word in words {
        if *word != "and" {
            let Some(day) = weekday(word) else { break };
            days.push(day.to_string());
        }
        taken += 1;
    }
    (!days.is_empty()).then(|| (days.join(","), &words[taken..]))
}

fn weekday(word: &str) -> Option<u8> {
    Some(match word {
        "sunday" | "sun" => 0,
        "monday" | "mon" => 1,
        "tuesday" | "tue" | "tues" => 2,
        "wednesday" | "wed" | "weds" => 3,
        "thursday" | "thu" | "thur" | "thurs" => 4,
        "friday" | "fri" => 5,
        "saturday" | "sat" => 6,
        _ => return None,
    })
}

/// `9am`, `9:30pm`, `14:00`, `7`, `noon`, `midnight`.
fn time_of_day(text: &str) -> Option<(u8, u8)> {
    match text {
        "noon" | "midday" => return Some((12, 0)),
        "midnight" => return Some((0, 0)),
        _ => {}
    }
    let (text, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(text), _) => (text, Some(0)),
        (_, Some(text)) => (text, Some(12)),
        _ => (text, None),
    };
    let (hour, minute) = text.split_once(':').unwrap_or((text, "00"));
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        // Minutes have two digits: `9:5` may be meant as five past or as ten to ten, so it is not
        // guessed.
        let fits = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u8>().ok().filter(|_| fits)
    };
    let (hour, minute) = (number(hour, 1..=2)?, number(minute, 2..=2)?);
    // Twelve comes first in both halves: 12am is midnight and 12pm noon.
    let hour = match half {
        Some(half) => (1..=12).contains(&hour).then(|| hour % 12 + half)?,
        None => hour,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekly_phrases_become_expressions() {
        for (phrase, expected) in [
            ("monday 9am", "0 9 * * 1"),
            ("weekdays at 9:30", "30 9 * * 1-5"),
            ("Mon, Wed and fri at 2:05pm", "5 14 * * 1,3,5"),
            ("day at noon", "0 12 * * *"),
            ("weekends 12am", "0 0 * * 0,6"),
            ("day 7", "0 7 * * *"),
        ] {
            assert_eq!(weekly(phrase).as_deref(), Some(expected), "{phrase}");
        }
        for phrase in [
            "",
            "day",
            "monday",
            "monday 25:00",
            "monday 13pm",
            "2h",
            "day at 9:5",
            "mon 9am now",
        ] {
            assert_eq!(weekly(phrase), None, "{phrase}");
        }
    }

    #[test]
    fn durations_are_read_and_nothing_overflows() {
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        assert_eq!(duration("30m"), minutes(30));
        assert_eq!(duration(" 2 hours"), minutes(120));
        assert_eq!(duration("Day"), minutes(1440));
        assert_eq!(duration("1w"), minutes(7 * 1440));
        for text in [
            "",
            "30",
            "m30",
            "-5m",
            "1.5h",
            "99999999999999999999m",
            "18446744073709551615d",
            "5s",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
