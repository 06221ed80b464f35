//! Root's part of a migration into the home of somebody else, such as a package's.
//!
//! That user cannot read the folder of whoever ran Hermes, and root must not write into a folder in which that
//! user could put a link. So root reads, and puts what was read into a folder of that user's for a moment; this
//! program, started once more with that user's rights, takes it over from there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hermetic_config::HomeFolder;
use hermetic_types::InstallationId;

use super::take_over::write_below;
use crate::failure::CommandFailure;
use crate::folder_reader::{FolderReader, LeftOutFile};
use crate::output;
use crate::ownership::HomeOwner;

/// Everything that a migration looks at or copies. The last two say whether a gateway of Hermes runs.
const FILES: [&str; 7] = [
    "config.yaml",
    ".env",
    "gateway.json",
    "SOUL.md",
    "cron/jobs.json",
    "gateway.pid",
    "gateway_state.json",
];
const FOLDERS: [&str; 4] = ["memories", "skills", "pairing", "platforms/pairing"];

/// What may be read of a person's folder: what is that person's own, and nothing that a link leads to.
pub(super) fn reader(theirs: &Path) -> FolderReader {
    fs::metadata(theirs).map_or_else(
        |_| FolderReader::default(),
        |about| FolderReader::only_of(about.uid()),
    )
}

/// Takes it over as the owner of our home, and tells what could not be read for him.
pub(super) fn take_over(
    theirs: &Path,
    ours: &HomeFolder,
    owner: &HomeOwner,
) -> Result<Vec<LeftOutFile>, CommandFailure> {
    let (staged, left_out) = StagedHermes::build(theirs, owner)?;
    let mut command = owner.own_program()?;
    command.arg("--home").arg(ours.root());
    command.args(["migrate", "--apply", "--json", "--from"]);
    let ended = command
        .arg(&staged.0)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            let remedy = "install the program where everybody can run it, such as /usr/local/bin";
            CommandFailure::new(format!("not run as {}: {error}", owner.called()), remedy)
        })?;
    // It ends with 1 as well where something has to be done first, which our own report names.
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    if report["applied"] == true {
        return Ok(left_out);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let what = format!("as {}: {}", owner.called(), output::printable(said.trim()));
    Err(CommandFailure::new(what, "mend that and say it once more"))
}

/// A copy that is the other user's, gone with this.
struct StagedHermes(PathBuf);

impl StagedHermes {
    fn build(theirs: &Path, owner: &HomeOwner) -> Result<(Self, Vec<LeftOutFile>), CommandFailure> {
        let name = format!("hermetic-migrate-{}", InstallationId::random());
        let staged = Self(std::env::temp_dir().join(name));
        let failed = |error: io::Error| CommandFailure::file("write", &staged.0, &error);
        let made = DirBuilder::new().mode(0o700).create(&staged.0);
        made.map_err(failed)?;
        let mut reader = reader(theirs);
        staged.fill(theirs, &mut reader).map_err(failed)?;
        // Root's until here: nobody could put a link into it.
        hand_over(&staged.0, owner).map_err(failed)?;
        Ok((staged, reader.left_out()))
    }

    fn fill(&self, theirs: &Path, reader: &mut FolderReader) -> io::Result<()> {
        for name in FILES {
            let path = theirs.join(name);
            reader.read_file(&path, name, &mut |file| write_below(&self.0, file))?;
        }
        for name in FOLDERS {
            let into = self.0.join(name);
            reader.read_folder(&theirs.join(name), &mut |file| write_below(&into, file))?;
        }
        Ok(())
    }
}

/// From below, so that nothing is in a folder that is the other's already.
fn hand_over(path: &Path, owner: &HomeOwner) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            hand_over(&entry?.path(), owner)?;
        }
    }
    chown(path, Some(owner.uid), None)
}

impl Drop for StagedHermes {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
