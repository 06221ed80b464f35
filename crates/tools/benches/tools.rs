//! What the tools cost on top of the sandbox they act in, in one run.
//!
//! `cargo bench -p hermetic-tools` prints a table; nothing is asserted, because a busy machine is no
//! failure. Rounds alternate, so that whatever else the machine does hits both sides.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a program for a terminal"
)]

#[path = "../tests/places.rs"]
mod places;
#[path = "../tests/room.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod room;

use std::time::{Duration, Instant};

use hermetic_policy::{Cleared, JudgementContext, Policy, PolicyRules, Verdict};
use hermetic_tools::{CommandRequest, NoOneToAsk};
use hermetic_types::{BackendDescription, BackendKind, Command};
use hermetic_warden::protocol::{PathAt, ReadRequest, WriteRequest};
use room::{Lab, Wishes};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const COMMANDS: usize = 500;
const SCRIPTS: usize = 60;
const CALLS: u32 = 500;
const FILE: usize = 100_000_000;
const FILE_ROUNDS: usize = 7;
/// Not counted: the first of everything is slower.
const WARM: usize = 5;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut wishes = Wishes::default();
        wishes.code.most_calls = CALLS + 1;
        let Some(lab) = Lab::open_with("tools", wishes).await else {
            return;
        };
        commands(&lab).await;
        scripts(&lab).await;
        calls(&lab).await;
        files(&lab).await;
        lab.close().await;
    });
}

async fn commands(lab: &Lab) {
    let (mut sandbox, mut tool) = (Vec::new(), Vec::new());
    for _ in 0..COMMANDS + WARM {
        sandbox.push(bare(lab, CommandRequest::shell("true")).await);
        let begun = Instant::now();
        lab.terminal("true").await;
        tool.push(begun.elapsed());
    }
    let (sandbox, tool) = (Spread::of(sandbox), Spread::of(tool));
    println!("terminal `true`, the sandbox itself:   {sandbox}");
    println!("terminal `true`, through the tool:     {tool}");
    println!(
        "    on top, 95th percentile:           {:.3} ms (bound 1 ms)",
        tool.most - sandbox.most
    );
}

async fn scripts(lab: &Lab) {
    let (mut plain, mut script) = (Vec::new(), Vec::new());
    for _ in 0..SCRIPTS + WARM {
        let pass = Command::words(["python3", "-c", "pass"]);
        let context = JudgementContext::new(
            BackendDescription::sealed(BackendKind::Native),
            "/workspace",
            "/root",
        );
        let Verdict::Run(pass) = Policy::new(PolicyRules::default()).judge(pass, &context) else {
            panic!("a sandbox without rules takes any command");
        };
        plain.push(run(lab, pass).await);
        let begun = Instant::now();
        lab.python("pass").await;
        script.push(begun.elapsed());
    }
    let (plain, script) = (Spread::of(plain), Spread::of(script));
    println!("`python3 -c pass` in the same sandbox: {plain}");
    println!("execute_code, an empty script:         {script}");
    println!(
        "    ratio of medians:                  {:.2} (bound 1.5)",
        script.middle / plain.middle
    );
}

/// Measured by the script itself: from the call to its parsed result.
async fn calls(lab: &Lab) {
    let code = format!(
        "import time\nfrom hermes_tools import terminal, read_file\n\
         def spread(call):\n    spans = []\n    for _ in range({half}):\n        \
         begun = time.perf_counter(); call(); spans.append((time.perf_counter() - begun) * 1000)\n    \
         spans.sort()\n    print(f'{{spans[len(spans) // 2]:.3f}} {{spans[len(spans) * 95 // 100]:.3f}}')\n\
         terminal('echo text > /tmp/a-file')\n\
         spread(lambda: terminal('true'))\nspread(lambda: read_file('/tmp/a-file'))",
        half = CALLS / 2
    );
    let ran = lab.call("execute_code", json!({"code": code})).await;
    let said = ran["output"].as_str().unwrap();
    for (name, line) in ["terminal `true`", "read_file"].iter().zip(said.lines()) {
        let (middle, most) = line.split_once(' ').unwrap();
        println!(
            "{name:<15} called from a script:   median {middle} ms, p95 {most} ms (bound 1 ms)"
        );
    }
}

/// A file of 100 MB through the tools, against the warden's file channel alone. A tool writes no more
/// than a call can carry, so the writing is done in turn by both.
async fn files(lab: &Lab) {
    let piece = [b'x'; 99];
    let text = [&piece[..], b"\n"].concat().repeat(FILE / 100);
    let content = String::from_utf8(text.clone()).unwrap();
    let (mut tool_in, mut tool_out, mut bare_in, mut bare_out) = (vec![], vec![], vec![], vec![]);
    for round in 0..FILE_ROUNDS {
        let path = format!("/workspace/file-{round}");
        let write = json!({"path": path, "content": content});
        let begun = Instant::now();
        let wrote = lab.call("write_file", write).await;
        tool_in.push(begun.elapsed());
        assert_eq!(wrote["bytes_written"], FILE, "{wrote}");
        let begun = Instant::now();
        let read = lab
            .call("read_file", json!({"path": path, "offset": FILE / 100}))
            .await;
        tool_out.push(begun.elapsed());
        assert_eq!(read["total_lines"], FILE / 100, "{read}");

        let sandbox = lab.room.sandbox();
        let at = || PathAt::anywhere(path.as_str());
        let begun = Instant::now();
        let mut file = sandbox
            .warden()
            .write_file(WriteRequest::new(at()))
            .await
            .unwrap();
        file.write(&text).await.unwrap();
        file.finish().await.unwrap();
        bare_in.push(begun.elapsed());
        let begun = Instant::now();
        let mut file = sandbox
            .warden()
            .read_file(ReadRequest::whole(at()))
            .await
            .unwrap();
        while file.next().await.unwrap().is_some() {}
        bare_out.push(begun.elapsed());
        lab.says(&format!("rm {path}")).await;
    }
    for (name, tool, bare) in [
        ("write_file", tool_in, bare_in),
        ("read_file", tool_out, bare_out),
    ] {
        println!(
            "{name:<10} of 100 MB: {:.0} MB/s; the warden's channel alone {:.0} MB/s (bound 300 MB/s)",
            rate(tool),
            rate(bare)
        );
    }
}

/// Of the median.
fn rate(mut spans: Vec<Duration>) -> f64 {
    spans.sort();
    let megabytes = f64::from(u32::try_from(FILE / 1_000_000).unwrap());
    megabytes / spans[spans.len() / 2].as_secs_f64()
}

/// Judged, and run in the sandbox without a tool around it.
async fn bare(lab: &Lab, request: CommandRequest) -> Duration {
    let stop = CancellationToken::new();
    let cleared = lab.kit.terminal.clear(request, &NoOneToAsk, &stop).await;
    run(lab, cleared.unwrap()).await
}

async fn run(lab: &Lab, cleared: Cleared) -> Duration {
    let sandbox = lab.room.sandbox();
    let stop = CancellationToken::new();
    let begun = Instant::now();
    sandbox.run(cleared, 300_000, &stop).await.unwrap();
    begun.elapsed()
}

/// In milliseconds.
struct Spread {
    middle: f64,
    most: f64,
}

impl Spread {
    fn of(mut spans: Vec<Duration>) -> Self {
        spans.drain(..WARM);
        spans.sort();
        let at = |share: usize| spans[spans.len() * share / 100].as_secs_f64() * 1000.0;
        Self {
            middle: at(50),
            most: at(95),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "median {:.3} ms, p95 {:.3} ms", self.middle, self.most)
    }
}
