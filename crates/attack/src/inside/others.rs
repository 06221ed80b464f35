//! What belongs to somebody else: the host, or the sandbox of another conversation.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use crate::{AttackFinding, AttemptState, BaitTarget};

const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(2);

/// Where files of others would be seen.
const SHARED: [&str; 5] = ["/tmp", "/var/tmp", "/dev/shm", "/workspace", "/run"];

pub(super) fn findings(bait: &BaitTarget, whose: &str) -> Vec<AttackFinding> {
    let finding = |what: &str, open: Option<String>| {
        let attempt = format!("{what} of {whose}");
        match open {
            _ if bait.token.is_empty() => {
                AttackFinding::new(&attempt, AttemptState::Untried, "no bait")
            }
            None => AttackFinding::new(&attempt, AttemptState::Held, "not to be found"),
            Some(detail) => AttackFinding::new(&attempt, AttemptState::Open, detail),
        }
    };
    vec![
        finding("a file", file(bait)),
        finding("a process", process(bait)),
        finding("a server on the loopback", server(bait)),
        finding("an abstract socket", abstract_socket(bait)),
    ]
}

fn file(bait: &BaitTarget) -> Option<String> {
    if !bait.file.is_empty() && fs::metadata(&bait.file).is_ok() {
        return Some(bait.file.clone());
    }
    SHARED.into_iter().find_map(|folder| {
        let mut entries = fs::read_dir(folder).ok()?.flatten();
        let found = entries.find(|entry| holds(&entry.file_name().to_string_lossy(), bait))?;
        Some(found.path().display().to_string())
    })
}

/// This process has the token in its own command line.
fn process(bait: &BaitTarget) -> Option<String> {
    let ourselves = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut others = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != ourselves);
    let found = others.find(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| holds(&line, bait))
    })?;
    Some(format!("process {found}"))
}

fn server(bait: &BaitTarget) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, bait.port));
    let stream = TcpStream::connect_timeout(&address, NEIGHBOUR_TIMEOUT).ok()?;
    // Whoever listens inside on the same port is not whom we look for.
    stream.set_read_timeout(Some(NEIGHBOUR_TIMEOUT)).ok()?;
    let mut said = String::new();
    let _ = stream.take(256).read_to_string(&mut said);
    holds(&said, bait).then(|| address.to_string())
}

fn abstract_socket(bait: &BaitTarget) -> Option<String> {
    let name = BaitTarget::abstract_name(&bait.token);
    let address = UnixAddr::from_abstract_name(&name).ok()?;
    UnixStream::connect_addr(&address).ok()?;
    Some(name)
}

fn holds(text: &str, bait: &BaitTarget) -> bool {
    !bait.token.is_empty() && text.contains(&bait.token)
}

/// The token is in this process's command line, in files and in the names of sockets.
pub(super) fn lie_in_wait(token: &str) -> ExitCode {
    let address = UnixAddr::from_abstract_name(BaitTarget::abstract_name(token));
    let _abstract = address.and_then(|address| UnixListener::bind_addr(&address));
    for folder in SHARED {
        // Not every sandbox has every one of them.
        let _ = fs::write(format!("{folder}/hermetic-attack-{token}"), token);
    }
    let Ok(server) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) else {
        return ExitCode::FAILURE;
    };
    let Ok(address) = server.local_addr() else {
        return ExitCode::FAILURE;
    };
    println(&format!("ready {}\n", address.port()));
    for stream in server.incoming().flatten() {
        let _ = (&stream).write_all(token.as_bytes());
    }
    ExitCode::SUCCESS
}

fn println(line: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(line.as_bytes());
    let _ = out.flush();
}
