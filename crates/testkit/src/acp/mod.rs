//! An agent of somebody else's: a program that speaks the Agent Client Protocol, hostile on demand.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The program itself. The first word of a prompt says what it does: see the file.
pub const AGENT: &str = include_str!("agent.py");

/// How it is started, wherever there is a Python.
pub fn agent_command(options: &[&str]) -> Vec<String> {
    let words = ["python3", "-u", "-c", AGENT].into_iter();
    words
        .chain(options.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// Puts it into the folder of installed agents in OpenCode's place, in which it finds `VERSION`. As an update does it:
/// whoever sees the one before goes on seeing that.
pub fn put_in_place_of_opencode(agents: &Path, version: &str) -> io::Result<()> {
    let staging = agents.join(".staging-opencode");
    let program = staging.join("tree/node_modules/opencode-linux-x64-baseline/bin/opencode");
    fs::create_dir_all(program.parent().unwrap_or(&staging))?;
    fs::write(staging.join("tree/agent.py"), AGENT)?;
    let start = format!(
        "#!/bin/sh\nVERSION={version} exec python3 -u \"${{0%/node_modules/*}}/agent.py\"\n"
    );
    fs::write(&program, start)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let record =
        format!(r#"{{"package":"p","version":"{version}","files":2,"bytes":2,"checksum":"x"}}"#);
    fs::write(staging.join("installed"), record)?;
    let place = agents.join("opencode");
    if place.exists() {
        fs::rename(&place, agents.join(".previous-opencode"))?;
    }
    fs::rename(staging, place)
}
