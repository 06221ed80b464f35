//! Against npm `telegram-test-api`, which others wrote: message in, reply out.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hermetic_chat::telegram::Telegram;
use hermetic_chat::{Chat, Reply};
use hermetic_testkit::telegram::TOKEN;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lab::{PATIENCE, config, next_message, redacted};

const PACKAGE: &str = "telegram-test-api@4.2.1";
const SERVER: &str = r#"
const Server = require("telegram-test-api");
const port = Number(process.argv[1]);
new Server({ port, host: "127.0.0.1", storage: "RAM", storeTimeout: 60 }).start()
  .then(() => console.log("READY"));
"#;

#[tokio::test]
async fn a_message_is_answered_on_a_server_of_others() {
    let (mut server, url) = match start().await {
        Ok(started) => started,
        Err(why) => {
            eprintln!("SKIP: a_message_is_answered_on_a_server_of_others: {why}");
            return;
        }
    };
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    let said = json!({
        "botToken": TOKEN,
        "from": { "id": 7, "first_name": "Ann", "username": "ann" },
        "chat": { "id": 7, "first_name": "Ann", "username": "ann", "type": "private" },
        "date": 1_700_000_000,
        "text": "ping",
    });
    let sent = client
        .post(format!("{url}/sendMessage"))
        .json(&said)
        .send()
        .await
        .unwrap();
    assert!(sent.status().is_success(), "{}", sent.status());

    let telegram = Telegram::new(config(&url)).unwrap();
    let mut inbox = telegram.receive(CancellationToken::new());
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.sender.id.as_str()),
        ("ping", "7")
    );
    let reply = Reply::text(redacted("**pong**"));
    let ids = telegram.send(&heard.place, &reply).await.unwrap();
    assert_eq!(ids.len(), 1);

    let seen: Value = client
        .post(format!("{url}/getUpdates"))
        .json(&json!({ "token": TOKEN, "chatId": "7" }))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(seen.to_string().contains("*pong*"), "{seen}");
    server.kill().await.unwrap();
}

async fn start() -> Result<(Child, String), String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("telegram-test-api");
    if !home.join("node_modules/telegram-test-api").exists() {
        install(&home).await?;
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = free.local_addr().map_err(|error| error.to_string())?.port();
    drop(free);
    let mut child = Command::new("node")
        .args(["-e", SERVER, &port.to_string()])
        .current_dir(&home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("node does not start: {error}"))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let ready = timeout(PATIENCE, async {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains("READY") {
                return true;
            }
        }
        false
    });
    match ready.await {
        Ok(true) => Ok((child, format!("http://127.0.0.1:{port}"))),
        Ok(false) | Err(_) => Err("the server did not come up".to_owned()),
    }
}

async fn install(home: &Path) -> Result<(), String> {
    std::fs::create_dir_all(home).map_err(|error| error.to_string())?;
    let npm = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(home)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = timeout(Duration::from_secs(120), npm)
        .await
        .map_err(|_| "npm took too long".to_owned())?
        .map_err(|error| format!("npm does not start: {error}"))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("npm failed with {}", done.status))
    }
}
