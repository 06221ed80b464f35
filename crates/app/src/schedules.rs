//! Work on a schedule, from the configuration.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use hermetic_config::Config;
use hermetic_gateway::ScheduleSettings;
use hermetic_store::JobBounds;
use jiff::tz::TimeZone;

use crate::AppFailure;
use crate::home_channels::home_channels;

/// What scheduled work may take. A time zone that nobody knows is refused: jobs would run at other times than
/// they were meant for.
pub fn schedules(config: &Config) -> Result<ScheduleSettings, AppFailure> {
    let wanted = config.schedules();
    let zone = match &wanted.timezone {
        Some(name) => named_zone(name).ok_or_else(|| {
            AppFailure::new(
                format!("timezone {name:?} is not known on this machine"),
                "write a name such as Europe/Berlin, and install tzdata if there are no zones here",
            )
        })?,
        None => TimeZone::system(),
    };
    Ok(ScheduleSettings {
        zone,
        bounds: JobBounds {
            of_person: wanted.max_jobs_per_person,
            of_all: wanted.max_jobs,
        },
        max_parallel_jobs: wanted.max_parallel_jobs,
        shortest_interval: wanted.shortest_interval,
        longest_run: wanted.longest_run,
        wrap_response: wanted.wrap_response,
        home_channels: home_channels(config),
    })
}

/// Where systems keep zones.
const ZONES: &str = "/usr/share/zoneinfo";
/// The largest file of a zone has a fiftieth of this.
const MOST_ZONE_BYTES: u64 = 256 * 1024;

/// The zone of this name, or of this rule: `CET-1CEST,M3.5.0,M10.5.0/3` needs no file.
fn named_zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "UTC" | "Etc/UTC") {
        return Some(TimeZone::UTC);
    }
    let plain = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
        !part.is_empty() && part.bytes().all(is_plain)
    };
    // Without dots no name leads out of that folder.
    if name.len() <= 64 && name.split('/').all(plain) {
        let file = File::open(Path::new(ZONES).join(name)).ok();
        let file = file.filter(|file| file.metadata().is_ok_and(|about| about.is_file()));
        let mut bytes = Vec::new();
        let read = file.map(|file| file.take(MOST_ZONE_BYTES).read_to_end(&mut bytes));
        if matches!(read, Some(Ok(_))) {
            return TimeZone::tzif(name, &bytes).ok();
        }
    }
    TimeZone::posix(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_name_or_a_rule_and_no_path() {
        assert_eq!(named_zone("UTC"), Some(TimeZone::UTC));
        assert!(named_zone("CET-1CEST,M3.5.0,M10.5.0/3").is_some());
        for name in [
            "",
            "Nowhere/Land",
            "../../etc/passwd",
            "/etc/localtime",
            "Europe",
            "a b",
        ] {
            assert_eq!(named_zone(name), None, "{name:?}");
        }
        if Path::new(ZONES).join("Europe/Berlin").is_file() {
            assert!(named_zone("Europe/Berlin").is_some());
        }
    }
}
