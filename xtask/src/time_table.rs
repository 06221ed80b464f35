//! Where the time of a run's tests went, so that a slow one is seen by whoever added it.

use std::collections::BTreeMap;

use crate::results::TestTime;

/// The parts of the test suite and the tests that took longest, a line each.
pub(crate) fn lines(times: &[TestTime]) -> Vec<String> {
    let mut parts: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for time in times {
        let part = parts.entry(&time.binary).or_default();
        part.0 += 1;
        part.1 += time.seconds;
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|one, other| other.1.1.total_cmp(&one.1.1));
    let mut slowest: Vec<_> = times.iter().collect();
    slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));

    let parts = parts.into_iter().take(LONGEST_PARTS);
    let parts =
        parts.map(|(name, (tests, seconds))| format!("{seconds:6.0} s {name}, {tests} tests"));
    let slowest = slowest.into_iter().take(LONGEST_TESTS);
    let slowest =
        slowest.map(|time| format!("{:6.1} s {} {}", time.seconds, time.binary, time.name));
    parts.chain(slowest).collect()
}

const LONGEST_PARTS: usize = 10;
const LONGEST_TESTS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_longest_comes_first() {
        let times = [
            ("a", "quick", 0.5),
            ("b", "slow", 2.0),
            ("a", "slower", 3.0),
        ];
        let times = times.map(|(binary, name, seconds)| TestTime {
            binary: binary.to_owned(),
            name: name.to_owned(),
            seconds,
        });
        assert_eq!(
            lines(&times),
            [
                "     4 s a, 2 tests",
                "     2 s b, 1 tests",
                "   3.0 s a slower",
                "   2.0 s b slow",
                "   0.5 s a quick",
            ]
        );
    }
}
