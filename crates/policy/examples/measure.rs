//! Measures the policy on labelled commands.
//!
//! `cargo run --release -p hermetic-policy --example measure -- FILE... [-v]` reads batches
//! (`tests/batches/*.txt`) or `.jsonl` files and prints recall and false alarms for each category,
//! which of the bounds for a set nobody tuned to are broken, and the time a command takes.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use hermetic_policy::judge_line;

#[path = "../tests/batches/mod.rs"]
mod batches;

use batches::{Line, Report, Share};

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let (flags, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg == "-v");
    if paths.is_empty() {
        return Err("usage: measure FILE... [-v]".into());
    }
    for path in paths {
        let lines = batches::read(&path, &std::fs::read_to_string(&path)?)?;
        for tier in ["core", "gray"] {
            let of_tier: Vec<&Line> = lines.iter().filter(|line| tier_of(line) == tier).collect();
            if of_tier.is_empty() {
                continue;
            }
            let report = Report::on(of_tier.iter().copied());
            println!("{}, {tier}", Path::new(&path).display());
            print_report(&report, !flags.is_empty());
        }
        print_times(&lines);
    }
    Ok(())
}

fn tier_of(line: &Line) -> &str {
    if line.tier.is_empty() {
        "core"
    } else {
        &line.tier
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn print_report(report: &Report, verbose: bool) {
    if verbose {
        for wrong in &report.wrong {
            println!("  {wrong}");
        }
    }
    print_share("recall", report.recall);
    for (category, share) in &report.recall_by_category {
        print_share(&format!("recall, {category}"), *share);
    }
    print_share("hardline named", report.hardline_named);
    print_share("safe called hardline", report.safe_called_hardline);
    for (category, share) in &report.alarms_by_category {
        print_share(&format!("false alarms, {category}"), *share);
    }
    for broken in report.broken() {
        println!("  BROKEN: {broken}");
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn print_share(name: &str, share: Share) {
    println!(
        "  {name}: {}/{} = {:.1} %",
        share.hits,
        share.all,
        share.percent()
    );
}

/// The best of three: what is measured is the judge, not who else is on the machine.
#[expect(clippy::print_stdout, reason = "an example prints")]
fn print_times(lines: &[Line]) {
    let context = batches::context();
    let (mut spent, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for line in lines {
        let mut took = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            judge_line(&line.cmd, &context);
            took = took.min(start.elapsed());
        }
        spent += took;
        slowest = slowest.max(took);
    }
    let average = spent / u32::try_from(lines.len()).unwrap_or(u32::MAX).max(1);
    println!("  time: {average:?} a command on average, {slowest:?} at worst");
}
