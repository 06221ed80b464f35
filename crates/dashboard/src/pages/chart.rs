//! Small charts, drawn here.

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
