//! How long a newcomer waits: a release build from nothing.

use std::fs;
use std::time::Instant;

use crate::failure::Failure;
use crate::{machine, members, program, say};

pub(crate) fn run() -> Result<(), Failure> {
    let folder = machine::folder("build-times")?;
    let empty = || {
        fs::remove_dir_all(&folder).map_err(Failure::file(format!("empty {}", folder.display())))
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
    let start = Instant::now();
    program::show(&mut build)?;
    let took = start.elapsed();

    say::step("Measured");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say::note(&format!("{:.1} s on {cores} cores", took.as_secs_f64()));
    if let Ok(binary) = fs::metadata(folder.join("release/hermetic")) {
        say::note(&format!("the binary: {:.1} MB", binary.len() as f64 / 1e6));
    } else {
        say::note("there is no hermetic binary yet; this was every library of the workspace");
    }
    empty()
}
