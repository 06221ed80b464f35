//! The real program, as a plain process, driven by the real client.

mod ending;
mod files;
mod lab;
mod links;
mod runs;
mod shell;
