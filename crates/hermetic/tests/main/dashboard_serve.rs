//! `hermetic dashboard serve`: the dashboard as a process of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::hermetic::Hermetic;

/// Far more often than it takes.
const MOST_LOOKS: usize = 600;

fn health(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn becomes(address: &str, word: &str) {
    for _ in 0..MOST_LOOKS {
        if health(address).contains(word) {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("it never says {word}: {}", health(address));
}

#[test]
fn it_finds_the_gateway_of_its_home_and_loses_it_again() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("it_finds_the_gateway_of_its_home_and_loses_it_again") {
        return;
    }
    let serve = ["dashboard", "serve", "--listen", "127.0.0.1:0"];
    let (dashboard, said) = hermetic.gateway_until("is served", &serve, &[]);
    let address = said
        .split("127.0.0.1:")
        .nth(1)
        .map(|rest| {
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        })
        .map(|port| format!("127.0.0.1:{port}"))
        .unwrap_or_else(|| panic!("{said}"));
    becomes(&address, "\"away\"");
    // The way in leads here while there is no gateway to lead to.
    let link = ["dashboard", "link"];
    let printed = hermetic.command(&link).output().unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        printed.starts_with(&format!("http://{address}/enter?key=")),
        "{printed}"
    );
    let (gateway, _) = hermetic.gateway(&[]);
    becomes(&address, "\"reachable\"");
    gateway.signal(Signal::KILL);
    becomes(&address, "\"away\"");
    let (status, said) = dashboard.signal(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{said}");
    let refused = hermetic.command(&link).output().unwrap();
    assert!(
        !refused.status.success(),
        "what it left behind leads nowhere"
    );
}
