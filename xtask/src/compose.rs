//! Docker Compose 2, which Debian 12 has only the first version of: the plugin of Debian's next
//! release, in a folder under the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::packages::DebianRelease;
use crate::{leftovers, machine, packages, program, say};

const PLUGIN: &str = "cli-plugins/docker-compose";

/// The folder that docker's own client takes for its configuration; nothing where it has the
/// plugin already, or none can be had.
pub(crate) fn provide() -> Option<PathBuf> {
    if program::works(Command::new("docker").args(["compose", "version"])) {
        return None;
    }
    match install() {
        Ok(folder) => Some(folder),
        Err(why) => {
            say::note(&format!("docker compose is not to be had: {why}"));
            None
        }
    }
}

fn install() -> Result<PathBuf, ChoreFailure> {
    let folder = machine::folder("compose")?;
    let plugin = folder.join(PLUGIN);
    if plugin.is_file() {
        return Ok(folder);
    }
    say::note("Docker Compose 2 from Debian's next release");
    let work = leftovers::folder("compose");
    let unpacked = work.join("program/usr/libexec/docker").join(PLUGIN);
    let done = packages::fetch(
        &work,
        DebianRelease::here("trixie"),
        &[("docker-compose", "program")],
    )
    .and_then(|()| {
        fs::create_dir_all(folder.join("cli-plugins"))
            .map_err(ChoreFailure::file("make its folder"))?;
        // Under another name until it is whole.
        let half = plugin.with_extension("half");
        fs::copy(&unpacked, &half).map_err(ChoreFailure::file("keep the plugin"))?;
        fs::rename(&half, &plugin).map_err(ChoreFailure::file("keep the plugin"))
    });
    let _ = fs::remove_dir_all(&work);
    done.map(|()| folder)
}
