//! The way out of real sandboxes, to origins on this machine's loopback.

mod attack;
mod clients;
mod house;
mod lab;
mod life;
mod origin;
