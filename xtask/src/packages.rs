//! Packages of another release of Debian, unpacked into a folder: nothing of the machine's changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::program;

/// A release of Debian, for this machine or for one of another kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebianRelease<'a> {
    pub(crate) suite: &'a str,
    /// As Debian names it; this machine's own if none is named.
    pub(crate) architecture: Option<&'a str>,
}

impl<'a> DebianRelease<'a> {
    pub(crate) fn here(suite: &'a str) -> Self {
        Self {
            suite,
            architecture: None,
        }
    }
}

/// Makes the folder and unpacks each package into a folder in it.
pub(crate) fn fetch(
    work: &Path,
    release: DebianRelease<'_>,
    packages: &[(&str, &str)],
) -> Result<(), ChoreFailure> {
    // Fails where somebody else made it: what is in it will be run.
    fs::create_dir(work).map_err(ChoreFailure::file(format!("make {}", work.display())))?;
    for folder in ["lists/partial", "cache/partial", "parts"] {
        let folder = work.join(folder);
        fs::create_dir_all(&folder)
            .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
    }
    let list = format!(
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
         http://deb.debian.org/debian {} main\n",
        release.suite
    );
    fs::write(work.join("release.list"), list)
        .map_err(ChoreFailure::file("write the list of packages"))?;
    program::show(apt_get(work, release).args(["update"]))?;
    let names = packages.iter().map(|(package, _)| package);
    program::show(apt_get(work, release).arg("download").args(names))?;
    for (package, folder) in packages {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(downloaded(work, package)?);
        program::show(unpack.arg(work.join(folder)))?;
    }
    Ok(())
}

/// With lists and packages of its own: the machine's stay as they are.
fn apt_get(work: &Path, release: DebianRelease<'_>) -> Command {
    let at = |name: &str| work.join(name).display().to_string();
    let mut command = Command::new("apt-get");
    command
        .current_dir(work)
        .args(["-q", "-o", "Acquire::Retries=3"]);
    for option in [
        format!("Dir::Etc::sourcelist={}", at("release.list")),
        format!("Dir::Etc::sourceparts={}", at("parts")),
        format!("Dir::State::lists={}", at("lists")),
        format!("Dir::Cache={}", at("cache")),
        // What is installed here is no reason to ask for another version than the release has.
        "Dir::State::status=/dev/null".to_owned(),
        // A mirror that stands still has lists that ran out.
        "Acquire::Check-Valid-Until=false".to_owned(),
        "Acquire::Languages=none".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    if let Some(architecture) = release.architecture {
        for key in ["APT::Architecture", "APT::Architectures"] {
            command.args(["-o", &format!("{key}={architecture}")]);
        }
    }
    command
}

fn downloaded(work: &Path, package: &str) -> Result<PathBuf, ChoreFailure> {
    let entries = fs::read_dir(work).map_err(ChoreFailure::file("look for packages"))?;
    let prefix = format!("{package}_");
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".deb"))
        })
        .ok_or_else(|| ChoreFailure::Lacking {
            what: format!("{package} was not downloaded"),
            remedy: "install it by hand".to_owned(),
        })
}
