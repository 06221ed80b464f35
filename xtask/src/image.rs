//! The image the tests run in, made without a registry: Debian's own packages, unpacked into a root
//! file system and imported.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::LabEngine;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

pub(crate) const NAME: &str = "hermetic-test:base";

/// What normal work in a sandbox takes.
const PACKAGES: &str = "bash,ca-certificates,curl,git,procps,python3";

/// Where Debian and Ubuntu keep the addresses of their packages.
const SOURCES: [&str; 3] = [
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
    "/etc/apt/sources.list",
];

/// Both the file system and the image are kept between runs, and made again when the recipe
/// changes.
pub(crate) fn provide(engine: &LabEngine) -> Result<(), ChoreFailure> {
    let suite = suite()?;
    let recipe = recipe(&suite);
    if in_engine(engine, &recipe) {
        say::note(&format!("{NAME} is there already"));
        return Ok(());
    }
    let tar = root_file_system(&suite, &recipe)?;
    say::note(&format!("importing it as {NAME}"));
    program::show(
        engine
            .docker()
            .args(["import", "--change", "CMD [\"/bin/bash\"]"])
            .args(["--change", &format!("LABEL hermetic.recipe={recipe}")])
            .arg(&tar)
            .arg(NAME),
    )
}

/// The same file system as a folder, for runtimes that need no more.
pub(crate) fn folder() -> Result<PathBuf, ChoreFailure> {
    let suite = suite()?;
    let recipe = recipe(&suite);
    let folder = machine::folder("image")?.join(&recipe);
    if folder.is_dir() {
        return Ok(folder);
    }
    let tar = root_file_system(&suite, &recipe)?;
    say::note("unpacking it into a folder");
    let half = folder.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half).map_err(ChoreFailure::file(format!("make {}", half.display())))?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&tar).arg("-C").arg(&half);
    program::show(unpack.arg("--exclude=./dev/*"))?;
    fs::rename(&half, &folder).map_err(ChoreFailure::file(format!("keep {}", folder.display())))?;
    Ok(folder)
}

fn suite() -> Result<String, ChoreFailure> {
    machine::os_release("VERSION_CODENAME").ok_or_else(|| ChoreFailure::Lacking {
        what: "this system does not say which release it is".to_owned(),
        remedy: "VERSION_CODENAME in /etc/os-release is how Debian and Ubuntu do".to_owned(),
    })
}

fn recipe(suite: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (suite, PACKAGES).hash(&mut hasher);
    format!("{suite}-{:016x}", hasher.finish())
}

fn in_engine(engine: &LabEngine, recipe: &str) -> bool {
    let label = "{{index .Config.Labels \"hermetic.recipe\"}}";
    program::listen(
        engine
            .docker()
            .args(["image", "inspect", "--format", label, NAME]),
    )
    .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == recipe)
}

fn root_file_system(suite: &str, recipe: &str) -> Result<PathBuf, ChoreFailure> {
    let folder = machine::folder("image")?;
    let tar = folder.join(format!("{recipe}.tar"));
    if tar.is_file() {
        say::note("its file system is there already");
        return Ok(tar);
    }
    say::note("making its file system; this takes a minute or two");
    // Under another name until it is whole, so that an interrupted run leaves no half image.
    let half = folder.join("unfinished.tar");
    let mut command = Command::new("mmdebstrap");
    command
        .args(["--variant=minbase", &format!("--include={PACKAGES}")])
        .args(["--aptopt=Acquire::Retries \"3\"", suite])
        .arg(&half);
    command.args(SOURCES.iter().find(|file| Path::new(file).is_file()));
    program::show(&mut command)?;
    fs::rename(&half, &tar).map_err(ChoreFailure::file(format!("keep {}", tar.display())))?;
    Ok(tar)
}
