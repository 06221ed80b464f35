//! A hostile agent of somebody else's: whatever it says while a session is opened, nobody panics or waits for ever.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use hermetic_acp::{AgentBounds, AgentProgram, AgentSession, PipeInput, PipeStream};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;
use tokio::time::timeout;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be had")
});

fuzz_target!(|bytes: &[u8]| {
    RUNTIME.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (to_us, to_them) = tokio::io::split(ours);
        let (asked, mut said) = tokio::io::split(theirs);
        let hostile = async {
            let mut asked = BufReader::new(asked).lines();
            let Ok(Some(line)) = asked.next_line().await else {
                return;
            };
            let request: Value = serde_json::from_str(&line).expect("we speak JSON");
            let can = json!({"loadSession": true, "promptCapabilities": {"image": true}});
            let hello = json!({"jsonrpc": "2.0", "id": request["id"],
                "result": {"protocolVersion": 1, "agentCapabilities": can}});
            let _ = said.write_all(format!("{hello}\n").as_bytes()).await;
            // Whatever it is asked next, these are its words, and then it is gone.
            let _ = asked.next_line().await;
            let _ = said.write_all(bytes).await;
            let _ = said.shutdown().await;
        };
        let program = AgentProgram {
            name: "agent".to_owned(),
            ..AgentProgram::default()
        };
        let bounds = AgentBounds {
            start: Duration::from_secs(2),
            ..AgentBounds::default()
        };
        let pipes = (PipeStream(to_us), PipeInput(to_them));
        let opened = AgentSession::open(pipes, &program, ("/workspace", Some("earlier")), bounds);
        let both = async { tokio::join!(hostile, opened) };
        let ((), opened) = timeout(Duration::from_secs(10), both)
            .await
            .expect("an agent that is gone ends the wait");
        if let Ok((session, _)) = opened {
            assert!(!session.id().is_empty() && session.id().len() <= 400);
        }
    });
});
