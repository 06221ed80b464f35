//! The real program, as a plain process, driven by the real client.

mod lab;
mod runs;
