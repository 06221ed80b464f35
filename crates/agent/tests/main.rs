//! A turn from the outside: with a scripted model in the process, and with endpoints on loopback.

mod aimock;
mod compaction;
mod dialects;
mod endpoint;
mod lab;
mod parts;
mod patience;
mod prompt;
mod spending;
mod turns;
