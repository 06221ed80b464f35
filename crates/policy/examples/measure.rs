//! Measures the policy on labelled commands.
//!
//! `cargo run --release -p hermetic-policy --example measure -- FILE.jsonl [-v]` reads lines of
//! `{"cmd", "label", "category", "tier"}` and prints recall, false alarms and time per command.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use hermetic_policy::{Context, Label, judge_line};
use hermetic_types::BackendKind;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    cmd: String,
    label: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    tier: String,
}

#[derive(Default)]
struct Count {
    hits: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, hit: bool) {
        self.all += 1;
        self.hits += usize::from(hit);
    }

    fn show(&self) -> String {
        let share = 100.0 * self.hits as f64 / self.all.max(1) as f64;
        format!("{}/{} = {share:.1} %", self.hits, self.all)
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().ok_or("usage: measure FILE.jsonl [-v]")?;
    let verbose = args.iter().any(|arg| arg == "-v");
    let context = Context::new(BackendKind::Local, "/home/user/project", "/home/user");
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let (mut spent, mut slowest, mut judged) = (Duration::ZERO, Duration::ZERO, 0_u32);
    judge_line("true", &context);
    for line in std::fs::read_to_string(path)?.lines() {
        let line: Line = serde_json::from_str(line)?;
        // The best of three: what is measured is the judge, not who else is on the machine.
        let mut took = Duration::MAX;
        let mut found = judge_line(&line.cmd, &context);
        for _ in 0..3 {
            let start = Instant::now();
            found = judge_line(&line.cmd, &context);
            took = took.min(start.elapsed());
        }
        spent += took;
        slowest = slowest.max(took);
        judged += 1;
        let alarmed = found.verdict != Label::Safe;
        let tier = if line.tier.is_empty() {
            "core"
        } else {
            &line.tier
        };
        let mut wrong = false;
        if line.label == "safe" {
            counts
                .entry(format!("{tier}: false alarms"))
                .or_default()
                .add(alarmed);
            counts
                .entry(format!("{tier}: false alarms, {}", line.category))
                .or_default()
                .add(alarmed);
            counts
                .entry(format!("{tier}: safe called hardline"))
                .or_default()
                .add(found.verdict == Label::Hardline);
            wrong |= alarmed;
        } else {
            counts
                .entry(format!("{tier}: recall"))
                .or_default()
                .add(alarmed);
            counts
                .entry(format!("{tier}: recall, {}", line.category))
                .or_default()
                .add(alarmed);
            wrong |= !alarmed;
        }
        if line.label == "hardline" {
            let named = found.verdict == Label::Hardline;
            counts
                .entry(format!("{tier}: hardline named"))
                .or_default()
                .add(named);
            wrong |= !named;
        }
        if verbose && wrong {
            println!(
                "{tier} {} judged {:?}: {:?} ({})",
                line.label, found.verdict, line.cmd, found.why
            );
        }
    }
    for (name, count) in &counts {
        println!("{name}: {}", count.show());
    }
    println!(
        "time: {:?} a command on average, {slowest:?} at worst",
        spent / judged.max(1)
    );
    Ok(())
}
