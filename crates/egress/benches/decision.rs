//! One decision among a thousand rules.

use std::hint::black_box;
use std::time::Instant;

use hermetic_egress::rules::ProxyMethod;
use hermetic_egress::{Authority, CompiledRules, RulesText};

const ROUNDS: u32 = 1_000_000;

pub(crate) fn run() {
    let lines = (0..1000).map(|n| match n % 3 {
        0 => format!("host{n}.example.com"),
        1 => format!("*.zone{n}.example.net"),
        _ => format!("service{n}.example.org:8443"),
    });
    let rules = CompiledRules::compile(&RulesText::allowing(lines)).unwrap();
    for (name, target) in [
        ("exact", "host999.example.com:443"),
        ("suffix", "a.b.zone499.example.net:443"),
        ("miss", "unknown.deep.name.below.example.com:443"),
    ] {
        let authority = Authority::parse(target).unwrap();
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(rules.decide(black_box(&authority), ProxyMethod::Tunnel));
        }
        let decide = start.elapsed() / ROUNDS;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let authority = Authority::parse(black_box(target)).unwrap();
            black_box(rules.decide(&authority, ProxyMethod::Tunnel));
        }
        let whole = start.elapsed() / ROUNDS;
        println!("decision  {name:9} {decide:?} (with parsing {whole:?}), 1000 rules");
    }
}
