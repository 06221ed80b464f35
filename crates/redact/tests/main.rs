//! What is taken out, what is left alone, and that cutting a stream changes nothing.

mod attack;
mod known;
mod learned;
mod left_alone;
mod properties;
mod shapes;
mod spoken;

use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::Secret;

fn knowing(values: &[&str]) -> Redactor {
    Redactor::new(
        values.iter().map(|value| Secret::new(*value)),
        RedactorSettings::default(),
    )
}

fn knowing_nothing() -> Redactor {
    knowing(&[])
}
