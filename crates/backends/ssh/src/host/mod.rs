//! The side in the gateway: keeps the connection, places the program, asks it.

mod channel;
mod client;
mod connection;
mod connections;
mod place;
mod plain;
mod ssh;
mod trouble;

pub use client::SshConfig;
pub use ssh::SshBackend;
