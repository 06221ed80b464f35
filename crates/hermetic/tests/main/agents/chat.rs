//! The programs themselves behind a chat: a tool after a button, a stop, a kill of the gateway, and what is left.
//!
//! The gateway is the built program, the chat a Telegram of the test's, the models answer under their providers'
//! own names in a network of the test's.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use hermetic_acp::AgentPrograms as _;
use hermetic_agent_programs::{AgentPreset, InstalledPrograms, ProgramBackend};
use hermetic_testkit::telegram::Call;
use hermetic_types::{BackendKind, Clock as _, Secret, SystemClock};
use tokio::time::{Instant, sleep};

use super::model::{BEFORE, DONE, Providers, REMEMBERED, RUN, SLEEP, SLEEP_MARK};
use super::real::{COMMAND, KEY, check_what_was_asked, installed, long_one};
use crate::docker::containers;
use crate::flow::approvals::press;
use crate::flow::lab::{ALICE, Lab, text};
use crate::probes::dns::{Answer, Liar};
use crate::probes::namespace::{Namespace, PUBLIC};
use crate::singularity;

/// The slowest agent on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(240);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[test]
fn claude_behind_a_chat() {
    long_story(
        "agents::chat::claude_behind_a_chat",
        "claude",
        "ANTHROPIC_API_KEY",
        "native",
    );
}

#[test]
fn opencode_behind_a_chat() {
    long_story(
        "agents::chat::opencode_behind_a_chat",
        "opencode",
        "ANTHROPIC_API_KEY",
        "native",
    );
}

#[test]
fn gemini_behind_a_chat() {
    long_story(
        "agents::chat::gemini_behind_a_chat",
        "gemini",
        "GEMINI_API_KEY",
        "native",
    );
}

#[test]
fn codex_behind_a_chat() {
    long_story(
        "agents::chat::codex_behind_a_chat",
        "codex",
        "OPENAI_API_KEY",
        "native",
    );
}

#[test]
fn qwen_behind_a_chat() {
    long_story(
        "agents::chat::qwen_behind_a_chat",
        "qwen",
        "DASHSCOPE_API_KEY",
        "native",
    );
}

#[test]
fn hermes_behind_a_chat() {
    long_story(
        "agents::chat::hermes_behind_a_chat",
        "hermes",
        "OPENROUTER_API_KEY",
        "native",
    );
}

#[test]
fn claude_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::claude_behind_a_chat_in_a_container",
        "claude",
        "ANTHROPIC_API_KEY",
        "docker",
    );
}

#[test]
fn opencode_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::opencode_behind_a_chat_in_a_container",
        "opencode",
        "ANTHROPIC_API_KEY",
        "docker",
    );
}

#[test]
fn gemini_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::gemini_behind_a_chat_in_a_container",
        "gemini",
        "GEMINI_API_KEY",
        "docker",
    );
}

#[test]
fn codex_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::codex_behind_a_chat_in_a_container",
        "codex",
        "OPENAI_API_KEY",
        "docker",
    );
}

#[test]
fn qwen_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::qwen_behind_a_chat_in_a_container",
        "qwen",
        "DASHSCOPE_API_KEY",
        "docker",
    );
}

#[test]
fn hermes_behind_a_chat_in_a_container() {
    long_story(
        "agents::chat::hermes_behind_a_chat_in_a_container",
        "hermes",
        "OPENROUTER_API_KEY",
        "docker",
    );
}

#[test]
fn opencode_behind_a_chat_in_an_instance() {
    long_story(
        "agents::chat::opencode_behind_a_chat_in_an_instance",
        "opencode",
        "ANTHROPIC_API_KEY",
        "singularity",
    );
}

#[test]
fn gemini_behind_a_chat_in_an_instance() {
    long_story(
        "agents::chat::gemini_behind_a_chat_in_an_instance",
        "gemini",
        "GEMINI_API_KEY",
        "singularity",
    );
}

fn long_story(test: &str, name: &str, key: &str, backend: &str) {
    long_one(test, || tell(test, name, key, backend));
}

fn tell(test: &str, name: &str, key: &str, backend: &str) {
    // Before the namespace, which has no registry in it.
    let Some(folder) = installed(test, name) else {
        return;
    };
    let image = match backend {
        "docker" => std::env::var("HERMETIC_TEST_IMAGE").ok(),
        "singularity" => std::env::var("HERMETIC_TEST_ROOTFS").ok(),
        _ => None,
    };
    if backend == "docker" && (image.is_none() || containers("none").is_none()) {
        eprintln!("SKIP: {test}: no engine with a test image; `cargo xtask test` provides one");
        return;
    }
    if backend == "singularity" && singularity::home(test).is_none() {
        return;
    }
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let keys = BTreeMap::from([(key.to_owned(), Secret::new(KEY))]);
    let programs = InstalledPrograms::new(folder.clone(), keys, |_| ProgramBackend::Near);
    let program = programs.program(name, BackendKind::Native).unwrap();
    let dns = Liar::start();
    for host in &program.hosts {
        dns.tell(host, Answer::of(&[PUBLIC]));
    }
    let hosts: Vec<_> = program.hosts.iter().map(String::as_str).collect();
    let providers = Providers::serve(&hosts, COMMAND);

    let authority = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), &providers.pem).unwrap();
    let authority = authority.path().display().to_string();
    let engine = std::env::var("DOCKER_HOST").unwrap_or_default();
    let variables = [
        ("SSL_CERT_FILE", authority.as_str()),
        ("DOCKER_HOST", engine.as_str()),
    ];
    let image = image.map_or_else(String::new, |image| format!(", sandbox_image: '{image}'"));
    let config = format!(
        "agent: {{acp: {name}}}\napprovals: {{approvers: ['telegram:7']}}\n\
         gateway: {{terminal_backend: {backend}{image}}}\nterminal: {{container_persistent: true}}\n"
    );
    let env = format!("TELEGRAM_ALLOWED_USERS=7,8\n{key}={KEY}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let Some(mut lab) = Lab::start_in(test, [], &config, &env, &variables).await else {
            return;
        };
        lab.terminate();
        // Shared, not copied: hundreds of megabytes for each test.
        let agents = lab.path("hermetic/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let mut names = vec![name];
        names.extend(
            AgentPreset::named(name)
                .unwrap()
                .needs_node()
                .then_some("node"),
        );
        for part in names {
            let copied = Command::new("cp")
                .args(["-al".as_ref(), folder.root().join(part).as_os_str()])
                .arg(&agents)
                .status();
            assert!(copied.unwrap().success());
        }
        lab.restart();
        story(&mut lab, name).await;
        check_what_was_asked(&providers, &program);
    });
}

async fn story(lab: &mut Lab, name: &str) {
    let mut pressed = 0;
    // A tool, after a button where the agent asks.
    lab.telegram.says(ALICE, &format!("{RUN}, please."));
    until(lab, "the answer", &mut pressed, |texts| {
        texts.contains(DONE)
    })
    .await;
    if !["opencode", "hermes"].contains(&name) {
        assert!(pressed > 0, "it did not ask: {}", shown(lab));
    }
    let recorded = record(lab);
    assert!(recorded.contains("agent_tool") && recorded.contains(&format!("\"{name}\"")));
    let status = lab.run(&["status"]).out;
    let line = status.lines().find(|line| line.starts_with("agent"));
    let line = line.unwrap_or_else(|| panic!("{status}"));
    assert!(line.contains(name) && line.contains("MB"), "{line}");
    eprintln!("{line}");
    let usage = lab.ask(ALICE, "/usage").await;
    eprintln!("{usage}");

    // Stopped in the middle of a tool, and nothing of the tool is left.
    lab.telegram.says(ALICE, &format!("{SLEEP}, please."));
    until(lab, "the tool", &mut pressed, |_| is_at_work(lab)).await;
    lab.telegram.says(ALICE, "/stop");
    let stopped = |texts: &str| texts.contains("Stopped.") && texts.contains("[Interrupted.]");
    until(lab, "the stop", &mut pressed, stopped).await;
    let started = Instant::now();
    while is_at_work(lab) {
        assert!(started.elapsed() < PATIENCE, "the tool runs on");
        sleep(LOOK_AGAIN).await;
    }

    // Killed, it goes on where it was.
    if name == "gemini" {
        // It names the file of a session after the minute, and one that is loaded in the minute in which it was
        // begun it writes over.
        let begun = minute();
        while minute() == begun {
            sleep(LOOK_AGAIN).await;
        }
    }
    lab.kill();
    lab.restart();
    lab.telegram.says(ALICE, &format!("{BEFORE}?"));
    until(lab, "what it remembers", &mut pressed, |texts| {
        texts.contains(REMEMBERED)
    })
    .await;
    assert!(
        !shown(lab).contains("began a new session"),
        "{}",
        shown(lab)
    );

    // Nothing is left of it.
    lab.destroy(ALICE).await;
    assert!(lab.sandboxes().is_empty());
    lab.terminate();
}

fn minute() -> i64 {
    SystemClock.now().seconds() / 60
}

fn shown(lab: &Lab) -> String {
    lab.telegram.shown(ALICE).join("\n---\n")
}

fn record(lab: &Lab) -> String {
    lab.run(&["audit", "show", "--json"]).out
}

/// Whether the long command runs in the conversation's sandbox.
fn is_at_work(lab: &Lab) -> bool {
    let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    let conversation = format!("telegram:dm:{ALICE}");
    let seen = lab.run(&["sandbox", "exec", &conversation, "--", "sh", "-c", look]);
    // Shells that hold the command in their arguments end with it.
    seen.out.contains(SLEEP_MARK)
}

/// Until it is there. Meanwhile whatever the agent asks is allowed, once each; how often is counted.
async fn until(lab: &Lab, what: &str, pressed: &mut usize, is_there: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let texts = shown(lab);
        if is_there(&texts) {
            return;
        }
        let sent = lab.telegram.calls("sendMessage");
        let asked = |call: &&Call| text(&call.params).contains("the agent asks whether it may");
        if sent.iter().filter(asked).count() > *pressed {
            press(lab, ALICE, ALICE, "Allow once");
            *pressed += 1;
        }
        assert!(started.elapsed() < PATIENCE, "{what} did not come: {texts}");
        sleep(LOOK_AGAIN).await;
    }
}
