//! A command on the open connection, next to `ssh` with ControlMaster for each command.
//!
//! `cargo bench -p hermetic-ssh` prints a table; nothing is asserted, because a busy machine is no
//! failure.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a program for a terminal, with the tests' own sshd"
)]

#[path = "../tests/lab.rs"]
mod lab;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermetic_sandbox::SandboxPersistence;
use hermetic_types::InstallationId;
use lab::{Lab, in_shell, make, run, spec};

const ROUNDS: usize = 50;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Some(lab) = Lab::open() {
        runtime.block_on(side_by_side(&lab));
    }
}

/// Turn by turn, so that whatever else the machine does hits both.
async fn side_by_side(lab: &Lab) {
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let begun = Instant::now();
    let sandbox = make(&backend, &spec).await;
    println!(
        "connect, place and create: {:.0} ms",
        millis(begun.elapsed())
    );
    let (mut ours, mut fresh, mut theirs) = (vec![], vec![], vec![]);
    for round in 0..ROUNDS + 3 {
        let begun = Instant::now();
        assert_eq!(in_shell(&sandbox, "true").await.code(), 0);
        let own = begun.elapsed();
        let begun = Instant::now();
        assert_eq!(run(&sandbox, "true").await.code(), 0);
        let alone = begun.elapsed();
        let begun = Instant::now();
        assert!(control_master(lab, &[]).status().unwrap().success());
        if round >= 3 {
            ours.push(own);
            fresh.push(alone);
            theirs.push(begun.elapsed());
        }
    }
    backend.destroy(&spec.id).await.unwrap();
    let _ = control_master(lab, &["-O", "exit"]).status();
    println!("{:36} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
    row("true in the kept shell, as chats do", &mut ours);
    row("bash -c true on the open connection", &mut fresh);
    row("ssh with ControlMaster, same", &mut theirs);
    let ratio = |times: &[Duration]| millis(times[ROUNDS / 2]) / millis(theirs[ROUNDS / 2]);
    println!("kept shell / ssh: {:.3} (bound 0.1)", ratio(&ours));
    println!("fresh bash / ssh: {:.3}", ratio(&fresh));
}

fn control_master(lab: &Lab, more: &[&str]) -> Command {
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg(lab.at("ssh_config"))
        .args(["-o", "ControlMaster=auto", "-o", "ControlPersist=300"])
        .args([
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=accept-new",
        ])
        .arg("-S")
        .arg(lab.at("peer"))
        .args(["-p", &lab.port.to_string(), "-i"])
        .arg(lab.at("key"))
        .args(more)
        .args([&format!("{}@127.0.0.1", lab.user), "bash -c true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| millis(times[(times.len() * part / 100).min(times.len() - 1)]);
    println!("{name:36} {:8.2} {:8.2} {:8.2}", at(0), at(50), at(95));
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
