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
use hermetic_kubernetes::KubernetesBackend;
use hermetic_sandbox::{Backend, Sandbox};
use hermetic_types::HolderEpoch;
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
    many(&lab, &kube).await;
    lab.close().await;
}

/// Each told as soon as it is known: the last takes more than a minute.
async fn many(lab: &Lab, kube: &KubernetesBackend) {
    let mut waited = first_commands_of_those_that_waited(lab, kube).await;
    row("first command in one that waited", &mut waited);
    let mut alone = ends_of_those_left_alone(lab, kube).await;
    row("from its idle end to nothing left", &mut alone);
    let mut back = links_after_a_restart(lab, kube).await;
    row("a link asked for after a restart", &mut back);
    let quiet = requests_of_a_quiet_minute(lab, kube).await;
    println!("requests in a minute for {QUIET} sandboxes: {quiet}");
}

/// As from the pool: made and greeted before anybody wants it, and told whose it is.
async fn first_commands_of_those_that_waited(lab: &Lab, kube: &KubernetesBackend) -> Vec<Duration> {
    let mut took = Vec::new();
    for epoch in 1..=10 {
        let spec = lab.spec();
        let sandbox = greet(&spec, kube.create(&spec).await.unwrap()).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let begun = Instant::now();
        sandbox.hold(HolderEpoch::new(epoch)).await.unwrap();
        assert_eq!(finish(&sandbox, "true").await.code(), 0);
        took.push(begun.elapsed());
        kube.destroy(&spec.id).await.unwrap();
    }
    took
}

/// No gateway is there any more.
async fn ends_of_those_left_alone(lab: &Lab, kube: &KubernetesBackend) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..3 {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(1);
        let sandbox = greet(&spec, kube.create(&spec).await.unwrap()).await;
        sandbox.warden().close();
        drop(sandbox);
        let end = Instant::now() + spec.lifetime;
        let name = format!("hermetic-{}", spec.id);
        let is_left = || {
            let jobs = lab.server.objects("jobs");
            jobs.iter()
                .any(|job| job["metadata"]["name"] == name.as_str())
        };
        while is_left() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        took.push(end.elapsed());
    }
    took
}

const RESTARTED: usize = 20;

async fn links_after_a_restart(lab: &Lab, kube: &KubernetesBackend) -> Vec<Duration> {
    let mut specs = Vec::new();
    let mut commands = Vec::new();
    for _ in 0..RESTARTED {
        let spec = lab.spec();
        let link = kube.create(&spec).await.unwrap();
        let sandbox = lab::distant(kube, greet(&spec, link).await);
        specs.push(spec);
        commands.push(tokio::spawn(async move {
            // Heard again over the new link, which is when it counts as back.
            let text = "for n in $(seq 1000); do echo $n; sleep 0.02; done";
            assert_eq!(finish(&sandbox, text).await.code(), 0);
        }));
    }
    let execs = || {
        lab.server
            .count("GET /api/v1/namespaces/boxes/pods/hermetic-")
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    lab.server.be_away(true);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = execs();
    lab.server.be_away(false);
    let begun = Instant::now();
    let mut back = Vec::new();
    while back.len() < RESTARTED {
        let now = execs() - before;
        back.resize(now.min(RESTARTED), begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for command in commands {
        command.await.unwrap();
    }
    for spec in &specs {
        kube.destroy(&spec.id).await.unwrap();
    }
    back
}

const QUIET: usize = 40;

/// What a gateway asks the cluster while its sandboxes only stand there: their links are open.
async fn requests_of_a_quiet_minute(lab: &Lab, kube: &KubernetesBackend) -> usize {
    let mut sandboxes = Vec::new();
    for _ in 0..QUIET {
        let spec = lab.spec();
        let link = kube.create(&spec).await.unwrap();
        sandboxes.push((greet(&spec, link).await, spec));
    }
    let before = lab.server.habits().asked.len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = lab.server.habits().asked.len() - before;
    for (sandbox, spec) in sandboxes {
        assert!(sandbox.is_reachable(), "its link held");
        kube.destroy(&spec.id).await.unwrap();
    }
    asked
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
