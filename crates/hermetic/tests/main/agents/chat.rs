//! The programs themselves behind a chat: a tool after a button, a stop, a kill of the gateway, and what is left.
//!
//! The gateway is the built program, the chat a Telegram of the test's, the models answer under their providers'
//! own names in a network of the test's.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use hermetic_acp::AgentPrograms as _;
use hermetic_agent_programs::{AgentPreset, InstalledPrograms, ProgramBackend};
use hermetic_types::Secret;
use tokio::time::{Instant, sleep};

use super::model::{BEFORE, DONE, Providers, REMEMBERED, RUN, SLEEP, SLEEP_COMMAND};
use super::real::{COMMAND, KEY, check_what_was_asked, installed, long_one};
use crate::docker::containers;
use crate::flow::approvals::press;
use crate::flow::lab::{ALICE, Lab};
use crate::probes::dns::{Answer, Liar};
use crate::probes::namespace::{Namespace, PUBLIC};

/// The slowest agent on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(240);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

macro_rules! stories {
    ($($test:ident: $name:literal, $key:literal, $backend:literal;)*) => {$(
        #[test]
        fn $test() {
            let test = concat!("agents::chat::", stringify!($test));
            long_one(test, || tell(test, $name, $key, $backend));
        }
    )*};
}

stories! {
    claude_behind_a_chat: "claude", "ANTHROPIC_API_KEY", "native";
    opencode_behind_a_chat: "opencode", "ANTHROPIC_API_KEY", "native";
    gemini_behind_a_chat: "gemini", "GEMINI_API_KEY", "native";
    codex_behind_a_chat: "codex", "OPENAI_API_KEY", "native";
    qwen_behind_a_chat: "qwen", "DASHSCOPE_API_KEY", "native";
    hermes_behind_a_chat: "hermes", "OPENROUTER_API_KEY", "native";
    claude_behind_a_chat_in_a_container: "claude", "ANTHROPIC_API_KEY", "docker";
    opencode_behind_a_chat_in_a_container: "opencode", "ANTHROPIC_API_KEY", "docker";
    gemini_behind_a_chat_in_a_container: "gemini", "GEMINI_API_KEY", "docker";
    codex_behind_a_chat_in_a_container: "codex", "OPENAI_API_KEY", "docker";
    qwen_behind_a_chat_in_a_container: "qwen", "DASHSCOPE_API_KEY", "docker";
    hermes_behind_a_chat_in_a_container: "hermes", "OPENROUTER_API_KEY", "docker";
}

fn tell(test: &str, name: &str, key: &str, backend: &str) {
    // Before the namespace, which has no registry in it.
    let Some(folder) = installed(test, name) else {
        return;
    };
    let image = std::env::var("HERMETIC_TEST_IMAGE").ok();
    if backend == "docker" && (image.is_none() || containers("none").is_none()) {
        eprintln!("SKIP: {test}: no engine with a test image; `cargo xtask test` provides one");
        return;
    }
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let keys = BTreeMap::from([(key.to_owned(), Secret::new(KEY))]);
    let programs = InstalledPrograms::new(folder.clone(), keys, ProgramBackend::Near);
    let program = programs.program(name).unwrap();
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
    let image = image.filter(|_| backend == "docker");
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
    let asks = !["opencode", "hermes"].contains(&name);
    // A tool, after a button where the agent asks.
    lab.telegram.says(ALICE, &format!("{RUN}, please."));
    if asks {
        until(lab, "a question", |texts| {
            texts.contains("the agent asks whether it may")
        })
        .await;
        press(lab, ALICE, ALICE, "Allow once");
    }
    until(lab, "the answer", |texts| texts.contains(DONE)).await;
    let recorded = lab.run(&["audit", "show", "--json"]).out;
    assert!(recorded.contains("agent_tool") && recorded.contains(&format!("\"{name}\"")));
    let status = lab.run(&["status"]).out;
    let line = status.lines().find(|line| line.starts_with("agent"));
    let line = line.unwrap_or_else(|| panic!("{status}"));
    assert!(line.contains(name) && line.contains("MB"), "{line}");
    eprintln!("{line}");

    // Stopped in the middle of a tool, and nothing of the tool is left.
    lab.telegram.says(ALICE, &format!("{SLEEP}, please."));
    let mut questions = usize::from(asks) + 1;
    until_recorded(lab, SLEEP_COMMAND, asks.then_some(&mut questions)).await;
    lab.telegram.says(ALICE, "/stop");
    until(lab, "the stop", |texts| {
        texts.contains("Stopped.") && texts.contains("[Interrupted.]")
    })
    .await;
    let started = Instant::now();
    loop {
        let names = lab
            .ask(ALICE, "/sh cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            .await;
        if !names.contains(SLEEP_COMMAND) {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "the tool runs on: {names}");
        sleep(LOOK_AGAIN).await;
    }

    // Killed, it goes on where it was.
    lab.kill();
    lab.restart();
    lab.telegram.says(ALICE, &format!("{BEFORE}?"));
    until(lab, "what it remembers", |texts| texts.contains(REMEMBERED)).await;
    assert!(!shown(lab).contains("began a new session"));

    // Nothing is left of it.
    lab.destroy(ALICE).await;
    assert!(lab.sandboxes().is_empty());
    lab.terminate();
}

fn shown(lab: &Lab) -> String {
    lab.telegram.shown(ALICE).join("\n---\n")
}

async fn until(lab: &Lab, what: &str, is_there: impl Fn(&str) -> bool) {
    let started = Instant::now();
    while !is_there(&shown(lab)) {
        assert!(
            started.elapsed() < PATIENCE,
            "{what} did not come: {}",
            shown(lab)
        );
        sleep(LOOK_AGAIN).await;
    }
}

/// Until the agent has told of this tool. Where it asks, it is allowed to.
async fn until_recorded(lab: &Lab, words: &str, mut asked: Option<&mut usize>) {
    let started = Instant::now();
    loop {
        let questions = shown(lab).matches("the agent asks whether it may").count();
        if let Some(next) = asked.as_deref_mut()
            && questions >= *next
        {
            press(lab, ALICE, ALICE, "Allow once");
            *next = questions + 1;
            asked = None;
        }
        let record = lab.run(&["audit", "show", "--json"]).out;
        let told = record
            .lines()
            .any(|line| line.contains("agent_tool") && line.contains(words));
        if told && asked.is_none() {
            return;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{words} is not recorded: {}",
            shown(lab)
        );
        sleep(LOOK_AGAIN).await;
    }
}
