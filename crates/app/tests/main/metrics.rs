//! What is counted: under which names, that it can be read by others' programs, and that what is handed out to
//! watch a gateway with asks for nothing that is not there.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermetic_testkit::model::Reply;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::approvals::{self, Deed};
use crate::lab::{ALICE, BOB, Lab, calls_terminal};

/// A gateway in which everything that is counted has happened once.
async fn story() -> Lab {
    let deed = Deed::new();
    let script = [
        calls_terminal("echo hello"),
        Reply::streams(&["It says hello."]),
        calls_terminal(&deed.command()),
        Reply::streams(&["Done."]),
    ];
    let lab = approvals::lab(script, "").await;
    lab.ask(ALICE, "a secret word: swordfish").await;
    lab.ask(BOB, "change it").await;
    lab.says(ALICE, "/approve");
    let replied = |replies: &[String]| replies.iter().any(|reply| reply.ends_with("Done."));
    for count in 2.. {
        if replied(&lab.replies(BOB, count).await) {
            break;
        }
    }
    lab
}

async fn metrics(address: SocketAddr, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn document(path: &str) -> String {
    fs::read_to_string(document_path(path)).unwrap()
}

fn document_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(path)
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_part(character));
    let ours = |word: &&str| word.starts_with("hermetic_") || word.starts_with("process_");
    words.filter(ours).map(str::to_owned).collect()
}

/// The names that are shown, with those that a histogram is read by.
fn shown_names(text: &str) -> BTreeSet<String> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    kinds
        .filter_map(|kind| kind.split_once(' '))
        .flat_map(|(name, kind)| match kind {
            "histogram" => ["_bucket", "_sum", "_count", ""]
                .map(|suffix| format!("{name}{suffix}"))
                .to_vec(),
            _ => vec![name.to_owned()],
        })
        .collect()
}

/// Every query of the board that is handed out, as Grafana sends it.
fn panel_queries() -> Vec<(String, String)> {
    let board: Value = serde_json::from_str(&document("operations/grafana.json")).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| {
            let query = target["expr"].as_str().unwrap();
            (title.to_owned(), query.replace("$__rate_interval", "1m"))
        })
    });
    targets.collect()
}

#[tokio::test]
async fn what_is_counted_has_the_names_that_documents_say_and_tells_nobodys_words() {
    let lab = story().await;
    let (head, text) = metrics(lab.health(), "*/*").await;
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let shown = shown_names(&text);
    let written = names(&document("guides/metrics.md"));
    let unwritten: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|kind| kind.split(' ').next())
        .filter(|name| !written.contains(*name))
        .collect();
    assert_eq!(unwritten, [""; 0], "the guide does not name these");
    let mut used = written;
    used.extend(names(&document("operations/alerts.yml")));
    used.extend(panel_queries().iter().flat_map(|(_, query)| names(query)));
    // Counted only where traces are on (`traces.rs`).
    used.retain(|name| !name.starts_with("hermetic_trace_spans"));
    let absent: Vec<_> = used.iter().filter(|name| !shown.contains(*name)).collect();
    assert_eq!(absent, [&""; 0], "these are not shown");
    for stage in ["receipt", "queue", "model", "tool", "delivery"] {
        let count = format!("hermetic_stage_seconds_count{{stage=\"{stage}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&count));
        let many: u64 = line.unwrap_or_else(|| panic!("{count}")).parse().unwrap();
        assert!(many > 0, "{stage} was never counted");
    }
    for line in [
        "hermetic_approvals_total{subject=\"command\",outcome=\"approved\"} 1",
        "hermetic_approvals_waiting 0",
        "hermetic_platform_state{account=\"telegram\",state=\"connected\"} 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    for private in ["swordfish", "dm:7", "alice", "chmod", "\"7\"", "\"8\""] {
        assert!(!text.contains(private), "{private} is shown");
    }
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 400, "{series} series");
    let (head, text) = metrics(lab.health(), "application/openmetrics-text; version=1.0.0").await;
    assert!(head.contains("application/openmetrics-text"), "{head}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn promtool_finds_nothing_wrong_with_what_is_shown_and_with_the_rules() {
    let test = "promtool_finds_nothing_wrong_with_what_is_shown_and_with_the_rules";
    let lab = story().await;
    let (_, text) = metrics(lab.health(), "text/plain").await;
    let checking = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut checking) = checking else {
        eprintln!("SKIP: {test}: no promtool");
        return;
    };
    let mut input = checking.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let checked = checking.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(
        checked.status.success() && said.is_empty(),
        "{said}\n{text}"
    );
    let rules = Command::new("promtool")
        .args(["check", "rules"])
        .arg(document_path("operations/alerts.yml"))
        .output()
        .unwrap();
    assert!(rules.status.success(), "{rules:?}");
}

/// Somebody's Prometheus, which looks at one gateway. Ended when it is dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(gateway: SocketAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: hermetic, static_configs: [{{targets: ['{gateway}']}}]}}]\n",
            document_path("operations/alerts.yml").display()
        );
        let path = folder.path().join("prometheus.yml");
        fs::write(&path, config).unwrap();
        // Free a moment ago; whoever takes it in between makes the start fail, which is seen.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self {
            child,
            address,
            _folder: folder,
        })
    }

    /// What it answers, once it does.
    async fn get(&mut self, path: &str) -> Value {
        loop {
            if let Some(answer) = self.try_get(path).await {
                return answer;
            }
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "prometheus has ended"
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn try_get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    async fn query(&mut self, query: &str) -> Value {
        let written: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.get(&format!("/api/v1/query?query={written}")).await
    }
}

#[tokio::test]
async fn every_panel_and_rule_is_answered_by_a_real_prometheus() {
    let test = "every_panel_and_rule_is_answered_by_a_real_prometheus";
    let lab = story().await;
    let Some(mut prometheus) = Prometheus::start(lab.health()) else {
        eprintln!("SKIP: {test}: no prometheus");
        return;
    };
    // A rate takes two looks.
    let twice = "count_over_time(hermetic_turns_total{outcome=\"answered\"}[1m]) >= 3";
    while prometheus.query(twice).await["data"]["result"][0].is_null() {
        sleep(Duration::from_millis(200)).await;
    }
    let mut empty = Vec::new();
    for (title, query) in panel_queries() {
        let answer = prometheus.query(&query).await;
        assert_eq!(answer["status"], "success", "{title}: {query}: {answer}");
        if answer["data"]["result"][0].is_null() {
            empty.push(title);
        }
    }
    assert_eq!(empty, [""; 0], "these panels show nothing");
    let rules = prometheus.get("/api/v1/rules").await;
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 10, "{rules:?}");
    for rule in rules {
        assert_ne!(rule["health"], "err", "{rule}");
    }
}
