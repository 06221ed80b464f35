//! Against npm's `@copilotkit/aimock`, an endpoint that we did not write.
//!
//! It is installed once into the target folder. Without node, npm or the package these tests are
//! skipped, aloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hermetic_agent::openai::{OpenAi, Settings};
use hermetic_agent::{Input, Model, TurnError};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::lab::{Lab, results};

const PACKAGE: &str = "@copilotkit/aimock@1.43.0";

/// The first start installs the package.
const LONGEST_START: Duration = Duration::from_secs(120);

struct Aimock {
    port: u16,
    _child: Child,
    _folder: TempDir,
}

impl Aimock {
    /// Starts the endpoint, or says why not.
    #[expect(clippy::print_stderr, reason = "a skipped test says so aloud")]
    async fn start(test: &str) -> Option<Self> {
        let started = tokio::time::timeout(LONGEST_START, Self::try_start()).await;
        match started.unwrap_or_else(|_| Err("aimock did not start in time".to_owned())) {
            Ok(server) => Some(server),
            Err(why) => {
                eprintln!("SKIP: {test}: {why}");
                None
            }
        }
    }

    async fn try_start() -> Result<Self, String> {
        let installed = install().await?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let fixtures = folder.path().join("fixtures.json");
        let config = folder.path().join("config.json");
        write(&fixtures, &fixtures_json())?;
        write(&config, &json!({"llm": {"fixtures": fixtures}}))?;
        let port = free_port().await?;
        let mut child = Command::new("node")
            .arg(entry(&installed)?)
            .args([
                "-c".as_ref(),
                config.as_os_str(),
                "-p".as_ref(),
                port.to_string().as_ref(),
            ])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("node does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        // It says something once it listens; what it says changes between versions.
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            match lines.next_line().await {
                Ok(Some(_)) => {}
                _ => return Err("aimock ended early".to_owned()),
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            port,
            _child: child,
            _folder: folder,
        })
    }

    fn model(&self, stream: bool) -> Arc<dyn Model> {
        let mut settings =
            Settings::new(format!("http://127.0.0.1:{}/v1", self.port), None, "gpt-4o");
        settings.stream = stream;
        Arc::new(OpenAi::new(settings).expect("settings"))
    }
}

fn fixtures_json() -> serde_json::Value {
    json!({"fixtures": [
        {
            "match": {"userMessage": "say it twice", "hasToolResult": false},
            "response": {"toolCalls": [
                {"name": "echo", "arguments": "{\"text\":\"one\"}"},
                {"name": "echo", "arguments": "{\"text\":\"two\"}"},
            ]},
        },
        {"match": {"userMessage": "say it twice", "hasToolResult": true}, "response": {"content": "Said it twice."}},
        {"match": {"userMessage": "hello"}, "response": {"content": "Hi from somewhere else, with a longer text that comes in pieces."}},
    ]})
}

#[tokio::test]
async fn a_streamed_text() {
    let Some(server) = Aimock::start("aimock::a_streamed_text").await else {
        return;
    };
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(server.model(true), Input::Says("hello"))
        .await
        .expect("an answer");
    assert_eq!(
        answer.text,
        "Hi from somewhere else, with a longer text that comes in pieces."
    );
    let pieces = lab
        .happened()
        .iter()
        .filter(|what| what.starts_with("text "))
        .count();
    assert!(pieces > 1, "it came in one piece");
}

#[tokio::test]
async fn plain_text_and_tool_calls() {
    let Some(server) = Aimock::start("aimock::plain_text_and_tool_calls").await else {
        return;
    };
    let lab = Lab::new([]);
    let hello = lab
        .take_turn_with(server.model(false), Input::Says("hello"))
        .await
        .expect("an answer");
    assert!(hello.text.starts_with("Hi from somewhere else"));
    let twice = lab
        .take_turn_with(server.model(false), Input::Says("say it twice"))
        .await
        .expect("an answer");
    assert_eq!(
        (twice.text.as_str(), results(&twice.messages).len()),
        ("Said it twice.", 2)
    );
}

#[tokio::test]
async fn streamed_tool_calls() {
    let Some(server) = Aimock::start("aimock::streamed_tool_calls").await else {
        return;
    };
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(server.model(true), Input::Says("say it twice"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "Said it twice.");
    assert_eq!(results(&answer.messages).len(), 2);
    assert!(lab.happened().contains(&"echo two".to_owned()));
}

#[tokio::test]
async fn what_it_does_not_know_is_an_error() {
    let Some(server) = Aimock::start("aimock::what_it_does_not_know_is_an_error").await else {
        return;
    };
    let lab = Lab::new([]);
    let error = lab
        .take_turn_with(server.model(true), Input::Says("no fixture for this"))
        .await
        .expect_err("no match");
    assert!(matches!(error, TurnError::Model(_)), "{error:?}");
}

/// The folder the package is installed in, shared by all tests and runs.
async fn install() -> Result<PathBuf, String> {
    let folder = target_folder().join("npm").join("aimock");
    if entry(&folder).is_ok() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    // Installed aside and moved, so that tests which start together do not see half of it.
    let aside = tempfile::tempdir_in(&folder).map_err(|error| error.to_string())?;
    let status = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
        .arg(aside.path())
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await
        .map_err(|error| format!("npm does not start: {error}"))?;
    if !status.success() {
        return Err(format!("npm cannot install {PACKAGE}"));
    }
    let moved = fs::rename(
        aside.path().join("node_modules"),
        folder.join("node_modules"),
    );
    if moved.is_err() && entry(&folder).is_err() {
        return Err(format!("{PACKAGE} cannot be put into {}", folder.display()));
    }
    Ok(folder)
}

/// The script behind the package's command.
fn entry(folder: &Path) -> Result<PathBuf, String> {
    let command = folder.join("node_modules").join(".bin").join("aimock");
    command
        .canonicalize()
        .map_err(|error| format!("{PACKAGE} has no command: {error}"))
}

fn target_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    // target/<profile>/deps/<binary>
    binary
        .ancestors()
        .nth(3)
        .map_or_else(std::env::temp_dir, Path::to_path_buf)
}

async fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(|error| error.to_string())?;
    Ok(listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port())
}

fn write(path: &Path, value: &serde_json::Value) -> Result<(), String> {
    fs::write(path, value.to_string()).map_err(|error| error.to_string())
}
