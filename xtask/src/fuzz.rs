//! Every fuzz target, for a while each.
//!
//! libFuzzer comes as a crate and the compiler's own passes count branches, so nothing has to be
//! installed but a C++ compiler. Only what runs on the target is instrumented: with `--target`,
//! cargo leaves build scripts alone.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::apt::AptPackages;
use crate::arguments::FuzzOptions;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

const COVERAGE: &str = "--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 \
    -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// One input may take no longer, and one target no more memory.
const LIMITS: [&str; 3] = ["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"];

struct FuzzRun {
    target: String,
    log: PathBuf,
    child: Child,
}

pub(crate) fn run(options: &FuzzOptions) -> Result<(), ChoreFailure> {
    let folder = machine::root().join("fuzz");
    let place = machine::folder("fuzz")?;
    let targets = chosen(&folder, &options.targets)?;
    compiler()?;

    say::step("Building the fuzz targets");
    let triple = triple()?;
    program::show(
        machine::cargo()
            .args(["build", "--release", "--target", &triple])
            .arg("--manifest-path")
            .arg(folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&place)
            .args(targets.iter().flat_map(|target| ["--bin", target]))
            .env("RUSTFLAGS", COVERAGE),
    )?;

    say::step(&format!(
        "{} targets, {} seconds each; what they find is kept in {}",
        targets.len(),
        options.seconds,
        place.display()
    ));
    let programs = place.join(triple).join("release");
    let found = in_turn(targets, &programs, &place, options.seconds)?;
    if found.is_empty() {
        say::step("No target found anything.");
        return Ok(());
    }
    let place = place.display();
    Err(ChoreFailure::Bad(vec![format!(
        "findings in {}: the inputs are in {place}/artifacts, the output in {place}/logs",
        found.join(", ")
    )]))
}

/// Whether every target still fits the code that it tries. They are a workspace of their own, so nothing else
/// compiles them, and one that nobody compiled for a while is one that nobody runs.
pub(crate) fn check() -> Result<(), ChoreFailure> {
    compiler()?;
    program::show(
        machine::cargo()
            .args(["check", "--locked", "--bins"])
            .arg("--manifest-path")
            .arg(machine::root().join("fuzz").join("Cargo.toml"))
            .arg("--target-dir")
            .arg(machine::folder("fuzz")?),
    )
}

/// libFuzzer is C++, and built with the first target.
fn compiler() -> Result<(), ChoreFailure> {
    match program::works(Command::new("c++").arg("--version")) {
        true => Ok(()),
        false => AptPackages::default().install("g++"),
    }
}

/// As many at once as there are processors. Gives back the targets that found something.
fn in_turn(
    targets: Vec<String>,
    programs: &Path,
    place: &Path,
    seconds: u64,
) -> Result<Vec<String>, ChoreFailure> {
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let mut waiting = VecDeque::from(targets);
    let mut running: Vec<FuzzRun> = Vec::new();
    let mut found = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < at_once
            && let Some(target) = waiting.pop_front()
        {
            running.push(start(target, programs, place, seconds)?);
        }
        let mut still = Vec::new();
        for mut run in running {
            match run
                .child
                .try_wait()
                .map_err(ChoreFailure::file("wait for a target"))?
            {
                None => still.push(run),
                Some(status) => {
                    say::note(&summary(&run, status.success()));
                    if !status.success() {
                        found.push(run.target);
                    }
                }
            }
        }
        running = still;
        thread::sleep(Duration::from_millis(200));
    }
    Ok(found)
}

fn start(
    target: String,
    programs: &Path,
    place: &Path,
    seconds: u64,
) -> Result<FuzzRun, ChoreFailure> {
    let corpus = place.join("corpus").join(&target);
    let artifacts = place.join("artifacts").join(&target);
    let logs = place.join("logs");
    for folder in [&corpus, &artifacts, &logs] {
        fs::create_dir_all(folder)
            .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
    }
    let log = logs.join(format!("{target}.log"));
    let output = fs::File::create(&log).map_err(ChoreFailure::file("write a log"))?;
    let program = programs.join(&target);
    let child = Command::new(&program)
        .arg(&corpus)
        .args(LIMITS)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .map_err(|source| ChoreFailure::Start {
            line: program.display().to_string(),
            source,
        })?;
    Ok(FuzzRun { target, log, child })
}

/// What libFuzzer says at its end, in one line.
fn summary(run: &FuzzRun, clean: bool) -> String {
    let text = fs::read_to_string(&run.log).unwrap_or_default();
    let stat = |name: &str| {
        let line = text.lines().rev().find_map(|line| line.strip_prefix(name));
        line.map_or("?", str::trim).to_owned()
    };
    let inputs = stat("stat::number_of_executed_units:");
    let verdict = if clean { "clean" } else { "FOUND SOMETHING" };
    format!("{}: {verdict}, {inputs} inputs", run.target)
}

/// All there are, or those that were named.
fn chosen(folder: &Path, named: &[String]) -> Result<Vec<String>, ChoreFailure> {
    let mut all: Vec<String> = fs::read_dir(folder.join("fuzz_targets"))
        .map_err(ChoreFailure::file("read fuzz/fuzz_targets"))?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            (path.extension()? == "rs").then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .collect();
    all.sort();
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(ChoreFailure::Usage(format!(
            "no fuzz target is called {unknown:?}; there are {}",
            all.join(", ")
        )));
    }
    Ok(match named {
        [] => all,
        some => some.to_vec(),
    })
}

/// What the compiler builds for by itself.
fn triple() -> Result<String, ChoreFailure> {
    let said = program::listen(Command::new("rustc").arg("-vV"))?;
    let said = String::from_utf8_lossy(&said.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| ChoreFailure::Lacking {
            what: "rustc does not say what it builds for".to_owned(),
            remedy: "look at `rustc -vV`".to_owned(),
        })
}
