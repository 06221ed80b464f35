//! The proxy, the liar and the trap, and ways to knock.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::dns::Liar;
use super::trap::{Trap, Visit};
use crate::hermetic::Hermetic;

pub(crate) struct Stage {
    pub(crate) dns: Liar,
    pub(crate) trap: Trap,
    proxy: Child,
    _hermetic: Hermetic,
}

const PROXY: (&str, u16) = ("127.0.0.1", 3128);

/// Far more than anything here takes; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

impl Stage {
    /// `*.test` may be reached by TLS and in the open, one name by anything.
    pub(crate) fn set() -> Self {
        let dns = Liar::start();
        let trap = Trap::set(&[22, 80, 443, 8443]);
        let hermetic = Hermetic::new();
        let rules = [
            "*.test",
            "*.test:80",
            "tcp://plain.test:22",
            "münchen.example",
        ];
        let mut words = vec!["egress", "serve", "--listen", "127.0.0.1:3128"];
        words.extend(rules.iter().flat_map(|rule| ["--allow", rule]));
        words.extend(["--deny", "denied.test"]);
        let proxy = hermetic
            .command(&words)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stage = Self {
            dns,
            trap,
            proxy,
            _hermetic: hermetic,
        };
        while TcpStream::connect(PROXY).is_err() {
            std::thread::yield_now();
        }
        stage
    }

    pub(crate) fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(PROXY).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Says all of it, and hears all of the answer.
    pub(crate) fn ask(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.dial();
        // The proxy may have hung up in the middle of it.
        let _ = stream.write_all(bytes.as_ref());
        heard(stream)
    }

    pub(crate) fn status(&self, bytes: impl AsRef<[u8]>) -> String {
        let answer = self.ask(bytes);
        let answer = String::from_utf8_lossy(&answer);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    pub(crate) fn connect(&self, target: &str) -> String {
        self.status(format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
        ))
    }

    /// A tunnel that is granted, and what comes of these bytes in it.
    pub(crate) fn tunnel(&self, target: &str, bytes: &[u8]) -> (Vec<u8>, Vec<Visit>) {
        let mut stream = self.granted(target);
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        (heard(stream), self.trap.visits())
    }

    pub(crate) fn granted(&self, target: &str) -> TcpStream {
        let mut stream = self.dial();
        write!(
            stream,
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        assert!(head.starts_with("HTTP/1.1 200 "), "{target}: {head}");
        stream
    }

    /// Nobody came, to no address.
    pub(crate) fn nobody_came(&self, probe: &str) {
        let visits = self.trap.visits();
        assert!(visits.is_empty(), "{probe}: {visits:?}");
    }

    /// Nobody came where nobody may.
    pub(crate) fn nothing_was_trapped(&self) {
        let visits = self.trap.visits();
        let trapped: Vec<_> = visits.iter().filter(|visit| !visit.is_public()).collect();
        assert!(trapped.is_empty(), "{trapped:?}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

pub(crate) fn heard(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the proxy hangs"),
        _ => answer,
    }
}
