//! The proxy on loopback, against origins of our own and a resolver that lies.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod lab;

mod ask;
mod buffered;
mod clients;
mod connect;
mod credentials;
mod http;
mod limits;
mod shutdown;
mod smuggling;
mod socks;
mod standing;
mod upstream;
