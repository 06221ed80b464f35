//! A pod, and a command on its open link, next to `kubectl exec` for each command.
//!
//! `cargo bench -p hermetic-kubernetes` prints a table; nothing is asserted, because a busy machine is no
//! failure. The cluster is the tests' own: what a real one adds (a scheduler, a kubelet, containerd) is not in
//! these figures, for neither side.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    unused_imports,
    unused_macros,
    reason = "a program for a terminal, with the tests' own cluster"
)]

#[path = "../tests/front.rs"]
mod front;
#[path = "../tests/lab.rs"]
mod lab;
#[path = "../tests/server/mod.rs"]
mod server;

use std::process::Stdio;
use std::time::{Duration, Instant};

use front::TlsFront;
use hermetic_sandbox::{Backend, Sandbox};
use lab::{Lab, at, finish, greet};
use tokio::process::Command;

const ROUNDS: usize = 50;
const BULK: usize = 100_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match lab::skip().await {
            None => side_by_side().await,
            Some(why) => eprintln!("SKIP: {why}"),
        }
    });
}

async fn side_by_side() {
    let lab = Lab::open().await;
    // Both by TLS, as in life.
    let front = TlsFront::open(&lab.server.url).await;
    let source = front.source(lab.home.path(), true);
    let kube = at(&source, &lab.installation, |_| {});
    let mut made = Vec::new();
    for _ in 0..5 {
        let spec = lab.spec();
        let begun = Instant::now();
        let sandbox = greet(&spec, kube.create(&spec).await.unwrap()).await;
        assert_eq!(finish(&sandbox, "true").await.code(), 0);
        made.push(begun.elapsed());
        kube.destroy(&spec.id).await.unwrap();
    }
    let spec = lab.spec();
    let sandbox = greet(&spec, kube.create(&spec).await.unwrap()).await;
    let pod = lab.server.objects("pods")[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let config = source.kubeconfig.clone().unwrap();
    let kubectl = async || {
        let mut words = Command::new("kubectl");
        words
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default());
        words
            .env("HOME", lab.home.path())
            .arg("--kubeconfig")
            .arg(&config);
        words.args(["exec", &pod, "-c", "sandbox", "--", "sh", "-c", "true"]);
        words
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        words.status().await.is_ok_and(|status| status.success())
    };
    let has_kubectl = kubectl().await;
    let (mut ours, mut theirs) = (vec![], vec![]);
    for round in 0..ROUNDS + 3 {
        let begun = Instant::now();
        assert_eq!(finish(&sandbox, "true").await.code(), 0);
        let own = begun.elapsed();
        let begun = Instant::now();
        if has_kubectl {
            assert!(kubectl().await);
        }
        if round >= 3 {
            ours.push(own);
            theirs.push(begun.elapsed());
        }
    }
    let bulk = bulk(&sandbox).await;
    drop(sandbox);
    kube.destroy(&spec.id).await.unwrap();
    println!("{:36} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
    row("from nothing to a first command", &mut made);
    row("sh -c true on the open link", &mut ours);
    if has_kubectl {
        row("kubectl exec, same", &mut theirs);
        println!(
            "ours / kubectl: {:.3} (bound 0.1)",
            millis(ours[ROUNDS / 2]) / millis(theirs[ROUNDS / 2])
        );
    } else {
        println!("SKIP: kubectl is not installed, or speaks no websockets");
    }
    println!("bulk from inside: {:.0} MB/s", bulk);
    lab.close().await;
}

async fn bulk(sandbox: &Sandbox) -> f64 {
    let begun = Instant::now();
    let text = format!("head -c {BULK} /dev/zero");
    assert_eq!(finish(sandbox, &text).await.stdout.total(), BULK as u64);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let megabytes = BULK as f64 / 1e6;
    megabytes / begun.elapsed().as_secs_f64()
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| millis(times[(times.len() * part / 100).min(times.len() - 1)]);
    println!("{name:36} {:8.2} {:8.2} {:8.2}", at(0), at(50), at(95));
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
