//! Whether installed agents are what was installed, and start.

use std::time::Duration;

use hermetic_acp::{AgentProgram, upload_program};
use hermetic_agent_programs::{AgentFolder, AgentPreset};
use hermetic_app::{self as app, BackendCaller, PendingHeadStart};
use hermetic_config::{Config, resolve_gateway_backend};
use hermetic_sandbox::{HostMount, MountMode, PassingSandbox, Sandbox, SandboxSpec};
use hermetic_types::{BackendKind, Command, CommandInput};
use hermetic_warden::client::{RunEvent, RunningCommand};
use serde_json::{Value, json};

use crate::commands::exec::judging;
use crate::commands::on_runtime;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, printable};

/// The slowest takes ten seconds on a slow machine.
const LONGEST_START: Duration = Duration::from_secs(120);
const MOST_ANSWER: usize = 1 << 20;
const MOST_COMPLAINT: usize = 4 << 10;
const SHOWN_COMPLAINT: usize = 300;

pub(super) fn run(
    config: &Config,
    folder: &AgentFolder,
    agents: &[&'static AgentPreset],
    starts: bool,
) -> Result<ExitReason, CommandFailure> {
    if agents.is_empty() {
        output::print("No agent is installed. `hermetic agents list` shows which there are.\n")?;
    }
    let mut all_well = true;
    for preset in agents {
        let sums = compare(folder, preset);
        all_well &= sums.is_ok();
        tell(preset, "checksums", &sums)?;
        // What is not what was installed is not started, not even in a sandbox.
        if sums.is_err() || !starts {
            continue;
        }
        let answered = start(config, preset);
        all_well &= answered.is_ok();
        tell(preset, "start", &answered)?;
    }
    Ok(match all_well {
        true => ExitReason::Ok,
        false => ExitReason::Failed,
    })
}

fn tell(
    preset: &AgentPreset,
    what: &str,
    found: &Result<String, String>,
) -> Result<(), CommandFailure> {
    let (word, said) = match found {
        Ok(said) => ("ok", said),
        Err(said) => ("FAILED", said),
    };
    let said = printable(said);
    output::print(&format!("{:10} {what:10} {word}: {said}\n", preset.name))
}

fn compare(folder: &AgentFolder, preset: &AgentPreset) -> Result<String, String> {
    let names = [preset.name, "node"];
    let names = &names[..if preset.needs_node() { 2 } else { 1 }];
    let mut files = 0;
    for name in names {
        let again = format!(
            "; `hermetic agents update {}` installs it anew",
            preset.name
        );
        let failed = |error: &dyn std::error::Error| format!("{error}{again}");
        let installed = folder.installed(name).map_err(|error| failed(&error))?;
        let installed = installed.ok_or_else(|| format!("{name} is not there{again}"))?;
        let difference = folder.verify(name, &installed);
        let difference = difference.map_err(|error| failed(&error))?;
        if !difference.is_empty() {
            return Err(format!("{name}: {}{again}", difference.summary()));
        }
        files += installed.files;
    }
    Ok(format!("{files} files are what was installed"))
}

/// Starts it in a sandbox of the chats' usual backend without any network, up to the answer to the protocol's first
/// question.
fn start(config: &Config, preset: &AgentPreset) -> Result<String, String> {
    let resolved = resolve_gateway_backend(config).map_err(|error| error.to_string())?;
    let kind = resolved.backend;
    let programs = app::agent_programs(config);
    let program = programs.without_keys(preset, kind);
    let program = program.map_err(|error| error.to_string())?;
    let mut answered = Err(String::new());
    let ran = on_runtime(async {
        answered = in_sandbox((config, kind), &program, preset).await;
        Ok(ExitReason::Ok)
    });
    ran.map_err(|failure| failure.to_string())?;
    answered
}

async fn in_sandbox(
    (config, kind): (&Config, BackendKind),
    program: &AgentProgram,
    preset: &AgentPreset,
) -> Result<String, String> {
    let text = |failure: CommandFailure| format!("{failure}; {}", failure.why().remedy());
    let installation = app::installation(config.home()).map_err(|error| text(error.into()))?;
    let spec = SandboxSpec {
        mounts: program
            .mounts
            .iter()
            .map(|mount| HostMount {
                source: mount.outside.clone(),
                target: mount.inside.clone(),
                mode: MountMode::ReadOnly,
            })
            .collect(),
        ..app::passing(config, kind, installation.clone(), "cli")
    };
    let caller = BackendCaller::CommandLine(output::progress);
    let none = PendingHeadStart::none();
    let backend = app::backend_to_create(config, &installation, kind, caller, none);
    let backend = backend.map_err(|error| text(error.into()))?;
    let sandbox = PassingSandbox::create(&backend, &spec).await;
    let sandbox = sandbox.map_err(|error| text(error.into()))?;
    let answered = greet((config, kind), &sandbox, program, preset).await;
    let destroyed = sandbox.destroy().await;
    destroyed.map_err(|error| error.to_string())?;
    answered
}

async fn greet(
    (config, kind): (&Config, BackendKind),
    sandbox: &Sandbox,
    program: &AgentProgram,
    preset: &AgentPreset,
) -> Result<String, String> {
    let home = sandbox.resolve("~").await;
    let home = home.map_err(|error| error.to_string())?;
    let home = String::from_utf8_lossy(&home.path.0).into_owned();
    let words = upload_program(sandbox.warden(), &home, program).await?;
    let mut command = Command::words(words);
    command.env = program.environment.clone();
    let keys = preset.keys.iter();
    command
        .env
        .extend(keys.map(|key| (key.inside.to_owned(), key.placeholder())));
    command.stdin = CommandInput::Open;
    command.timeout = Some(LONGEST_START);
    let cleared = judging::cleared(config, kind, command, false);
    let (cleared, _) = cleared.map_err(|failure| failure.to_string())?;
    let running = sandbox.start(cleared).await;
    let mut running = running.map_err(|error| error.to_string())?;
    let stdin = running.stdin();
    let question = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {}},
    });
    let line = format!("{question}\n");
    let written = stdin.write(line.as_bytes()).await;
    written.map_err(|error| error.to_string())?;
    let answer = first_answer(&mut running).await?;
    let version = &answer["result"]["protocolVersion"];
    match version.as_u64() {
        Some(version) => Ok(format!(
            "it answers on {kind}, with version {version} of the protocol"
        )),
        None => Err(format!(
            "it answers otherwise: {}",
            shortened(&answer.to_string())
        )),
    }
}

/// The line that answers the first question. Others may come before it.
async fn first_answer(running: &mut RunningCommand) -> Result<Value, String> {
    let (mut out, mut complaint) = (Vec::new(), Vec::new());
    loop {
        let event = running.next().await.map_err(|error| error.to_string())?;
        match event {
            Some(RunEvent::Out(bytes)) => out.extend_from_slice(&bytes),
            Some(RunEvent::Err(bytes)) if complaint.len() < MOST_COMPLAINT => {
                complaint.extend_from_slice(&bytes);
            }
            Some(RunEvent::Ended(_)) | None => {
                let said = shortened(&String::from_utf8_lossy(&complaint));
                return Err(format!("it ended before it answered: {said}"));
            }
            Some(_) => {}
        }
        while let Some(end) = out.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = out.drain(..=end).collect();
            match serde_json::from_slice::<Value>(&line) {
                Ok(answer) if answer["id"] == 0 => return Ok(answer),
                _ => {}
            }
        }
        if out.len() > MOST_ANSWER {
            return Err("it writes without an end and does not answer".to_owned());
        }
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.is_empty() {
        true => "it said nothing".to_owned(),
        false => text.chars().take(SHOWN_COMPLAINT).collect(),
    }
}
