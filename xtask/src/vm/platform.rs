//! The chat platform that the machines' gateways serve. It runs on this side, because it has to
//! outlive a power cut and to remember what it was told.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use super::children::with_us;
use super::guest::VmGuest;
use super::payload::GuestPayload;
use crate::failure::ChoreFailure;
use crate::program;

/// `crates/testkit/src/bin/traffic.rs`, which says what the lines mean.
#[derive(Debug)]
pub(crate) struct TrafficServer {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    telegram: u16,
    model: u16,
    token: String,
    tunnel: Option<Child>,
}

/// Where a guest finds them.
const TELEGRAM_INSIDE: u16 = 18_080;
const MODEL_INSIDE: u16 = 18_081;

impl TrafficServer {
    pub(crate) fn start(payload: &GuestPayload) -> Result<Self, ChoreFailure> {
        let mut command = with_us(&payload.traffic().display().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.spawn().map_err(|source| ChoreFailure::Start {
            line: program::line(&command),
            source,
        });
        let mut child = started?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(mute());
        };
        let mut platform = Self {
            child,
            asks,
            answers: BufReader::new(answers),
            telegram: 0,
            model: 0,
            token: String::new(),
            tunnel: None,
        };
        let ready = platform.line()?;
        let mut words = ready.split(' ').skip(1);
        let mut port = || {
            let url = words.next()?.trim_end_matches("/v1");
            url.rsplit(':').next()?.parse().ok()
        };
        platform.telegram = port().ok_or_else(mute)?;
        platform.model = port().ok_or_else(mute)?;
        platform.token = words.next().unwrap_or_default().to_owned();
        Ok(platform)
    }

    /// The files of a home whose gateway serves this platform.
    pub(crate) fn home(&self, folder: &str) -> String {
        format!(
            "mkdir -p {folder}
cat >{folder}/config.yaml <<'END'
model: {{default: scripted, base_url: 'http://127.0.0.1:{MODEL_INSIDE}/v1'}}
platforms: {{telegram: {{base_url: 'http://127.0.0.1:{TELEGRAM_INSIDE}'}}}}
display: {{busy_input_mode: queue}}
terminal: {{container_memory: 256, container_pids: 64}}
END
printf 'TELEGRAM_BOT_TOKEN={}\\nTELEGRAM_ALLOW_ALL_USERS=true\\n' >{folder}/.env
chmod 600 {folder}/.env
",
            self.token
        )
    }

    /// A script that ends when the platform can be reached.
    pub(crate) fn wait_inside() -> String {
        format!(
            "for i in $(seq 300); do (exec 3<>/dev/tcp/127.0.0.1/{TELEGRAM_INSIDE}) 2>/dev/null \
             && exit 0; sleep 0.2; done; exit 1"
        )
    }

    /// Makes the platform reachable from the guest, again after each boot.
    pub(crate) fn connect(&mut self, guest: &VmGuest) -> Result<(), ChoreFailure> {
        self.disconnect();
        let ports = [(TELEGRAM_INSIDE, self.telegram), (MODEL_INSIDE, self.model)];
        self.tunnel = Some(guest.tunnel(&ports)?);
        Ok(())
    }

    pub(crate) fn disconnect(&mut self) {
        if let Some(mut tunnel) = self.tunnel.take() {
            // It may have ended by itself, with the machine.
            drop(tunnel.kill());
            drop(tunnel.wait());
        }
    }

    pub(crate) fn say(&mut self, user: u32, text: &str) -> Result<(), ChoreFailure> {
        self.ask(&format!("say {user} {text}")).map(drop)
    }

    /// The first reply with this text in it; an error is what came instead.
    pub(crate) fn hear(
        &mut self,
        user: u32,
        text: &str,
        at_most: Duration,
    ) -> Result<Result<String, String>, ChoreFailure> {
        let answer = self.ask(&format!("await {user} {} {text}", at_most.as_secs()))?;
        Ok(match answer.split_once(' ') {
            Some(("heard", reply)) => Ok(reply.to_owned()),
            _ => Err(format!("no reply with {text:?}, but {answer:?}")),
        })
    }

    /// Any other line of the language; see there.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String, ChoreFailure> {
        writeln!(self.asks, "{line}").map_err(ChoreFailure::file("tell the platform something"))?;
        self.line()
    }

    fn line(&mut self) -> Result<String, ChoreFailure> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        match read.map_err(ChoreFailure::file("listen to the platform"))? {
            0 => Err(mute()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for TrafficServer {
    fn drop(&mut self) {
        self.disconnect();
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn mute() -> ChoreFailure {
    ChoreFailure::Lacking {
        what: "the stand-in for a chat platform ended".to_owned(),
        remedy: "start `target/debug/traffic` by hand to see why".to_owned(),
    }
}
