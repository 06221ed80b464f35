//! Waits that differ, for many who wait for the same.
//!
//! A server that is restarted ends all links at once. Whoever waits as long as everybody else comes back with
//! everybody else, and the server meets in one moment what it had met over a day.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Between half of that time and all of it, another part each time.
pub fn jittered(time: Duration) -> Duration {
    let half = time / 2;
    half + half.mul_f64(anywhere())
}

/// Anywhere up to that time: for a first try, before which nobody has waited yet.
pub fn jittered_start(time: Duration) -> Duration {
    time.mul_f64(anywhere())
}

/// From 0 to 1. The standard library seeds its hashes anew each time; a secret nobody would make of that.
fn anywhere() -> f64 {
    let seed = RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(seed).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_over_their_half() {
        const WAIT: Duration = Duration::from_millis(1000);
        let waits: Vec<_> = (0..1000).map(|_| jittered(WAIT).as_millis()).collect();
        assert!(waits.iter().all(|wait| (500..=1000).contains(wait)));
        // Each tenth of the half has its share: a hundred, give or take.
        for tenth in (500..1000).step_by(50) {
            let many = waits
                .iter()
                .filter(|wait| (tenth..tenth + 50).contains(*wait));
            let many = many.count();
            assert!((40..=200).contains(&many), "{many} from {tenth} ms on");
        }
        let starts: Vec<_> = (0..1000)
            .map(|_| jittered_start(WAIT).as_millis())
            .collect();
        assert!(starts.iter().all(|start| *start <= 1000));
        assert!(starts.iter().filter(|start| **start < 500).count() > 300);
    }
}
