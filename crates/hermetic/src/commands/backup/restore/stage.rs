//! The folder beside a home in which a restore is prepared, and the moves that put it in place.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_config::HomeFolder;
use hermetic_types::InstallationId;

use super::super::archive;
use super::super::manifest::{BackupManifest, FilePlace, is_workspace};
use super::{RestoreArgs, no_backup};
use crate::failure::CommandFailure;

/// Files of ours that hold nothing.
pub(super) const LOCKS: [&str; 2] = ["gateway.lock", "backup.lock"];

/// What was moved aside.
pub(super) type MovedAside = Vec<PathBuf>;

const STAGE_NAME: &str = ".hermetic-restore-";

/// The folder in which a restore is prepared, gone with it unless it was put in place.
pub(super) struct RestoreStage(PathBuf);

impl RestoreStage {
    pub(super) fn begin(root: &Path) -> Result<Self, CommandFailure> {
        // Two containers have the same process number, and each its own restore.
        let name = format!("{STAGE_NAME}{}", InstallationId::random());
        let mut builder = DirBuilder::new();
        let builder = builder.mode(0o700);
        let make = |folder: &Path| {
            let made = builder.create(folder);
            made.map_err(|error| CommandFailure::file("make", folder, &error))
        };
        let path = root.join(name);
        make(&path)?;
        // From here on it is ours to remove.
        let stage = Self(path);
        make(&stage.home())?;
        make(&stage.state())?;
        Ok(stage)
    }

    fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    pub(super) fn take_out(
        &self,
        file: &mut File,
        args: &RestoreArgs,
    ) -> Result<(), CommandFailure> {
        let taken = archive::read(file, |(name, mode), bytes| {
            // Put into sandboxes when the home is there.
            if is_workspace(name) {
                return io::copy(bytes, &mut io::sink()).map(drop);
            }
            // Nobody but us makes anything below these two, so no link leads out of them.
            let path = match FilePlace::of(name) {
                Some(FilePlace::Home(below)) => self.home().join(below),
                Some(FilePlace::State(below)) => self.state().join(below),
                None => return Err(io::Error::other("nobody knows where it belongs")),
            };
            if let Some(folder) = path.parent() {
                let mode = match folder.starts_with(self.home().join("skills")) {
                    true => SKILL_FOLDER_MODE,
                    false => FOLDER_MODE,
                };
                DirBuilder::new()
                    .recursive(true)
                    .mode(mode)
                    .create(folder)?;
            }
            write(&path, mode, bytes)
        });
        taken.map_err(|why| no_backup(&args.file, &why))?;
        if args.copy {
            let path = self.state().join("installation");
            let name = format!("{}\n", InstallationId::random());
            // Gone first, as `write` writes over nothing.
            let renamed =
                fs::remove_file(&path).and_then(|()| write(&path, FILE_MODE, &mut name.as_bytes()));
            renamed.map_err(|error| CommandFailure::file("write", &path, &error))?;
        }
        Ok(())
    }

    /// Our folder last: with it there is an installation.
    pub(super) fn put_in_place(
        &self,
        home: &HomeFolder,
        there: &[PathBuf],
        manifest: &BackupManifest,
    ) -> Result<MovedAside, CommandFailure> {
        let mut moves = UndoableMoves::default();
        // Our folder first: it may be a mount, which nobody can move, and then nothing was moved.
        for path in there.iter().rev() {
            moves.make(path, &aside(path, manifest.made_at))?;
        }
        let moved = moves.targets();
        for entry in fs::read_dir(self.home()).into_iter().flatten().flatten() {
            moves.make(&entry.path(), &home.root().join(entry.file_name()))?;
        }
        // Its files are on the disk by name before the folder gets the name that makes it an
        // installation.
        let synced = File::open(self.state()).and_then(|folder| folder.sync_all());
        synced.map_err(|error| CommandFailure::file("write", &self.state(), &error))?;
        // Empty but for these, or moved aside above. What somebody put there meanwhile stops the next step.
        for lock in LOCKS {
            let _ = fs::remove_file(home.state().join(lock));
        }
        moves.make(&self.state(), &home.state())?;
        moves.keep();
        let synced = File::open(home.root()).and_then(|folder| folder.sync_all());
        synced.map_err(|error| CommandFailure::file("write", home.root(), &error))?;
        Ok(moved)
    }
}

impl Drop for RestoreStage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FOLDER_MODE: u32 = 0o700;
/// Skills are shown to sandboxes, which may be another user.
const SKILL_FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o600;

fn write(path: &Path, mode: u32, bytes: &mut dyn Read) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)?;
    io::copy(bytes, &mut file)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// `config.yaml.before-1767225600`, and a number more where that is taken.
fn aside(path: &Path, at: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let first = path.with_file_name(format!("{name}.before-{at}"));
    let more = (2..).map(|number| path.with_file_name(format!("{name}.before-{at}-{number}")));
    let mut free = std::iter::once(first)
        .chain(more)
        .filter(|path| path.symlink_metadata().is_err());
    free.next().unwrap_or_else(|| path.to_owned())
}

/// Files that were moved, and are moved back if not all of them could be.
#[derive(Default)]
struct UndoableMoves(Vec<(PathBuf, PathBuf)>);

impl UndoableMoves {
    fn make(&mut self, from: &Path, to: &Path) -> Result<(), CommandFailure> {
        fs::rename(from, to).map_err(|error| CommandFailure::file("write", to, &error))?;
        self.0.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn targets(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(_, to)| to.clone()).collect()
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for UndoableMoves {
    fn drop(&mut self) {
        // In the opposite order: a later move may stand where an earlier one made room.
        for (from, to) in self.0.iter().rev() {
            if let Err(error) = fs::rename(to, from) {
                tracing::error!(%error, was = %from.display(), is = %to.display(), "not moved back");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_is_moved_back_when_the_rest_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let [config, aside, env] =
            ["config.yaml", "aside", ".env"].map(|name| folder.path().join(name));
        fs::write(&config, "mine").unwrap();
        let mut moves = UndoableMoves::default();
        moves.make(&config, &aside).unwrap();
        assert!(moves.make(&env, &folder.path().join("elsewhere")).is_err());
        assert!(!config.exists());
        drop(moves);
        assert_eq!(fs::read_to_string(&config).unwrap(), "mine");
        assert!(!aside.exists());

        let mut moves = UndoableMoves::default();
        moves.make(&config, &aside).unwrap();
        moves.keep();
        assert!(aside.exists());
    }
}
