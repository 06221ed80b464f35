//! The host's end of the tool socket. Its bytes come from the sandbox and are hostile: every line is
//! bounded, every one has to know the token, and a script that floods only waits longer.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_warden::client::{InsideListener, RelayStream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::script_folder::ScriptFolder;
use crate::{ConversationTools, TerminalTool};

/// One request, as long as a file that a script writes.
const LONGEST_CALL: u64 = 8 << 20;
/// Connections in the life of one script.
const MOST_SCRIPT_CONNECTIONS: u32 = 1000;
/// Before what is over a limit is answered.
const OVER_LIMIT_PAUSE: Duration = Duration::from_millis(50);

/// What only makes sense outside of a script.
const TERMINAL_ONLY_OUTSIDE: [&str; 4] =
    ["background", "pty", "notify_on_complete", "watch_patterns"];

pub(super) struct ScriptCalls<'a> {
    toolbox: &'a ConversationTools<'a>,
    place: &'a ScriptFolder,
    tools: &'a [&'static str],
    most: u32,
    stop: &'a CancellationToken,
    made: AtomicU32,
    /// The conversation's shell runs one command at a time, and threads call at once.
    shell: Mutex<()>,
}

#[derive(Deserialize)]
struct ScriptCall {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    token: String,
}

/// What becomes of a connection after an answer.
enum ConnectionNext {
    GoOn(Value),
    Close(Value),
}

impl<'a> ScriptCalls<'a> {
    pub(super) fn new(
        toolbox: &'a ConversationTools<'a>,
        place: &'a ScriptFolder,
        tools: &'a [&'static str],
        most: u32,
        stop: &'a CancellationToken,
    ) -> Self {
        Self {
            toolbox,
            place,
            tools,
            most,
            stop,
            made: AtomicU32::new(0),
            shell: Mutex::new(()),
        }
    }

    /// How many tools were called.
    pub(super) fn made(&self) -> u32 {
        self.made.load(Ordering::Relaxed).min(self.most)
    }

    /// Until it is dropped, and every call with it.
    pub(super) async fn serve(&self, listener: &mut InsideListener) -> Infallible {
        let mut open = FuturesUnordered::new();
        let mut accepted = 0;
        loop {
            tokio::select! {
                relay = listener.accept() => match relay {
                    Some(relay) if accepted < MOST_SCRIPT_CONNECTIONS => {
                        accepted += 1;
                        open.push(self.converse(relay));
                    }
                    // Too many: it is closed at once.
                    Some(_) => {}
                    // The link is gone, and with it the script.
                    None => return std::future::pending().await,
                },
                // A connection that fails concerns nobody but its script.
                Some(_) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    async fn converse(&self, relay: RelayStream) -> io::Result<()> {
        let mut relay = BufReader::new(relay);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut relay)
                // One more than is taken tells that a line is too long.
                .take(LONGEST_CALL + 1)
                .read_until(b'\n', &mut line)
                .await?;
            if read == 0 {
                return Ok(());
            }
            let after = if line.ends_with(b"\n") {
                self.answer(&line).await
            } else {
                ConnectionNext::Close(json!({
                    "error": format!("a request is longer than {LONGEST_CALL} bytes"),
                }))
            };
            let (answer, go_on) = match after {
                ConnectionNext::GoOn(answer) => (answer, true),
                ConnectionNext::Close(answer) => (answer, false),
            };
            let mut text = answer.to_string();
            text.push('\n');
            relay.get_mut().write_all(text.as_bytes()).await?;
            if !go_on {
                return relay.get_mut().shutdown().await;
            }
        }
    }

    async fn answer(&self, line: &[u8]) -> ConnectionNext {
        let Ok(asked) = serde_json::from_slice::<ScriptCall>(line) else {
            return ConnectionNext::Close(json!({"error": "not a request"}));
        };
        let token = self.place.token().as_bytes();
        // In constant time, so that nobody who can connect finds the token out letter by letter.
        if !bool::from(asked.token.as_bytes().ct_eq(token)) {
            tracing::warn!(conversation = %self.toolbox.conversation(), "a wrong token at the tool socket");
            return ConnectionNext::Close(json!({"error": "the token is not this run's"}));
        }
        ConnectionNext::GoOn(self.call(asked).await)
    }

    async fn call(&self, asked: ScriptCall) -> Value {
        let ScriptCall { tool, mut args, .. } = asked;
        if !self.tools.contains(&tool.as_str()) {
            let known = self.tools.join(", ");
            return json!({"error": format!("no tool {tool:?} in scripts; there are {known}")});
        }
        if self.made.fetch_add(1, Ordering::Relaxed) >= self.most {
            // Back to the bound, or a script that goes on asking would count it round to zero.
            self.made.store(self.most, Ordering::Relaxed);
            tokio::time::sleep(OVER_LIMIT_PAUSE).await;
            let most = self.most;
            return json!({"error": format!("a script may call tools {most} times; that many were made")});
        }
        let mut turn = None;
        if tool == TerminalTool::NAME {
            for name in TERMINAL_ONLY_OUTSIDE {
                args.remove(name);
            }
            turn = Some(self.shell.lock().await);
        }
        // Whoever listens hears the script: what its calls write would fall into the middle of its lines.
        let toolbox = self.toolbox.heard_by(None);
        let answered = toolbox.call(&tool, &args, self.stop).await;
        drop(turn);
        answered.map_or_else(
            || json!({"error": "no such tool"}),
            |answered| answered.json.into_inner(),
        )
    }
}
