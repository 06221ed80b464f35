//! Who gets in, who does not, and what pairing stands against.

mod door;
mod lab;
mod pairing;
