//! Progress, for a person who waits.

pub(crate) fn step(text: &str) {
    println!("\n==> {text}");
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
