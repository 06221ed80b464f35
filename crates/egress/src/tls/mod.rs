//! The first flight of a tunnel: a TLS ClientHello that says where it is going.

pub(crate) mod alert;
pub(crate) mod cursor;
mod greeting;
pub(crate) mod hello;
pub(crate) mod retry;

pub use greeting::client_hello;
