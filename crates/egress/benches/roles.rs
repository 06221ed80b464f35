//! The other processes of a bench: this same program, told by its environment what to be.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermetic_egress::{
    CompiledRules, ConversationEgress, EgressEntry, EgressLimits, EgressRecorder, Proxy, RulesText,
    SystemResolver, serve,
};
use hermetic_listen::{BoundedListener, ConnectionBounds};
use hermetic_types::ConversationKey;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const ROLE: &str = "EGRESS_BENCH_ROLE";
const RULES: &str = "EGRESS_BENCH_RULES";

pub(crate) struct Child {
    process: std::process::Child,
    pub(crate) port: u16,
}

impl Child {
    pub(crate) fn start(role: &str, rules: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .env(ROLE, role)
            .env(RULES, rules.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            process,
            port: line.trim().parse().unwrap(),
        }
    }

    /// Resident memory in kilobytes.
    pub(crate) fn memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Closing its standard input tells it to go; the kill is for one that does not listen.
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Plays the role the environment names, if any.
pub(crate) fn play() -> bool {
    let Ok(role) = std::env::var(ROLE) else {
        return false;
    };
    std::thread::spawn(|| {
        // The parent holds the other end: when it is gone, so are we.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        match role.as_str() {
            "proxy" => proxy(listener).await,
            _ => origin(listener).await,
        }
    });
    true
}

struct Nowhere;

impl EgressRecorder for Nowhere {
    fn write(&self, _: &EgressEntry) {}
}

async fn proxy(listener: TcpListener) {
    let limits = EgressLimits {
        connections: 100_000,
        head_time: Duration::from_secs(120),
        ..EgressLimits::default()
    };
    let rules = std::env::var(RULES).unwrap_or_default();
    let rules = CompiledRules::compile(&RulesText::allowing(rules.lines())).unwrap();
    let proxy = Proxy::new(
        limits.clone(),
        Arc::new(SystemResolver::default()),
        Arc::new(Nowhere),
    );
    let conversation =
        ConversationEgress::new(ConversationKey::new("bench"), rules, Vec::new(), &limits);
    serve(
        BoundedListener::new(listener, ConnectionBounds::of(100_000)),
        proxy,
        conversation,
        CancellationToken::new(),
        Duration::ZERO,
    )
    .await;
}

/// Speaks a protocol of one byte: `p` is answered by 64 bytes, `b` by an endless stream, anything else is
/// sent back.
async fn origin(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) {
    let mut small = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut small).await {
        let written = match small[0] {
            b'p' => stream.write_all(&[b'x'; 64]).await,
            b'b' => {
                let block = vec![b'x'; 256 * 1024];
                while stream.write_all(&block).await.is_ok() {}
                return;
            }
            _ => stream.write_all(&small[..read]).await,
        };
        if written.is_err() {
            return;
        }
    }
}
