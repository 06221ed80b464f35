//! What the program says about itself, for those who install it: manual pages, completions, units and a
//! first configuration. All of it comes from the program, so that none can differ from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::BuiltProgram;
use super::platform::DistTarget;
use super::sysroot::OldSysroot;
use crate::failure::ChoreFailure;
use crate::{machine, program};

/// A folder with the papers.
#[derive(Debug)]
pub(crate) struct ProgramPapers {
    folder: PathBuf,
}

/// The shells, and where each looks for a completion that a package brings.
pub(crate) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/hermetic"),
    ("zsh", "usr/share/zsh/vendor-completions/_hermetic"),
    ("fish", "usr/share/fish/vendor_completions.d/hermetic.fish"),
];

impl ProgramPapers {
    /// Written by the program itself, in an emulator if need be, or by one of the same sources where this
    /// machine cannot run it.
    pub(crate) fn write(
        built: &BuiltProgram,
        target: DistTarget,
        folder: PathBuf,
    ) -> Result<Self, ChoreFailure> {
        let words = words_that_start(built, target)?;
        let papers = Self { folder };
        let home = papers.folder.join("home");
        fs::create_dir_all(papers.folder.join("completions"))
            .map_err(ChoreFailure::file("make a folder for completions"))?;
        let hermetic = || {
            let mut command = Command::new(&words[0]);
            // Nothing of whoever builds it is read or written.
            command
                .args(&words[1..])
                .env_clear()
                .env("HOME", &home)
                .arg("--home")
                .arg(&home);
            command
        };
        program::show(hermetic().args(["config", "init"]))?;
        program::show(hermetic().arg("man").arg(papers.man()))?;
        program::show(
            hermetic()
                .args(["gateway", "packaged-units"])
                .arg(papers.units()),
        )?;
        for (shell, _) in COMPLETIONS {
            let said = program::listen(hermetic().args(["completions", shell]))?;
            if !said.status.success() || said.stdout.is_empty() {
                return Err(ChoreFailure::Ended {
                    line: format!("hermetic completions {shell}"),
                    status: said.status,
                });
            }
            fs::write(papers.completion(shell), said.stdout)
                .map_err(ChoreFailure::file("write a completion"))?;
        }
        Ok(papers)
    }

    pub(crate) fn man(&self) -> PathBuf {
        self.folder.join("man")
    }

    pub(crate) fn units(&self) -> PathBuf {
        self.folder.join("units")
    }

    pub(crate) fn completion(&self, shell: &str) -> PathBuf {
        self.folder.join("completions").join(shell)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("home/config.yaml")
    }
}

fn words_that_start(
    built: &BuiltProgram,
    target: DistTarget,
) -> Result<Vec<PathBuf>, ChoreFailure> {
    if target.is_host() {
        return Ok(vec![built.path.clone()]);
    }
    match machine::emulator(target) {
        Some(emulator) => {
            let library = OldSysroot::provide(target)?.folder().to_owned();
            Ok(vec![emulator, "-L".into(), library, built.path.clone()])
        }
        None => Ok(vec![own_program()?]),
    }
}

/// Of the machine that this runs on.
fn own_program() -> Result<PathBuf, ChoreFailure> {
    program::show(machine::cargo().args(["build", "--locked", "--package", "hermetic"]))?;
    Ok(machine::target().join("debug/hermetic"))
}

/// The files of a folder, by name.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, ChoreFailure> {
    let failed = || ChoreFailure::file(format!("read {}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        files.push(entry.map_err(failed())?.path());
    }
    files.sort();
    Ok(files)
}
