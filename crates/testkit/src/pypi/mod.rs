//! Servers and clients that others wrote, from PyPI: they do not share our reading of a specification.
//!
//! Each package is installed once into the target folder. Where there is no python, no pip or no package,
//! the reason is returned, and the test that wanted it is skipped aloud.

mod pywa;
mod synapse;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

pub use pywa::PywaReceiver;
pub use synapse::{Synapse, SynapseLimits};

/// Synapse takes a minute on a machine that does nothing else.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(480);

/// The folder of a package and what it depends on, and the python that it was installed by, for a test that
/// runs its program elsewhere.
pub async fn package(
    name: &str,
    version: &str,
    module: &str,
) -> Result<(PathBuf, PathBuf), String> {
    let packages = install(name, version, module).await?;
    let asked = Command::new("python3")
        .args([
            "-c",
            "import os, sys; print(os.path.realpath(sys.executable))",
        ])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| format!("python3 does not start: {error}"))?;
    let python = String::from_utf8_lossy(&asked.stdout);
    Ok((packages, PathBuf::from(python.trim())))
}

/// The folder with the package and what it depends on, shared by all tests and runs. It is there when the
/// module is.
async fn install(name: &str, version: &str, module: &str) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let folder = target_folder().join("pypi").join(name).join(version);
    let packages = folder.join("packages");
    if packages.join(module).exists() {
        return Ok(packages);
    }
    fs::create_dir_all(&folder).map_err(text)?;
    // Installed aside and moved, so that tests which start together do not see half of it.
    let aside = tempfile::tempdir_in(&folder).map_err(text)?;
    let package = format!("{name}=={version}");
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--target")
        .arg(aside.path().join("packages"))
        .arg(&package)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    let done = timeout(INSTALL_TIMEOUT, pip)
        .await
        .map_err(|_| format!("pip takes too long to install {package}"))?
        .map_err(|error| format!("python3 does not start: {error}"))?;
    if !done.success() {
        return Err(format!("pip cannot install {package}"));
    }
    let moved = fs::rename(aside.path().join("packages"), &packages);
    if moved.is_err() && !packages.join(module).exists() {
        return Err(format!("{package} cannot be put into {}", folder.display()));
    }
    Ok(packages)
}

fn target_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    // target/<profile>/deps/<binary>, but for programs: target/<profile>/<binary>
    let is_test = binary
        .parent()
        .is_some_and(|folder| folder.ends_with("deps"));
    binary
        .ancestors()
        .nth(if is_test { 3 } else { 2 })
        .map_or_else(std::env::temp_dir, Path::to_path_buf)
}
