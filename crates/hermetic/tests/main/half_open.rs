//! Half-sent requests, more of them than a port keeps.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Some say nothing, some stop in the middle of a head, some in the middle of a body.
const HALVES: [&str; 4] = [
    "",
    "POST",
    "GET /health HTTP/1.1\r\nhost: here\r\nx: ",
    "POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 100000\r\n\r\nhalf",
];

/// More than any port of ours keeps at once.
const MANY: usize = 700;

/// Far more than a port takes to end one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections that never come to the end of their request.
pub(crate) struct HalfOpen(Vec<TcpStream>);

impl HalfOpen {
    pub(crate) fn at(address: &str) -> Self {
        // Each is a descriptor of this process too.
        hermetic_listen::descriptors::raise();
        let connect = |number: usize| {
            let mut stream = TcpStream::connect(address).unwrap();
            // It may have been ended already, for those that came after it.
            let _ = stream.write_all(HALVES[number % HALVES.len()].as_bytes());
            stream
        };
        Self((0..MANY).map(connect).collect())
    }

    /// Waits until those that came first made room for those that came last.
    pub(crate) fn the_first_is_ended(&mut self) {
        let first = &mut self.0[0];
        first.set_read_timeout(Some(PATIENCE)).unwrap();
        match first.read_to_end(&mut Vec::new()) {
            // A reset is an end too.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the port keeps all of them: {error}"),
        }
    }
}
