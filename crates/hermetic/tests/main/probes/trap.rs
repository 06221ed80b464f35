//! Listens on every address there is, and remembers who came to which.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::namespace::{PUBLIC, PUBLIC_6};

#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) at: SocketAddr,
    pub(crate) said: Vec<u8>,
}

#[derive(Clone, Default)]
pub(crate) struct Trap {
    visits: Arc<Mutex<Vec<Visit>>>,
    answer: Arc<Mutex<Vec<u8>>>,
}

/// What a plain web server says.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached";

impl Trap {
    pub(crate) fn set(ports: &[u16]) -> Self {
        let trap = Self::default();
        trap.answers(OK);
        for &port in ports {
            let listener = TcpListener::bind(("::", port)).unwrap();
            let trap = trap.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let trap = trap.clone();
                    std::thread::spawn(move || trap.serve(stream));
                }
            });
        }
        trap
    }

    /// From now on, to whatever is asked.
    pub(crate) fn answers(&self, bytes: &[u8]) {
        *self.answer.lock().unwrap() = bytes.to_vec();
    }

    /// Everybody who came since this was last asked.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        std::mem::take(&mut *self.visits.lock().unwrap())
    }

    /// The same, once so many have come.
    pub(crate) fn after(&self, visits: usize) -> Vec<Visit> {
        while self.visits.lock().unwrap().len() < visits {
            std::thread::yield_now();
        }
        self.visits()
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut at = stream.local_addr().unwrap();
        if let IpAddr::V6(v6) = at.ip()
            && let Some(v4) = v6.to_ipv4_mapped()
        {
            at.set_ip(v4.into());
        }
        let position = {
            let mut visits = self.visits.lock().unwrap();
            let said = Vec::new();
            visits.push(Visit { at, said });
            visits.len() - 1
        };
        // Long enough for everything that comes at once, short enough not to be waited for.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(150)));
        let mut buffer = [0; 65536];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            if let Some(visit) = self.visits.lock().unwrap().get_mut(position) {
                visit.said.extend_from_slice(&buffer[..read]);
            }
            let answer = if buffer[0] == 0x16 {
                // A TLS alert: some server was there.
                vec![0x15, 3, 3, 0, 2, 2, 40]
            } else {
                self.answer.lock().unwrap().clone()
            };
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

impl Visit {
    /// Where the world is, and not where nobody may go.
    pub(crate) fn is_public(&self) -> bool {
        let ip = self.at.ip().to_string();
        ip == PUBLIC || ip == PUBLIC_6
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }
}
