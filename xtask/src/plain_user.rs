//! The tests once more without root's rights, started by root.
//!
//! Cargo lets a runner stand before every test binary; ours drops to `nobody`. Where folders above
//! the source tree are closed to others (as `/root` is), it does so in a mount namespace of its own
//! in which these are covered by open ones that lead to this tree only.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::{leftovers, machine, program, say};

pub(crate) struct PlainUser {
    runner: PathBuf,
    variable: String,
    /// Where the user may write; goes with us. Short, for the sockets that tests make in it.
    home: PathBuf,
}

const SCRIPT: &str = include_str!("plain_user.sh");

/// As in the script.
const NOBODY: u32 = 65534;

/// Why this machine has no run as a plain user.
pub(crate) type NoPlainRun = String;

impl PlainUser {
    pub(crate) fn new() -> Result<Result<Self, NoPlainRun>, ChoreFailure> {
        let (root, target) = (machine::root(), machine::target());
        if is_awkward(&root) || is_awkward(&target) {
            // Cargo takes the runner's path apart at spaces.
            return Ok(Err("a path has a space or a quote in it".to_owned()));
        }
        let user = Self::prepare(&root, &target)?;
        let mut probe = Command::new(&user.runner);
        let probed = program::listen(probe.args(["test", "-r"]).arg(root.join("Cargo.toml")))?;
        if probed.status.success() {
            say::note("as uid 65534, without capabilities, groups or a home; by setpriv");
            return Ok(Ok(user));
        }
        let said = String::from_utf8_lossy(&probed.stderr);
        let why = said
            .lines()
            .last()
            .unwrap_or("the source tree is closed to others");
        say::note(why);
        Ok(Err(why.to_owned()))
    }

    fn prepare(root: &Path, target: &Path) -> Result<Self, ChoreFailure> {
        let variable = format!("CARGO_TARGET_{}_RUNNER", triple()?);
        let runner = machine::folder("plain-user")?.join("run");
        let home = leftovers::folder("nobody");
        fs::create_dir(&home)
            .and_then(|()| chown(&home, Some(NOBODY), Some(NOBODY)))
            .map_err(ChoreFailure::file(format!("make {}", home.display())))?;
        let user = Self {
            runner,
            variable,
            home,
        };
        let script = SCRIPT
            .replace("@ROOT@", &root.to_string_lossy())
            .replace("@TARGET@", &target.to_string_lossy())
            .replace("@HOME@", &user.home.to_string_lossy());
        fs::write(&user.runner, script)
            .and_then(|()| fs::set_permissions(&user.runner, Permissions::from_mode(0o755)))
            .map_err(ChoreFailure::file(format!(
                "write {}",
                user.runner.display()
            )))?;
        Ok(user)
    }

    /// Makes a cargo command start every test binary that way.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(&self.variable, &self.runner);
    }
}

impl Drop for PlainUser {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.home) {
            say::note(&format!("cannot remove {}: {why}", self.home.display()));
        }
    }
}

fn is_awkward(path: &Path) -> bool {
    path.to_str()
        .is_none_or(|text| text.contains(|c: char| c.is_whitespace() || c == '\''))
}

/// The machine's triple, as cargo writes it in a variable's name.
fn triple() -> Result<String, ChoreFailure> {
    let output = program::listen(Command::new("rustc").arg("-vV"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(|triple| triple.to_uppercase().replace('-', "_"))
        .ok_or_else(|| ChoreFailure::Lacking {
            what: "rustc does not say what machine this is".to_owned(),
            remedy: "`rustc -vV` should have a line `host: ...`".to_owned(),
        })
}
