//! What a command costs through the warden, next to what it costs without, in the same run.
//!
//! `cargo bench -p hermetic-warden`. Figures are medians; nothing is asserted.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench prints its figures and stops at the first surprise"
)]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hermetic_warden::client::{RunEvent, RunningCommand, Warden};
use hermetic_warden::protocol::{PathAt, ReadRequest, RunRequest, ShellRequest, WriteRequest};
use tokio::net::UnixStream;

const ROUNDS: usize = 1000;
const BULK: u64 = 2 << 30;

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("warden");
    fs::write(&program, hermetic_embedded::WARDEN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("socket");
    let child = Command::new(&program)
        .args(["serve", "--listen"])
        .arg(&socket)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .spawn()
        .unwrap();
    let program = Program(child);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(folder.path(), &socket, program.0.id()));
}

async fn measure(folder: &Path, socket: &Path, pid: u32) {
    let stream = loop {
        if let Ok(stream) = UnixStream::connect(socket).await {
            break stream;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    // It lets go of what only its start needed after a second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    println!(
        "{:<44}{:>14}",
        "idle warden, resident",
        format!("{} KiB", rss_kib(pid))
    );
    let warden = Warden::greet(stream, Duration::from_secs(5)).await.unwrap();

    let plain = median((0..ROUNDS).map(|_| {
        let begun = Instant::now();
        Command::new("/bin/true").status().unwrap();
        begun.elapsed()
    }));
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        finish(warden.run(RunRequest::new(["/bin/true"])).await.unwrap()).await;
        times.push(begun.elapsed());
    }
    row_time("posix_spawn of true, plain", plain);
    let ours = median(times.into_iter());
    row_time("one-shot true, over the stream", ours);
    println!(
        "{:<44}{:>14.2}",
        "  times plain",
        ours.as_secs_f64() / plain.as_secs_f64()
    );

    finish(warden.shell(ShellRequest::new("main", ":")).await.unwrap()).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        finish(warden.shell(ShellRequest::new("main", ":")).await.unwrap()).await;
        times.push(begun.elapsed());
    }
    row_time("persistent shell, builtin", median(times.into_iter()));

    let producer = format!("head -c {BULK} /dev/zero");
    row_rate("plain pipe", plain_pipe(&producer));
    let begun = Instant::now();
    let bytes = finish(
        warden
            .run(RunRequest::new(["sh", "-c", &producer]))
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(bytes, BULK);
    row_rate("output, over the stream", begun.elapsed());

    let at = PathAt::anywhere(folder.join("bulk"));
    let piece = vec![7; 1 << 20];
    let begun = Instant::now();
    let mut file = warden
        .write_file(WriteRequest::new(at.clone()))
        .await
        .unwrap();
    for _ in 0..256 {
        file.write(&piece).await.unwrap();
    }
    file.finish().await.unwrap();
    println!(
        "{:<44}{:>9.0} MB/s",
        "write a file of 256 MiB",
        rate(256 << 20, begun.elapsed())
    );
    let begun = Instant::now();
    let mut file = warden.read_file(ReadRequest::whole(at)).await.unwrap();
    while file.next().await.unwrap().is_some() {}
    println!(
        "{:<44}{:>9.0} MB/s",
        "read it",
        rate(256 << 20, begun.elapsed())
    );
    println!(
        "{:<44}{:>14}",
        "the warden afterwards, resident",
        format!("{} KiB", rss_kib(pid))
    );
}

async fn finish(mut running: RunningCommand) -> u64 {
    let mut bytes = 0;
    while let Some(event) = running.next().await.unwrap() {
        if let RunEvent::Out(chunk) = event {
            bytes += chunk.len() as u64;
        }
    }
    bytes
}

fn plain_pipe(producer: &str) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", producer])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut buffer = vec![0; 128 << 10];
    while out.read(&mut buffer).unwrap() > 0 {}
    child.wait().unwrap();
    begun.elapsed()
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

fn row_time(what: &str, time: Duration) {
    println!("{what:<44}{:>11.0} µs", time.as_secs_f64() * 1e6);
}

fn row_rate(what: &str, time: Duration) {
    println!("{what:<44}{:>9.0} MB/s", rate(BULK, time));
}

fn rss_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
