//! What a sandbox costs, next to bubblewrap and `docker run` in the same run.
//!
//! `cargo bench -p hermetic-native --bench cost` prints a table; nothing is asserted, because a
//! busy machine is no failure. `HERMETIC_BENCH_ALIVE` says how many to hold at once. Docker is
//! measured where `HERMETIC_TEST_IMAGE` names an image, as `cargo xtask docker` does.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal"
)]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermetic_native::{EarlyStart, NativeBackend, NativeConfig};
use hermetic_sandbox::{
    Backend, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};
use hermetic_warden::client::Warden;
use hermetic_warden::protocol::RunRequest;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const ROUNDS: usize = 60;
const AT_ONCE: usize = 20;
const DOCKER_ROUNDS: usize = 7;
const GREETING_TIMEOUT: Duration = Duration::from_secs(60);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // On a worker, as a gateway's conversations are.
    let measured = runtime.spawn(measure());
    runtime.block_on(measured).unwrap();
}

async fn measure() {
    let state = tempfile::tempdir().unwrap();
    let installation = InstallationId::random();
    let open = |early| {
        let config = NativeConfig {
            state: state.path().to_owned(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            require: Vec::new(),
            authority: None,
            total: hermetic_native::TotalLimits::default(),
        };
        NativeBackend::open_starting(config, early).unwrap()
    };
    // As a gateway has it, and as somebody has it who creates one sandbox.
    let (native, unprepared) = (open(EarlyStart::Always), open(EarlyStart::Never));
    let ours = side_by_side(&native, &unprepared, &installation).await;
    beside_docker(ours);
    at_once(&native, &installation).await;
    alive(&native, &installation).await;
}

/// Turn by turn, so that whatever else the machine does hits both.
/// Returns our own middle, in milliseconds.
async fn side_by_side(
    native: &NativeBackend,
    unprepared: &NativeBackend,
    installation: &InstallationId,
) -> Option<f64> {
    let (mut ours, mut create, mut theirs, mut plain) = (vec![], vec![], vec![], vec![]);
    let mut others = vec![];
    for round in 0..ROUNDS + 3 {
        let (created, whole) = one_life(native, installation).await;
        let (_, other) = one_life(unprepared, installation).await;
        let bubble = timed(&mut bubblewrap());
        let spawned = timed(&mut Command::new("/bin/true"));
        if round >= 3 {
            ours.push(whole);
            others.push(other);
            create.push(created);
            theirs.extend(bubble);
            plain.extend(spawned);
        }
    }
    println!("{:44} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
    row("plain spawn of true", &mut plain);
    row("bwrap --unshare-all true", &mut theirs);
    row("native: create, greeted", &mut create);
    row("native: create, true, destroyed", &mut ours);
    row("the same, nothing started ahead", &mut others);
    if let (Some(ours), Some(theirs)) = (middle(&ours), middle(&theirs)) {
        println!("native / bwrap: {:.2}", ours / theirs);
    }
    middle(&ours)
}

/// How long until it was greeted, and until it was gone.
async fn one_life(native: &NativeBackend, installation: &InstallationId) -> (Duration, Duration) {
    let begun = Instant::now();
    let spec = spec(installation);
    let warden = greet(native, &spec).await;
    let created = begun.elapsed();
    run_true(&warden).await;
    native.destroy(&spec.id).await.unwrap();
    (created, begun.elapsed())
}

fn beside_docker(ours: Option<f64>) {
    let Ok(image) = std::env::var("HERMETIC_TEST_IMAGE") else {
        return;
    };
    let mut runs: Vec<Duration> = (0..DOCKER_ROUNDS)
        .filter_map(|_| {
            let mut docker = Command::new("docker");
            docker.args(["run", "--rm", "--network", "none", &image, "/bin/true"]);
            timed(&mut docker)
        })
        .collect();
    row("docker run --rm --network none true", &mut runs);
    if let (Some(ours), Some(theirs)) = (ours, middle(&runs)) {
        println!("docker run / native: {:.0}", theirs / ours);
    }
}

async fn at_once(native: &NativeBackend, installation: &InstallationId) {
    let begun = Instant::now();
    let mut made = Vec::new();
    for _ in 0..AT_ONCE {
        let spec = spec(installation);
        made.push((greet(native, &spec).await, spec.id));
    }
    let in_turn = begun.elapsed();
    end(native, made).await;

    let begun = Instant::now();
    let made = many(native, installation, AT_ONCE, AT_ONCE).await;
    let together = begun.elapsed();
    end(native, made).await;
    println!(
        "{AT_ONCE} creations: {:.1} ms in turn, {:.1} ms at once",
        in_turn.as_secs_f64() * 1e3,
        together.as_secs_f64() * 1e3
    );
}

async fn alive(native: &NativeBackend, installation: &InstallationId) {
    let count = std::env::var("HERMETIC_BENCH_ALIVE")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1000);
    let begun = Instant::now();
    let made = many(native, installation, count, 8).await;
    let created = begun.elapsed();
    let begun = Instant::now();
    for (warden, _) in &made {
        run_true(warden).await;
    }
    let answered = begun.elapsed();
    let unique = unique_memory();
    let begun = Instant::now();
    end(native, made).await;
    let destroyed = begun.elapsed();
    let left = native.list().await.unwrap().len();
    println!(
        "{count} alive: created in {:.1} s, each answered in {:.1} s, destroyed in {:.1} s, {left} left; \
         private memory of each: {unique} KiB",
        created.as_secs_f64(),
        answered.as_secs_f64(),
        destroyed.as_secs_f64()
    );
}

async fn many(
    native: &NativeBackend,
    installation: &InstallationId,
    count: usize,
    width: usize,
) -> Vec<(Warden, SandboxId)> {
    let gate = Arc::new(Semaphore::new(width));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (native, spec) = (native.clone(), spec(installation));
        let gate = Arc::clone(&gate);
        tasks.spawn(async move {
            let _turn = gate.acquire_owned().await;
            (greet(&native, &spec).await, spec.id)
        });
    }
    tasks.join_all().await
}

async fn end(native: &NativeBackend, made: Vec<(Warden, SandboxId)>) {
    let mut tasks = JoinSet::new();
    for (_warden, id) in made {
        let native = native.clone();
        tasks.spawn(async move { native.destroy(&id).await.unwrap() });
    }
    tasks.join_all().await;
}

async fn greet(native: &NativeBackend, spec: &SandboxSpec) -> Warden {
    let link = native.create(spec).await.unwrap();
    Warden::greet(link.into_stream(), GREETING_TIMEOUT)
        .await
        .unwrap()
}

async fn run_true(warden: &Warden) {
    let mut running = warden.run(RunRequest::new(["/bin/true"])).await.unwrap();
    while running.next().await.unwrap().is_some() {}
}

fn bubblewrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/usr", "/usr"]);
    for (target, link) in [
        ("usr/bin", "/bin"),
        ("usr/lib", "/lib"),
        ("usr/lib64", "/lib64"),
    ] {
        command.args(["--symlink", target, link]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    command.arg("/bin/true");
    command
}

/// Nothing where the program is not installed.
fn timed(command: &mut Command) -> Option<Duration> {
    let begun = Instant::now();
    let status = command.stdin(Stdio::null()).status().ok()?;
    status.success().then(|| begun.elapsed())
}

fn spec(installation: &InstallationId) -> SandboxSpec {
    SandboxSpec {
        installation: installation.clone(),
        conversation: ConversationKey::new("bench"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
}

/// The mean over all wardens that are our children.
fn unique_memory() -> u64 {
    let own = std::process::id();
    let children = fs::read_dir(format!("/proc/{own}/task"))
        .unwrap()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect::<String>();
    let sizes: Vec<u64> = children
        .split_whitespace()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok())
        .map(|text| {
            text.lines()
                .filter(|line| line.starts_with("Private_"))
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
                .sum()
        })
        .collect();
    sizes.iter().sum::<u64>() / u64::try_from(sizes.len().max(1)).unwrap()
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    if times.is_empty() {
        println!("{name:44} not installed");
        return;
    }
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{name:44} {:8.2} {:8.2} {:8.2}", at(0), at(50), at(95));
}

fn middle(sorted: &[Duration]) -> Option<f64> {
    sorted.get(sorted.len() / 2).map(Duration::as_secs_f64)
}
