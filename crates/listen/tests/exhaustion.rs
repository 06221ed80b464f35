//! Descriptors run out, and come back.
//!
//! In a process of its own: the limit is the whole process's.

use std::env;
use std::fs::File;
use std::process::Command;
use std::time::Duration;

use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::lab::{Port, TEST_TIMEOUT};

const CHILD: &str = "HERMETIC_LISTEN_EXHAUSTION";

#[test]
fn when_descriptors_run_out_it_serves_on() {
    let name = "exhaustion::when_descriptors_run_out_it_serves_on";
    in_a_process_of_its_own(name, run_out);
}

#[test]
fn with_no_descriptor_to_be_had_it_takes_no_processor_time() {
    let name = "exhaustion::with_no_descriptor_to_be_had_it_takes_no_processor_time";
    in_a_process_of_its_own(name, wait_in_vain);
}

fn in_a_process_of_its_own<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    if env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        return runtime.block_on(body());
    }
    let child = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let said = said + &String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// Somebody knocks, nothing can be opened, and nobody can be cut. The clock runs ahead by itself, so
/// whoever does not rest never comes to the end of the hour.
async fn wait_in_vain() {
    const HOUR: Duration = Duration::from_secs(3600);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut listener = BoundedListener::new(listener, ConnectionBounds::of(8));
    let client = TcpStream::connect(address).await.unwrap();
    let limit = Rlimit {
        current: Some(64),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut held: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();

    tokio::time::pause();
    let mut polls = 0;
    {
        let mut accepting = std::pin::pin!(listener.accept());
        let counted = std::future::poll_fn(|cx| {
            polls += 1;
            accepting.as_mut().poll(cx)
        });
        let accepted = timeout(HOUR, counted).await;
        assert!(accepted.is_err(), "there was no descriptor for it");
    }
    // Once in a second at most, but for the first few.
    assert!(polls <= 3600 + 20, "{polls} times in an hour");
    assert!(polls > 60, "{polls} times: it does not try any more");
    tokio::time::resume();

    // For the connection and for the one that is kept back.
    held.truncate(held.len() - 2);
    let accepted = timeout(TEST_TIMEOUT, listener.accept()).await;
    accepted.expect("it was never accepted");
    drop(client);
}

async fn run_out() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: Some(64),
        maximum: hard,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let port = Port::open(ConnectionBounds::of(1000)).await;
    port.is_well().await;

    // Both ends of each connection are this process's. Whoever is answered came after all of them.
    let mut clients = Vec::new();
    for _ in 0..15 {
        clients.push(port.half_open("GET").await);
    }
    port.is_well().await;
    let mut held: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(held.len() > 1, "there was nothing left to take");
    // One descriptor for the client's end, none for ours.
    held.pop();
    for _ in 0..5 {
        port.is_well().await;
    }
    drop((held, clients));
    port.is_well().await;

    let ordinary = descriptors::ordinary();
    assert_eq!(ordinary, Some(64));
    assert_eq!(descriptors::raise(), hard.unwrap_or(1 << 20).min(1 << 20));
    assert_eq!(descriptors::ordinary(), Some(64), "for what we start");
    port.close().await;
}
