//! PyPI `pywa`: a second receiver of what WhatsApp posts.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::install;
use crate::whatsapp::{APP_SECRET, PHONE_NUMBER_ID, TOKEN, VERIFY_TOKEN};

const NAME: &str = "pywa";
const VERSION: &str = "4.5.0";

const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// Whatever pywa makes of a notification is printed, a line for each.
const SCRIPT: &str = r#"
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse
from pywa import WhatsApp

phone_id, token, app_secret, verify_token = sys.argv[1:5]
wa = WhatsApp(phone_id=phone_id, token=token, server=None, verify_token=verify_token,
              app_secret=app_secret, validate_updates=True, skip_duplicate_updates=True)

def say(**what):
    print(json.dumps(what), flush=True)

@wa.on_message()
def on_message(_, m):
    user = m.from_user
    say(kind="message", id=m.id, user=user.bsuid, number=user.wa_id, name=user.name, text=m.text)

@wa.on_callback_button()
def on_button(_, b):
    say(kind="button", user=b.from_user.bsuid, data=b.data, of=b.reply_to_message.id)

@wa.on_message_status()
def on_status(_, s):
    say(kind="status", status=s.status.value, mark=s.tracker, error=s.error.code if s.error else None)

class Receiver(BaseHTTPRequestHandler):
    def answer(self, body, status):
        body = (body or "").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        part = lambda name: query.get(name, [None])[0]
        self.answer(*wa.webhook_challenge_handler(vt=part("hub.verify_token"), ch=part("hub.challenge")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        refused = wa.webhook_update_validator(body, self.headers.get("X-Hub-Signature-256"))
        self.answer(*(refused or wa.webhook_update_handler(body)))

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Receiver)
say(kind="ready", port=server.server_port)
server.serve_forever()
"#;

/// A webhook that pywa answers; it ends when dropped.
#[derive(Debug)]
pub struct PywaReceiver {
    port: u64,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl PywaReceiver {
    /// An error says why not.
    pub async fn start() -> Result<Self, String> {
        let packages = install(NAME, VERSION, NAME).await?;
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT])
            .args([PHONE_NUMBER_ID, TOKEN, APP_SECRET, VERIFY_TOKEN])
            .env("PYTHONPATH", packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("python3 does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut receiver = Self {
            port: 0,
            lines: BufReader::new(stdout).lines(),
            _child: child,
        };
        let ready = receiver.next().await?;
        receiver.port = ready["port"].as_u64().ok_or("it named no port")?;
        Ok(receiver)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// What pywa told next.
    pub async fn next(&mut self) -> Result<Value, String> {
        let line = timeout(LINE_TIMEOUT, self.lines.next_line()).await;
        let line = line.map_err(|_| "pywa says nothing")?;
        let line = line.ok().flatten().ok_or("pywa ended early")?;
        serde_json::from_str(&line).map_err(|error| error.to_string())
    }
}
