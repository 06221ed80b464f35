//! Descriptors run out, and come back.
//!
//! In a process of its own: the limit is the whole process's.

use std::env;
use std::fs::File;
use std::process::Command;

use hermetic_listen::{ConnectionBounds, descriptors};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::lab::Port;

const CHILD: &str = "HERMETIC_LISTEN_EXHAUSTION";

#[test]
fn when_descriptors_run_out_it_serves_on() {
    if env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        return runtime.block_on(run_out());
    }
    let name = "exhaustion::when_descriptors_run_out_it_serves_on";
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
