//! Progress, for a person who waits.

use std::sync::OnceLock;
use std::time::Instant;

/// Begins a step, with the seconds since the first one: the last page tells where the time went.
pub(crate) fn step(text: &str) {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let seconds = FIRST.get_or_init(Instant::now).elapsed().as_secs();
    println!("\n==> [{seconds} s] {text}");
}

pub(crate) fn note(text: &str) {
    println!("    {text}");
}

pub(crate) fn plain(text: &str) {
    println!("{text}");
}

pub(crate) fn end(text: &str) {
    println!("\n==> {text}");
}
