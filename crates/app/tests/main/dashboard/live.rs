//! What happens while it happens: the output of a call that runs, and what sandboxes use.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_dashboard::DashboardRole;
use hermetic_sandbox::{LiveUse, SandboxProcess};
use hermetic_store::RowOwner;
use hermetic_testkit::model::Reply;
use hermetic_types::SandboxId;

use super::visitor::Visitor;
use super::{ALICES, Heard};
use crate::lab::{ALICE, KEY, Lab, calls_terminal};

/// A file that a command waits for.
pub(super) struct CommandGate {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl CommandGate {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("go");
        Self {
            _folder: folder,
            path,
        }
    }

    /// Shell words that wait for it.
    pub(super) fn wait(&self) -> String {
        format!("until [ -e {} ]; do sleep 0.02; done", self.path.display())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn open(&self) {
        fs::write(&self.path, "").unwrap();
    }
}

/// The box with output on a page; the command above it holds the same words.
fn tail_of(page: &str) -> String {
    let tail = page.split_once("<pre class=\"tail");
    let tail = tail.and_then(|(_, rest)| rest.split_once("</pre>"));
    tail.map_or_else(String::new, |(tail, _)| tail.to_owned())
}

#[tokio::test]
async fn a_running_call_shows_what_it_writes_and_leaves_nothing_behind() {
    let gate = CommandGate::new();
    let (first, second) = KEY.split_at(KEY.len() / 2);
    let command = format!(
        "echo '<b>step one</b>'; printf '%s' '{first}'; sleep 0.1; echo '{second}'; \
         echo 'and it goes on for a while'; {}; echo step two",
        gate.wait()
    );
    let script = [calls_terminal(&command), Reply::streams(&["done"])];
    let lab = Lab::builder().script(script).start().await;
    let ada = Visitor::entered(&lab, DashboardRole::Viewer, "eve").await;
    let mut heard = Heard::open(&ada, "").await;
    heard.next("reset").await;
    lab.says(ALICE, "go");
    // Each event says that there is more; the page has it.
    let page = loop {
        heard.next("output").await;
        let page = ada.get(ALICES).await.body;
        if tail_of(&page).contains("goes on for a while") {
            break tail_of(&page);
        }
    };
    assert!(page.contains("&lt;b&gt;step one"), "{page}");
    assert!(page.contains("[redacted]"), "{page}");
    let overview = tail_of(&ada.get("/").await.body);
    assert!(overview.contains("goes on for a while"), "{overview}");
    let api = ada.get("/api/v1/overview").await.body;
    let told: serde_json::Value = serde_json::from_str(&api).unwrap();
    assert!(told["running"][0]["output"]["text"].is_string(), "{api}");
    for shown in [&page, &overview, &api] {
        assert!(!shown.contains(KEY), "a secret in two pieces is shown");
        assert!(
            !shown.contains(&KEY[..KEY.len() - 3]),
            "most of it is shown"
        );
    }
    assert!(!page.contains("step two") && !overview.contains("step two"));
    gate.open();
    assert_eq!(lab.replies(ALICE, 1).await, ["done"]);
    let ended = ada.get(ALICES).await.body;
    assert!(!ended.contains("class=\"tail"), "{ended}");
    assert!(ended.contains("What came back") && ended.contains("step two"));
    let api = ada.get("/api/v1/conversation?key=agent%3Amain%3Atelegram%3Adm%3A7");
    assert!(api.await.body.contains("\"output\":null"));
}

/// What a sandbox of the test uses, growing with `step`.
pub(super) fn working(step: u64) -> (LiveUse, Vec<SandboxProcess>) {
    let uses = LiveUse {
        cpu_time: Some(Duration::from_millis(550 * step + 90 * (step % 4))),
        memory_bytes: Some((180 + 97 * (step % 5)) << 20),
        pids: Some(3 + step % 4),
    };
    let process = |pid, name: &str, cpu| SandboxProcess {
        pid,
        name: name.to_owned(),
        cpu_time: Duration::from_millis(cpu),
        memory_bytes: pid << 20,
    };
    let processes = vec![
        process(9, "<i>cc1plus", 2000 * step),
        process(7, "make", 120),
        process(1, "warden", 10),
    ];
    (uses, processes)
}

pub(super) async fn sandbox_of(lab: &Lab) -> SandboxId {
    let ledger = lab.store().await.ledger();
    loop {
        let entries = ledger.entries(RowOwner::AnyGateway).await.unwrap();
        if let Some(entry) = entries.into_iter().next() {
            return entry.id;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_sandboxes_use_is_asked_when_somebody_looks() {
    let script = [calls_terminal("true"), Reply::streams(&["done"])];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "go").await;
    let id = sandbox_of(&lab).await;
    let ada = Visitor::operator(&lab).await;
    ada.get("/").await;
    assert_eq!(lab.backend().live_looks(), 0, "nobody looks at sandboxes");

    let page = ada.get("/sandboxes").await.body;
    assert!(lab.backend().live_looks() > 0);
    assert!(page.contains("backend does not tell"), "{page}");
    let one = format!("/sandbox?id={id}");
    let told = ada.get(&one).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert!(
        told.body.contains("does not tell which processes"),
        "{}",
        told.body
    );

    let (uses, processes) = working(3);
    lab.backend().works(&id, uses, processes);
    lab.backend().uses(&id, 5_000_000);
    let mut heard = Heard::open(&ada, "").await;
    let page = loop {
        heard.next("use").await;
        let page = ada.get("/sandboxes").await.body;
        if page.contains(">6</span>") {
            break page;
        }
    };
    assert!(page.contains("493 MB</span>"), "{page}");
    assert!(
        page.contains("of 5.3 GB") && page.contains("of 256"),
        "{page}"
    );
    let told = ada.get(&one).await.body;
    assert!(
        told.contains("&lt;i&gt;cc1plus") && told.contains(">6 s<"),
        "{told}"
    );
    let api = ada.get(&format!("/api/v1/sandbox?id={id}")).await.body;
    let api: serde_json::Value = serde_json::from_str(&api).unwrap();
    assert_eq!(api["processes"].as_array().unwrap().len(), 3, "{api}");
    assert_eq!(api["sandbox"]["uses"]["pids"], 6, "{api}");
    assert!(!api["points"].as_array().unwrap().is_empty(), "{api}");
    // Two looks at the same time used: it is idle, and that is known.
    while ada
        .get("/api/v1/sandboxes")
        .await
        .body
        .contains("\"cpu_millis\":null")
    {
        heard.next("use").await;
    }
    for wrong in [
        "/sandbox?id=nobody",
        "/sandbox?id=",
        "/sandbox?id=..%2F..",
        "/api/v1/sandbox?id=x",
    ] {
        assert_eq!(ada.get(wrong).await.status, 404, "{wrong}");
    }
    let stranger = Visitor::stranger(&lab);
    assert_eq!(stranger.get(&one).await.status, 401);
}
