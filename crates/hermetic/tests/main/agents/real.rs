//! The programs themselves, in a native sandbox, with models that answer under their providers' own names in a
//! network of the test's.
//!
//! They have hundreds of megabytes, so they are told where tests are long, but for one story of the smallest of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hermetic_acp::{AgentProgram, AgentPrograms as _};
use hermetic_agent_programs::{AgentFolder, AgentPreset, InstalledPrograms, NODE, ProgramBackend};
use hermetic_types::{BackendKind, Secret};
use rustix::process::geteuid;
use serde_json::json;

use super::driver::Driver;
use super::model::{DONE, Providers};
use crate::hermetic::Hermetic;
use crate::probes::dns::{Answer, Liar};
use crate::probes::namespace::{Namespace, PUBLIC};

pub(super) const KEY: &str = "the-real-key-of-somebody";

/// The command that the models ask for.
pub(super) const COMMAND: &str =
    concat!("python3 - <<'PROBE'\n", include_str!("probe.py"), "PROBE\n");

#[test]
fn opencode_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::opencode_answers_and_runs_a_tool_without_its_key";
    long_story(test, "opencode", &["ANTHROPIC_API_KEY"]);
}

/// By the whole way that a conversation takes: the preset, the loan of its key, its folder in our own home.
#[test]
fn opencode_answers_in_a_conversation() {
    let test = "agents::real::opencode_answers_in_a_conversation";
    in_conversation(test, "opencode", "ANTHROPIC_API_KEY");
}

#[test]
fn claude_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::claude_answers_and_runs_a_tool_without_its_key";
    long_story(test, "claude", &["ANTHROPIC_API_KEY"]);
}

#[test]
fn gemini_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::gemini_answers_and_runs_a_tool_without_its_key";
    long_story(test, "gemini", &["GEMINI_API_KEY"]);
}

#[test]
fn codex_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::codex_answers_and_runs_a_tool_without_its_key";
    long_story(test, "codex", &["OPENAI_API_KEY"]);
}

#[test]
fn qwen_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::qwen_answers_and_runs_a_tool_without_its_key";
    long_story(test, "qwen", &["DASHSCOPE_API_KEY"]);
}

#[test]
fn hermes_answers_and_runs_a_tool_without_its_key() {
    let test = "agents::real::hermes_answers_and_runs_a_tool_without_its_key";
    long_story(test, "hermes", &["OPENROUTER_API_KEY"]);
}

fn long_story(test: &str, name: &str, keys: &[&str]) {
    long_one(test, || story(test, name, keys));
}

pub(super) fn long_one(test: &str, tell: impl FnOnce()) {
    if hermetic_testkit::long() {
        tell();
    } else {
        eprintln!("SKIP: {test}: hundreds of megabytes, for `cargo xtask test --long`");
    }
}

fn story(test: &str, name: &str, keys: &[&str]) {
    // Before the namespace, which has no registry in it.
    let Some(folder) = installed(test, name) else {
        return;
    };
    if !Hermetic::new().has_sandboxes(test) || !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let keys = keys.iter().map(|&key| (key.to_owned(), Secret::new(KEY)));
    let keys: BTreeMap<_, _> = keys.collect();
    let programs = InstalledPrograms::new(folder, keys.clone(), |_| ProgramBackend::Near);
    let program = programs.program(name, BackendKind::Native).unwrap();

    let dns = Liar::start();
    let hosts: Vec<_> = program.hosts.iter().map(String::as_str).collect();
    for host in &hosts {
        dns.tell(host, Answer::of(&[PUBLIC]));
    }
    let providers = Providers::serve(&hosts, COMMAND);
    let hermetic = home(&program, &providers, keys.keys());
    let mut agent = Driver::start(started(&hermetic, &program));
    agent.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {}}),
    );
    if let Some(method) = &program.authenticate {
        agent.call("authenticate", &json!({"methodId": method}));
    }
    let session = agent.call(
        "session/new",
        &json!({"cwd": "/workspace", "mcpServers": []}),
    );
    let prompt = json!({"sessionId": session["sessionId"],
        "prompt": [{"type": "text", "text": "Run the tool."}]});
    let ended = agent.call("session/prompt", &prompt);
    assert_eq!(ended["stopReason"], "end_turn");
    assert!(agent.said.contains(DONE), "{}", agent.said);
    // Hermes asks about what it takes for dangerous, and is not relied on for that.
    if name != "hermes" {
        assert_eq!(
            agent.asked > 0,
            name != "opencode",
            "{} questions",
            agent.asked
        );
    }
    agent.end();

    check_what_was_asked(&providers, &program);
    let left = hermetic.run(&["sandbox", "list", "--json"]).json();
    assert_eq!(left, json!([]));
}

fn in_conversation(test: &str, name: &str, key: &str) {
    let Some(folder) = installed(test, name) else {
        return;
    };
    if !Hermetic::new().has_sandboxes(test) || !Namespace::STAND_IN.is_where(test) {
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
    let hermetic = Hermetic::new()
        .file(".env", &format!("{key}={KEY}\n"))
        .file("authority.pem", &providers.pem);
    let authority = hermetic.path("authority.pem").display().to_string();
    let hermetic = hermetic.variable("SSL_CERT_FILE", &authority);
    let agents = hermetic.path("hermetic/agents");
    fs::create_dir_all(&agents).unwrap();
    let copied = std::process::Command::new("cp")
        .args(["-a".as_ref(), folder.root().join(name).as_os_str()])
        .arg(&agents)
        .status();
    assert!(copied.unwrap().success());

    let answered = hermetic.run(&["chat", "--agent", name, "-q", "Run the tool."]);
    assert_eq!(answered.code, 0, "{} {}", answered.out, answered.err);
    assert!(answered.out.contains(DONE), "{}", answered.out);
    check_what_was_asked(&providers, &program);
    // Of another agent's conversations nothing is lent.
    let other = [
        "exec",
        "--egress",
        "--",
        "sh",
        "-c",
        "env | grep -c placeholder",
    ];
    assert_eq!(hermetic.run(&other).out, "0\n");
}

/// The tool has run and found no key inside; the key has left for the paths of the model and no others.
pub(super) fn check_what_was_asked(providers: &Providers, program: &AgentProgram) {
    let asked = providers.asked();
    let probed = asked
        .iter()
        .any(|asked| asked.body.contains("scanned True found 0 held True"));
    assert!(
        probed,
        "the tool has not run, or has found the key: {asked:?}"
    );
    for asked in &asked {
        assert!(asked.head.contains(KEY), "{}", asked.head);
        let mut allowed = program.credentials.iter().flat_map(|one| &one.paths);
        assert!(allowed.any(|pattern| asked.fits(pattern)), "{}", asked.path);
    }
}

/// The agents of this build, installed once by the program itself and shared by all runs.
pub(super) fn installed(test: &str, name: &str) -> Option<AgentFolder> {
    let binary = std::env::current_exe().unwrap();
    // target/<profile>/deps/<binary>
    let target = binary
        .ancestors()
        .nth(3)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let home = target.join(format!("agents-{}", geteuid().as_raw()));
    let folder = AgentFolder::in_state(&home.join("hermetic"));
    let preset = AgentPreset::named(name).unwrap();
    let is_there = |name: &str, wanted: &str| {
        let found = folder.installed(name).ok().flatten();
        found.is_some_and(|agent| agent.version == wanted)
    };
    let has_node = !preset.needs_node() || is_there("node", NODE.version);
    if has_node && is_there(name, preset.source.version) {
        return Some(folder);
    }
    if let Err(why) = fs::create_dir_all(&home) {
        eprintln!("SKIP: {test}: {}: {why}", home.display());
        return None;
    }
    // With this machine's registry and proxy, and so with its environment.
    let installed = std::process::Command::new(env!("CARGO_BIN_EXE_hermetic"))
        .args(["--home".as_ref(), home.as_os_str()])
        .args(["agents", "install", name])
        .output()
        .unwrap();
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr);
        let why = why.lines().next().unwrap_or_default();
        eprintln!("SKIP: {test}: {why}");
        return None;
    }
    Some(folder)
}

/// A home whose rules and credentials are what the preset asks for.
fn home<'a>(
    program: &AgentProgram,
    providers: &Providers,
    keys: impl Iterator<Item = &'a String>,
) -> Hermetic {
    let mut variables = keys.map(|key| (key, format!("{key}={KEY}\n")));
    let (key, dotenv) = variables.next().unwrap();
    let credential = &program.credentials[0];
    let config = json!({"gateway": {"egress": {
        "allow": program.hosts,
        "credentials": [{
            "host": credential.host,
            "header": credential.header,
            "scheme": credential.scheme,
            "paths": credential.paths,
            "value_env": key,
            "placeholder_env": credential.variable,
        }],
    }}});
    let hermetic = Hermetic::with(&config.to_string())
        .file(".env", &dotenv)
        .file("authority.pem", &providers.pem);
    let authority = hermetic.path("authority.pem").display().to_string();
    hermetic.variable("SSL_CERT_FILE", &authority)
}

fn started(hermetic: &Hermetic, program: &AgentProgram) -> std::process::Command {
    let mut command = hermetic.command(&["exec", "--egress", "--timeout", "5m"]);
    for mount in &program.mounts {
        let (outside, inside) = (mount.outside.display(), mount.inside.display());
        command.args(["--mount", &format!("{outside}:{inside}")]);
    }
    for (name, value) in &program.environment {
        command.args(["--env", &format!("{name}={value}")]);
    }
    let mut script = String::new();
    for file in &program.files {
        let path = file.path.display();
        let content = file.content.trim_end();
        script += &format!(
            "mkdir -p \"$HOME/$(dirname {path})\"; cat > \"$HOME/{path}\" <<'END'\n{content}\nEND\n"
        );
    }
    script += "exec \"$@\"";
    command
        .args(["--", "sh", "-ec", &script, "agent"])
        .args(&program.command);
    command
}
