//! Configurations that must not start anything, and every word a person then reads.

mod names;
mod shapes;
mod values;
mod variables;
mod yaml;
