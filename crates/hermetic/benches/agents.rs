//! What a turn of somebody else's agent costs beyond the agent itself, and its start.
//!
//! `cargo bench -p hermetic --bench agents`
//!
//! The peer in the same run is the same program in the same sandbox, driven by hand by a few lines that speak the
//! protocol over its standard streams: from a prompt to its end, and from the start of the program to the end of
//! the first prompt. The gateway's time is from a message at a stand-in of Telegram to the answer there.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hermetic_testkit::acp::agent_command;
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use tempfile::TempDir;

type Done<T> = Result<T, Box<dyn Error>>;

const WARM: usize = 200;
const COLD: usize = 15;
/// What a real program takes to start, roughly: OpenCode a second or two, Gemini CLI ten.
const SLOW_START: &str = "--start-ms=2000";

/// Drives the program named by its arguments: so many prompts of one session, or one each of so many starts.
const BY_HAND: &str = r#"
import json, subprocess, sys, time
warm, cold, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

class Agent:
    def __init__(self):
        self.began = time.monotonic()
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = 0
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities":
            {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}})
        self.session = self.call("session/new", {"cwd": "/workspace", "mcpServers": []})["sessionId"]

    def call(self, method, params):
        self.calls += 1
        message = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()
        while True:
            message = json.loads(self.child.stdout.readline())
            if message.get("id") == self.calls:
                return message["result"]

    def prompt(self):
        self.call("session/prompt", {"sessionId": self.session,
            "prompt": [{"type": "text", "text": "say a short answer"}]})

    def end(self):
        self.child.kill()
        self.child.wait()

agent = Agent()
for _ in range(warm + 1):
    began = time.monotonic()
    agent.prompt()
    print("warm", time.monotonic() - began)
agent.end()
for _ in range(cold):
    agent = Agent()
    agent.prompt()
    print("cold", time.monotonic() - agent.began)
    agent.end()
"#;

#[tokio::main]
async fn main() -> Done<()> {
    if !Command::new(env!("CARGO_BIN_EXE_hermetic"))
        .args(["doctor", "--backend", "native"])
        .stdout(Stdio::null())
        .status()?
        .success()
    {
        println!("SKIP: no native sandbox can be had here");
        return Ok(());
    }
    measure("a small program", &[], (WARM, COLD)).await?;
    measure(
        "one that takes two seconds to start",
        &[SLOW_START],
        (0, COLD),
    )
    .await
}

async fn measure(what: &str, options: &[&str], (warm, cold): (usize, usize)) -> Done<()> {
    let stage = Stage::new(options).await?;
    let _gateway = stage.start()?;
    // The first one makes the sandbox.
    stage.ask("say a short answer").await;
    if warm > 0 {
        let mut times = Vec::new();
        for _ in 0..warm {
            times.push(stage.ask("say a short answer").await);
        }
        let (whole, hand) = (median(times), stage.by_hand((warm, 0))?);
        println!(
            "{what}, a warm turn: {whole:?}, by hand {hand:?}: {:?} of our own",
            whole.saturating_sub(hand)
        );
    }
    let mut times = Vec::new();
    for _ in 0..cold {
        // Ends the agent and its session; the sandbox stays.
        stage.ask("/new").await;
        times.push(stage.ask("say a short answer").await);
    }
    let (whole, hand) = (median(times), stage.by_hand((0, cold))?);
    println!(
        "{what}, a cold start to the first answer: {whole:?}, by hand {hand:?}: {:.3} times, {:?} of our own",
        whole.as_secs_f64() / hand.as_secs_f64(),
        whole.saturating_sub(hand)
    );
    Ok(())
}

struct Stage {
    telegram: TelegramServer,
    words: Vec<String>,
    home: TempDir,
}

struct Gateway(Child);

impl Stage {
    async fn new(options: &[&str]) -> Done<Self> {
        let telegram = TelegramServer::start().await?;
        let words = agent_command(options);
        let home = tempfile::tempdir()?;
        let command = serde_json::to_string(&words)?;
        let config = format!(
            "model: {{default: m, base_url: 'http://127.0.0.1:9'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n\
             agent: {{acp: {{name: bench, command: {command}}}}}\n",
            telegram.url()
        );
        fs::write(home.path().join("config.yaml"), config)?;
        let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOW_ALL_USERS=true\n");
        let path = home.path().join(".env");
        fs::write(&path, env)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            telegram,
            words,
            home,
        })
    }

    fn start(&self) -> Done<Gateway> {
        let mut child = self
            .command(&["gateway", "run"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = child.stderr.take().ok_or("no stderr")?;
        let mut gateway = Gateway(child);
        let mut lines = BufReader::new(said);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.contains("ready") {
                // Read on, or it would wait for us.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Ok(gateway);
            }
            line.clear();
        }
        gateway.0.kill()?;
        Err("the gateway did not start".into())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermetic"));
        command
            .args(arguments)
            .env("HERMES_HOME", self.home.path())
            .env("HERMETIC_DASHBOARD_PORT", "0")
            .stdin(Stdio::null());
        command
    }

    /// Says something; how long the reply took.
    async fn ask(&self, words: &str) -> Duration {
        let before = self.telegram.calls("sendMessage").len();
        let begun = Instant::now();
        self.telegram.says(7, words);
        self.telegram.wait_for("sendMessage", before + 1).await;
        begun.elapsed()
    }

    /// The median of the same program in the same sandbox.
    fn by_hand(&self, (warm, cold): (usize, usize)) -> Done<Duration> {
        let (warms, colds) = (warm.to_string(), cold.to_string());
        let mut command = self.command(&["sandbox", "exec", "telegram:dm:7", "--"]);
        command.args(["python3", "-c", BY_HAND, &warms, &colds]);
        let ran = command.args(&self.words).output()?;
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let wanted = if warm > 0 { "warm " } else { "cold " };
        let times = said.lines().filter_map(|line| line.strip_prefix(wanted));
        // The first prompt of a session is none of the warm ones.
        let times = times.skip(usize::from(warm > 0));
        let times: Vec<_> = times
            .filter_map(|seconds| seconds.parse().ok().map(Duration::from_secs_f64))
            .collect();
        match times.is_empty() {
            true => Err(String::from_utf8_lossy(&ran.stderr).into_owned().into()),
            false => Ok(median(times)),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let listed = self.command(&["sandbox", "list", "--json"]).output();
        let rows = listed
            .ok()
            .and_then(|listed| serde_json::from_slice(&listed.stdout).ok());
        let rows: Vec<serde_json::Value> = rows.unwrap_or_default();
        for id in rows.iter().filter_map(|row| row["id"].as_str()) {
            let _ = self.command(&["sandbox", "destroy", id]).output();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
