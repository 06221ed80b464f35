//! One clock, one type for a moment.
//!
//! Whoever reads the machine's clock by himself cannot be tried with a clock that jumps, and two types for a
//! moment are compared by way of a conversion that somebody forgets. So the clock is read in one file, it is
//! named only where parts are put together, and other types for a moment stand only where a library or a
//! calendar wants them. What is measured, awaited or timed out is no moment: that is the runtime's own clock
//! (`docs/decisions/0072-one-clock.md`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::Workspace;

/// A file that may, and why.
type Allowed = (&'static str, &'static str);

/// Every way to ask the machine, a library or a database what time it is.
const READS: &[&str] = &[
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "Local::now",
    "OffsetDateTime::now",
    "now_utc(",
    "now_v1(",
    "now_v6(",
    "now_v7(",
    "UNIX_EPOCH.elapsed",
    "libc::time(",
    "ClockId::Realtime",
    "CLOCK_REALTIME",
    "gettimeofday(",
    "CURRENT_TIME",
    "CURRENT_DATE",
    "unixepoch(",
    "julianday(",
    "strftime('",
    "'now'",
];

const READERS: &[Allowed] = &[
    (
        "crates/types/src/clock.rs",
        "it is the clock that everybody else is handed",
    ),
    (
        "crates/store/src/leases.rs",
        "gateways on several machines are judged by the one clock they share, the database's",
    ),
];

/// Crates that put parts together, and hand each of them its clock.
const BUILDERS: &[Allowed] = &[
    ("crates/types/", "the clock itself"),
    ("crates/app/src/", "builds a gateway, and what commands use"),
    ("crates/hermetic/src/", "commands are over in a moment"),
    ("crates/store/src/database/old_files.rs", "tests only"),
    ("crates/store/src/test_databases.rs", "tests only"),
    (
        "crates/testkit/src/",
        "where a clock begins that tests move, and the clocks of other people's servers",
    ),
];

/// What else can hold a moment.
const OTHER_TYPES: &[&str] = &[
    "SystemTime",
    "jiff::Timestamp",
    "use jiff::{Timestamp",
    "OffsetDateTime",
    "chrono::",
];

const CONVERTERS: &[Allowed] = &[
    ("crates/types/src/clock.rs", "the machine's clock gives it"),
    ("crates/types/src/timestamp.rs", "converts"),
    ("crates/types/src/timestamp/calendar.rs", "converts"),
    (
        "crates/egress/src/credential/ca.rs",
        "the library that makes certificates takes it",
    ),
    (
        "crates/schedule/src/cron_expression.rs",
        "steps of a calendar, given out as our own",
    ),
    (
        "crates/schedule/src/schedule.rs",
        "an ISO time is read by the calendar",
    ),
    (
        "crates/search/src/walk/names.rs",
        "a file's own stamp, compared with those of other files only",
    ),
];

#[test]
fn the_machines_clock_is_read_in_one_file() {
    let found = found(READS, READERS, ".", Part::Whole);
    assert!(found.is_empty(), "hand it a `Clock` instead: {found:#?}");
}

#[test]
fn the_machines_clock_is_named_only_where_parts_are_put_together() {
    let found = found(&["SystemClock"], BUILDERS, "src", Part::Production);
    assert!(found.is_empty(), "let it be handed over: {found:#?}");
}

#[test]
fn a_moment_has_one_type() {
    let found = found(OTHER_TYPES, CONVERTERS, "src", Part::Production);
    assert!(found.is_empty(), "{found:#?}");
}

/// Which part of a file counts.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    /// Without its tests.
    Production,
}

/// Files with one of these texts that may not have it. That every allowed one has some shows that the search
/// works, and that no reason outlives its cause.
fn found(texts: &[&str], allowed: &[Allowed], folder: &str, part: Part) -> BTreeSet<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the repository");
    let mut files = BTreeSet::new();
    for package in &Workspace::ours().packages {
        // This package names the texts to look for them.
        if package.name != "promises" {
            collect(&package.folder.join(folder), &mut files);
        }
    }
    let with_one = files
        .iter()
        .filter(|file| !(part == Part::Production && is_of_tests(file)))
        .filter(|file| holds_one(file, texts, part))
        .map(|file| {
            file.strip_prefix(&root)
                .expect("ours")
                .components()
                .collect()
        });
    let with_one: BTreeSet<PathBuf> = with_one.collect();
    for (place, why) in allowed {
        let is_used = with_one.iter().any(|file| file.starts_with(place));
        assert!(is_used, "{place} needs no permission any more: {why}");
    }
    let may = |file: &Path| allowed.iter().any(|(place, _)| file.starts_with(place));
    with_one.into_iter().filter(|file| !may(file)).collect()
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        match kind {
            _ if path.is_dir() => collect(&path, files),
            Some("rs" | "sql") => drop(files.insert(path)),
            _ => {}
        }
    }
}

fn is_of_tests(file: &Path) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str());
    name.is_some_and(|name| name == "tests" || name == "test_lab" || name.ends_with("_tests"))
}

fn holds_one(file: &Path, texts: &[&str], part: Part) -> bool {
    let text = fs::read_to_string(file).expect("text");
    let end = match part {
        Part::Whole => None,
        Part::Production => text.find("#[cfg(test)]\nmod tests {"),
    };
    let lines = text[..end.unwrap_or(text.len())].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter()
        .any(|line| texts.iter().any(|text| line.contains(text)))
}
