//! How long a newcomer waits: a release build from nothing.

use std::fs;
use std::time::Instant;

use crate::failure::ChoreFailure;
use crate::{machine, members, program, say};

pub(crate) fn run() -> Result<(), ChoreFailure> {
    let folder = machine::folder("build-times")?;
    let empty = || {
        fs::remove_dir_all(&folder)
            .map_err(ChoreFailure::file(format!("empty {}", folder.display())))
    };
    empty()?;
    say::step("Fetching, which is not measured");
    program::show(machine::cargo().args(["fetch", "--locked"]))?;

    say::step("A release build from nothing");
    let mut build = machine::cargo();
    build
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&folder)
        // A cache would measure somebody else's build.
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_TARGET_DIR");
    let product = members::all()?
        .into_iter()
        .any(|one| one.name == "hermetic");
    if product {
        build.args(["--package", "hermetic"]);
    } else {
        build.args(["--workspace", "--exclude", "xtask"]);
    }
    let (start, spent) = (Instant::now(), children_seconds());
    program::show(&mut build)?;
    let (took, spent) = (start.elapsed(), children_seconds() - spent);

    say::step("Measured");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say::note(&format!(
        "{:.1} s on {cores} cores, {spent:.1} s of CPU time",
        took.as_secs_f64()
    ));
    if let Ok(binary) = fs::metadata(folder.join("release/hermetic")) {
        say::note(&format!("the binary: {:.1} MB", binary.len() as f64 / 1e6));
    } else {
        say::note("there is no hermetic binary yet; this was every library of the workspace");
    }
    empty()
}

/// CPU time of all programs that we waited for, which a busy machine does not falsify.
fn children_seconds() -> f64 {
    // The kernel shows these in hundredths of a second, whatever its own clock is.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, a name in brackets, may itself have spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks
        .filter_map(|text| text.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}
