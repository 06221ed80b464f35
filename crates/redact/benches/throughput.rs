//! A redacted megabyte: ordinary text, 200 known secrets.
//!
//! `cargo bench -p hermetic-redact`, or `… -- --passes N NAME` for N passes over one kind of text: the
//! difference of two such runs under `valgrind --tool=callgrind` is what a pass costs in instructions,
//! which a busy machine does not change.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::env;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::Secret;

/// How often each text is redacted; the fastest pass counts.
const PASSES: usize = 7;

fn main() {
    let bench = Bench::asked_for();
    let known = (0..200_u64).map(|number| {
        let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let more = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        if number % 2 == 0 {
            Secret::new(format!("sk-test-{mixed:016x}{more:016x}"))
        } else {
            Secret::new(format!("{mixed:016x}{more:016x}"))
        }
    });
    let started = Instant::now();
    let redactor = Redactor::new(known, RedactorSettings::default());
    println!("made in {:?}: {redactor:?}", started.elapsed());

    let source = include_str!("../src/stream.rs");
    let prose = "A message arrives, is authorised, joins a conversation and becomes a turn of the \
        agent, which calls a tool, which asks whether it may, and whose output becomes a reply. \
        Each step has one folder; the key to reading them is the order in which things happen.\n";
    let about_secrets = include_str!("../src/lib.rs");
    let log =
        "2026-01-02T03:04:05Z INFO request{method=GET path=/v1/items id=550e8400}: done in 12ms\n";
    let hostile = "password token key sk- eyJ :// AKIA ghp_ secret authorization ";
    bench.measure(&redactor, "source code", source);
    bench.measure(&redactor, "prose", prose);
    bench.measure(&redactor, "prose about secrets", about_secrets);
    bench.measure(&redactor, "log lines", log);
    bench.measure(
        &redactor,
        "base64",
        &"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2\n".repeat(4),
    );
    bench.measure(&redactor, "nothing but triggers", hostile);
    for unit in [
        "eyJ",
        "AIza",
        "SG.",
        "sk-ant-",
        "token=(",
        "password=a1(",
        "key='",
        "cookie: ",
        "authorization:",
        "-----BEGIN PRIVATE KEY-----",
        "://",
        "TOKEN=",
        "a.b:AA",
        "MTA",
        "token=\"\\",
        "$1$1$$",
    ] {
        bench.measure(&redactor, &format!("{unit:?} forever"), unit);
    }
}

/// What was asked for on the command line.
struct Bench {
    passes: usize,
    /// Part of the names of the texts to measure; all where it is empty.
    name: String,
}

impl Bench {
    fn asked_for() -> Self {
        let arguments: Vec<String> = env::args().skip(1).filter(|one| one != "--bench").collect();
        match arguments.as_slice() {
            [flag, passes, name] if flag == "--passes" => Self {
                passes: passes.parse().unwrap_or(PASSES),
                name: name.clone(),
            },
            _ => Self {
                passes: PASSES,
                name: arguments.into_iter().next().unwrap_or_default(),
            },
        }
    }

    fn measure(&self, redactor: &Redactor, name: &str, sample: &str) {
        if !name.contains(&self.name) {
            return;
        }
        let text = sample.repeat((2 << 20) / sample.len());
        let mut best = Duration::MAX;
        for _ in 0..self.passes {
            let started = Instant::now();
            let mut stream = redactor.stream();
            for chunk in text.as_bytes().chunks(32 << 10) {
                black_box(stream.push(chunk));
            }
            black_box(stream.finish());
            best = best.min(started.elapsed());
        }
        #[expect(clippy::cast_precision_loss, reason = "a printed figure")]
        let rate = text.len() as f64 / best.as_secs_f64() / 1e6;
        println!("{name:>40}: {rate:8.0} MB/s");
    }
}
