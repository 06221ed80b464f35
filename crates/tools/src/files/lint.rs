//! Whether a text that was written can be read as what its name says.
//!
//! JSON is read here; Python, TOML and YAML by the python3 that is inside, which looks at nothing but
//! its stdin. Where it is not there, or does not know the form, nothing is said.

use std::time::Duration;

use hermetic_warden::client::Event;
use hermetic_warden::protocol::{Leftovers, Run, Status, StdinMode};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::desk::Desk;
use super::place::Place;

const CHECK: &str = include_str!("lint.py");
/// Longer ones are data.
const LONGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(5);
const SHOWN_CHARS: usize = 500;

impl Desk<'_> {
    /// `None` where nobody can tell.
    pub(super) async fn lint(&self, place: &Place, text: &str) -> Option<Value> {
        let name = place.name();
        let (_, kind) = name.rsplit_once('.')?;
        if text.len() > LONGEST {
            return None;
        }
        let wrong = match kind {
            "json" => serde_json::from_str::<IgnoredAny>(text)
                .err()
                .map(|error| error.to_string()),
            "py" | "toml" => self.check_inside(kind, text).await?,
            "yaml" | "yml" => self.check_inside("yaml", text).await?,
            _ => return None,
        };
        let (status, output) = match wrong {
            Some(output) => ("error", output),
            None => ("ok", String::new()),
        };
        Some(json!({"status": status, "output": output}))
    }

    async fn check_inside(&self, kind: &str, text: &str) -> Option<Option<String>> {
        let mut run = Run::new(["python3", "-I", "-c", CHECK, kind]);
        run.stdin = StdinMode::Open;
        run.timeout = Some(PATIENCE);
        run.leftovers = Leftovers::End;
        let mut running = self.sandbox.warden().run(run).await.ok()?;
        let stdin = running.stdin();
        let feed = async {
            // One that does not read to the end has found something before.
            if stdin.write(text.as_bytes()).await.is_ok() {
                let _ = stdin.end().await;
            }
            std::future::pending::<()>().await;
        };
        let listen = async {
            let mut said = Vec::new();
            loop {
                match running.next().await.ok()?? {
                    Event::Out(bytes) if said.len() < SHOWN_CHARS * 4 => said.extend(bytes),
                    Event::Ended(ended) => return Some((ended.status, said)),
                    _ => {}
                }
            }
        };
        let (status, said) = tokio::select! {
            heard = listen => heard?,
            () = feed => return None,
        };
        let said = String::from_utf8_lossy(&said);
        match status {
            Status::Exited(0) => Some(None),
            Status::Exited(1) => Some(Some(said.trim().chars().take(SHOWN_CHARS).collect())),
            _ => None,
        }
    }
}
