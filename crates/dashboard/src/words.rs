//! Numbers, times and strangers' texts, as people read them.

use std::fmt::Write as _;
use std::time::Duration;

use hermetic_types::Timestamp;

/// The same text with every character made visible that shows something else than what is there: controls,
/// terminal escapes, and marks that turn the direction of writing.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\0'..='\u{1f}' => {
                shown.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => shown.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                let _ = write!(shown, "⟦{:04X}⟧", c as u32);
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// What a tool was called with, as a person reads it: a single text as it is, several with their names.
pub(crate) fn arguments(json: &str) -> String {
    let Ok(fields) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json)
    else {
        return json.to_owned();
    };
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if fields.len() == 1 {
        return fields.values().map(text).collect();
    }
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", text(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, on one line.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// How long ago something was, or how far ahead it lies.
pub(crate) fn ago(now: Timestamp, at: Timestamp) -> String {
    if at > now {
        return format!("in {}", span(at.since(now)));
    }
    let passed = now.since(at);
    match passed.as_secs() {
        0..5 => "now".to_owned(),
        _ => format!("{} ago", span(passed)),
    }
}

/// A length of time by its largest unit.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A moment as a person writes it, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    let text = at.calendar().to_string();
    let day = text.get(..10).unwrap_or_default();
    let time = text.get(11..19).unwrap_or_default();
    format!("{day} {time} UTC")
}

/// The time of day, in UTC.
pub(crate) fn clock_time(at: Timestamp) -> String {
    let text = at.calendar().to_string();
    text.get(11..19).unwrap_or_default().to_owned()
}

/// A number with its thousands apart.
pub(crate) fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    match number < 0 {
        true => format!("−{shown}"),
        false => shown,
    }
}

pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let (mut whole, mut rest) = (number, 0);
    while whole >= 1000 && unit + 1 < UNITS.len() {
        rest = whole % 1000 / 100;
        whole /= 1000;
        unit += 1;
    }
    match (unit, whole) {
        (0, _) => format!("{whole} {}", UNITS[unit]),
        (_, 0..10) => format!("{whole}.{rest} {}", UNITS[unit]),
        _ => format!("{whole} {}", UNITS[unit]),
    }
}

/// An amount of billionths of a dollar.
pub(crate) fn money(nanodollars: i64) -> String {
    let sign = if nanodollars < 0 { "−" } else { "" };
    let all = nanodollars.unsigned_abs();
    let (dollars, rest) = (all / 1_000_000_000, all % 1_000_000_000);
    match dollars {
        0 if all != 0 => format!("{sign}$0.{:04}", rest.div_ceil(100_000).min(9999)),
        _ => format!("{sign}${dollars}.{:02}", rest / 10_000_000),
    }
}

/// A query string, with everything in it escaped.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    serde_urlencoded::to_string(pairs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_made_visible() {
        let text = "a\u{1b}[31mred\u{202e}txt.exe\u{0}\u{7f}\u{9b}b\nnext\u{feff}";
        assert_eq!(visible(text), "a␛[31mred⟦202E⟧txt.exe␀␡⟦009B⟧b\nnext⟦FEFF⟧");
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(-12), "−12");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1500), "1.5 kB");
        assert_eq!(bytes(25_000_000), "25 MB");
        assert_eq!(money(0), "$0.00");
        assert_eq!(money(1), "$0.0001");
        assert_eq!(money(12_340_000_000), "$12.34");
        let now = Timestamp::from_seconds(100_000);
        assert_eq!(ago(now, Timestamp::from_seconds(100_000)), "now");
        assert_eq!(ago(now, Timestamp::from_seconds(99_000)), "16 min ago");
        assert_eq!(ago(now, Timestamp::from_seconds(100_060)), "in 60 s");
        assert_eq!(query(&[("key", "a&b=c <")]), "key=a%26b%3Dc+%3C");
        assert_eq!(arguments(r#"{"command":"ls"}"#), "ls");
        assert_eq!(arguments(r#"{"a":"x","b":2}"#), "a: x\nb: 2");
        assert_eq!(arguments("{"), "{");
        assert_eq!(beginning("a\n b  c d", 5), "a b c…");
        assert_eq!(
            moment(Timestamp::from_seconds(0)),
            "1970-01-01 00:00:00 UTC"
        );
    }
}
