//! Small charts, drawn here.

use std::time::Duration;

use hermetic_types::Timestamp;
use maud::{Markup, html};

/// Bars beside each other, the latest last. `told` says in words what they show.
pub(crate) fn bars(values: &[i64], kind: &str, told: &str) -> Markup {
    const HEIGHT: i64 = 40;
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let width = values.len() * 10;
    html! {
        svg class={ "chart " (kind) } viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none"
            role="img" aria-label=(told) {
            @for (place, value) in values.iter().enumerate() {
                // What is there at all is seen.
                @let tall = if *value > 0 { (value * HEIGHT / most).max(2) } else { 0 };
                rect x=(place * 10 + 1) y=(HEIGHT - tall) width="8" height=(tall) {}
            }
            line.floor x1="0" x2=(width) y1=(HEIGHT) y2=(HEIGHT) {}
        }
    }
}

/// The course of something over the time that ends now, the latest at the right. It takes the same room with
/// no value as with many. `told` says in words what it shows.
pub(crate) fn sparkline(
    values: &[(Timestamp, u64)],
    now: Timestamp,
    over: Duration,
    told: &str,
) -> Markup {
    html! {
        svg.spark viewBox={ "0 0 " (SPARK_WIDTH) " " (SPARK_HEIGHT) } preserveAspectRatio="none" role="img"
            aria-label=(told) {
            line.floor x1="0" x2=(SPARK_WIDTH) y1=(SPARK_HEIGHT) y2=(SPARK_HEIGHT) {}
            @if values.len() > 1 {
                polyline points=(course(values, now, over)) {}
            }
        }
    }
}

const SPARK_WIDTH: u64 = 120;
const SPARK_HEIGHT: u64 = 24;

/// Against the largest of them, with a little room above.
fn course(values: &[(Timestamp, u64)], now: Timestamp, over: Duration) -> String {
    let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let most = u128::from(most.max(1));
    let over = over.as_millis().max(1);
    let points = values.iter().map(|(at, value)| {
        let ago = now.distance(*at).as_millis().min(over);
        let across = u128::from(SPARK_WIDTH) * (over - ago) / over;
        let room = u128::from(SPARK_HEIGHT - 2);
        let up = u128::from(*value) * room / most;
        format!("{across},{}", u128::from(SPARK_HEIGHT - 1) - up)
    });
    points.collect::<Vec<_>>().join(" ")
}

/// How much of something is used, as a bar that fills.
pub(crate) fn share(used: u64, most: u64, told: &str) -> Markup {
    let parts = match most {
        0 => 0,
        _ => (u128::from(used) * 100 / u128::from(most)).min(100),
    };
    let kind = match parts {
        90.. => "bad",
        70.. => "fair",
        _ => "good",
    };
    html! {
        svg class={ "share " (kind) } viewBox="0 0 100 4" preserveAspectRatio="none" role="img"
            aria-label=(told) {
            rect.all x="0" y="0" width="100" height="4" {}
            rect.used x="0" y="0" width=(parts) height="4" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_stays_in_its_room_whatever_the_values() {
        let now = Timestamp::from_seconds(1000);
        let values = [(400, u64::MAX), (760, 0), (880, u64::MAX / 2), (1000, 7)]
            .map(|(second, value)| (Timestamp::from_seconds(second), value));
        let drawn = course(&values, now, Duration::from_secs(240));
        assert_eq!(drawn, "0,1 0,23 60,13 120,23");
        let none = sparkline(&[], now, Duration::from_secs(240), "nothing").into_string();
        assert!(
            none.contains("spark") && !none.contains("polyline"),
            "{none}"
        );
        assert_eq!(course(&[(now, 0)], now, Duration::ZERO), "120,23");
    }
}
