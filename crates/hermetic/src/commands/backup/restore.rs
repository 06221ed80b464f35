//! `hermetic restore`: a backup put into a home.
//!
//! Everything is taken out beside its place and checked against the sums of the manifest first. Then the
//! configuration is moved to its place and the folder that is ours last, in one step: whatever happens
//! before leaves a home without an installation, never half of one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_config::HomeFolder;
use hermetic_store::{Store, StoreVersion};
use hermetic_types::{InstallationId, SystemClock};
use serde_json::json;

use super::archive;
use super::bring_back::{self, BringBackOutcome, BroughtBack};
use super::manifest::{BackupManifest, FilePlace, is_workspace, place_of};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::commands::{inputs_of_new_home, on_this_thread};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayLock, LockError};
use crate::output;
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is deleted: with --replace, what is there is moved aside and named. Files of sandboxes that are in the
backup are put into new sandboxes of the same conversations.

Examples:
  hermetic restore hermetic-20260101-040000.tar
  hermetic --home /srv/bot restore backup.tar
  hermetic restore --check backup.tar")]
pub(crate) struct RestoreArgs {
    /// The backup
    file: PathBuf,
    /// Only check that it is whole
    #[arg(long)]
    check: bool,
    /// Move aside what is in the home already
    #[arg(long)]
    replace: bool,
    /// Make an installation of its own, beside the original on this machine
    #[arg(long)]
    copy: bool,
    /// Only put files into sandboxes, in a home that is restored already
    #[arg(long, conflicts_with_all = ["check", "replace", "copy"])]
    workspaces: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &RestoreArgs) -> Result<ExitReason, CommandFailure> {
    let home = inputs_of_new_home(cli)?.home;
    let mut file = archive::open(&args.file)
        .map_err(|error| CommandFailure::file("read", &args.file, &error))?;
    // Twice, so that a file that is no backup changes nothing at all.
    let manifest = archive::read(&mut file, |_, bytes| {
        io::copy(bytes, &mut io::sink()).map(drop)
    })
    .map_err(|why| no_backup(&args.file, &why))?;
    fits(&manifest)?;
    if args.check {
        return checked(&manifest, args);
    }
    by_hand::or_refuse_in(&home)?;
    refuse_root_for_another(&home)?;
    on_this_thread(async {
        let moved = match args.workspaces {
            true => MovedAside::new(),
            false => {
                is_apart(&manifest, &home, args)?;
                put_back(&mut file, &manifest, &home, args).await?
            }
        };
        let brought = bring_back::into_home(cli, &mut file, &manifest).await;
        let brought = brought.map_err(|failure| not_filled(&failure.to_string(), args))?;
        report(&manifest, &home, (&moved, &brought), args)?;
        let failed = brought
            .iter()
            .filter(|one| matches!(one.outcome, BringBackOutcome::Failed(_)));
        match failed.count() {
            0 => Ok(ExitReason::Ok),
            failed => Err(not_filled(
                &format!("{failed} of {} failed", brought.len()),
                args,
            )),
        }
    })
}

fn not_filled(why: &str, args: &RestoreArgs) -> CommandFailure {
    CommandFailure::new(
        format!("the home is restored, and not all files of its sandboxes are: {why}"),
        format!(
            "mend that (`hermetic doctor`), then: hermetic restore --workspaces {}",
            args.file.display()
        ),
    )
}

fn checked(manifest: &BackupManifest, args: &RestoreArgs) -> Result<ExitReason, CommandFailure> {
    match args.json {
        true => output::print_json(manifest)?,
        false => output::print(&format!(
            "{} is whole: {} files of {}, with those of {} sandboxes, made by version {}\n",
            args.file.display(),
            manifest.files.len(),
            manifest.home.display(),
            manifest.workspaces.len(),
            manifest.program
        ))?,
    }
    Ok(ExitReason::Ok)
}

/// A store that this program cannot read would be found out at the next start.
fn fits(manifest: &BackupManifest) -> Result<(), CommandFailure> {
    if StoreVersion(manifest.store_version) > StoreVersion::ours() {
        return Err(CommandFailure::new(
            format!(
                "the backup was made by version {}, whose store this version ({}) cannot read",
                manifest.program,
                env!("CARGO_PKG_VERSION")
            ),
            "use that version of the program, or a later one",
        ));
    }
    Ok(())
}

/// Two homes with one name on one machine would take each other's sandboxes.
fn is_apart(
    manifest: &BackupManifest,
    home: &HomeFolder,
    args: &RestoreArgs,
) -> Result<(), CommandFailure> {
    let original = HomeFolder::at(&manifest.home);
    let name = fs::read_to_string(original.state().join("installation")).unwrap_or_default();
    let real = |home: &HomeFolder| {
        fs::canonicalize(home.root()).unwrap_or_else(|_| home.root().to_owned())
    };
    let is_there = name.trim() == manifest.installation && real(&original) != real(home);
    if is_there && !args.copy {
        return Err(CommandFailure::new(
            format!(
                "the original is still at {}: two installations of one name would take each other's \
                 sandboxes",
                original.root().display()
            ),
            "move it away, or add --copy for an installation of its own",
        ));
    }
    Ok(())
}

/// Files of ours that hold nothing.
const LOCKS: [&str; 2] = ["gateway.lock", "backup.lock"];

/// What was moved aside.
type MovedAside = Vec<PathBuf>;

async fn put_back(
    file: &mut File,
    manifest: &BackupManifest,
    home: &HomeFolder,
    args: &RestoreArgs,
) -> Result<MovedAside, CommandFailure> {
    let root = home.root();
    let mut builder = DirBuilder::new();
    let builder = builder.recursive(true).mode(0o700);
    let made = builder.create(root);
    made.map_err(|error| CommandFailure::file("make", root, &error))?;
    // Held until the end: no gateway starts in a folder that is being replaced.
    let _lock = match home.state().exists() {
        true => Some(GatewayLock::take(home).map_err(|error| in_use(home, &error))?),
        false => None,
    };
    let there = in_the_way(manifest, home);
    if !there.is_empty() && !args.replace {
        let names: Vec<_> = there
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(CommandFailure::new(
            format!("the home is not empty: {}", names.join(", ")),
            "add --replace to move that aside, or restore into another --home",
        ));
    }
    // Within the home, as a rename across file systems would be a copy and could end half-way.
    let stage = RestoreStage::begin(root)?;
    stage.take_out(file, args)?;
    bring_up_to_date(&stage, manifest).await?;
    stage.put_in_place(home, &there, manifest)
}

/// What a restore would write over. An empty folder of ours is nobody's.
fn in_the_way(manifest: &BackupManifest, home: &HomeFolder) -> Vec<PathBuf> {
    let files = manifest.files.iter();
    let mut there: Vec<_> = files
        .filter_map(|file| match place_of(&file.name)? {
            FilePlace::Home(name) => Some(home.root().join(name)),
            FilePlace::State(_) => None,
        })
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    let ours = home.state();
    let is_used = |name: &str| !LOCKS.contains(&name);
    let entries = fs::read_dir(&ours).into_iter().flatten().flatten();
    let mut entries = entries.filter(|entry| is_used(&entry.file_name().to_string_lossy()));
    if entries.next().is_some() {
        there.push(ours);
    }
    there
}

/// Forward, and on the copy: what cannot be brought up to date replaces nothing.
async fn bring_up_to_date(
    stage: &RestoreStage,
    manifest: &BackupManifest,
) -> Result<(), CommandFailure> {
    if manifest.store_version == 0 {
        return Ok(());
    }
    let path = stage.state().join("state.db");
    let opened = Store::open(&path, SystemClock::shared()).await;
    opened
        .map(drop)
        .map_err(|error| CommandFailure::caused(&error, error.remedy()))
}

const STAGE_NAME: &str = ".hermetic-restore-";

/// The folder in which a restore is prepared, gone with it unless it was put in place.
struct RestoreStage(PathBuf);

impl RestoreStage {
    fn begin(root: &Path) -> Result<Self, CommandFailure> {
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

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    fn take_out(&self, file: &mut File, args: &RestoreArgs) -> Result<(), CommandFailure> {
        let taken = archive::read(file, |name, bytes| {
            // Put into sandboxes when the home is there.
            if is_workspace(name) {
                return io::copy(bytes, &mut io::sink()).map(drop);
            }
            let path = match place_of(name) {
                Some(FilePlace::Home(name)) => self.home().join(name),
                Some(FilePlace::State(name)) => self.state().join(name),
                None => return Err(io::Error::other("nobody knows where it belongs")),
            };
            write(&path, bytes)
        });
        taken.map_err(|why| no_backup(&args.file, &why))?;
        if args.copy {
            let path = self.state().join("installation");
            let name = format!("{}\n", InstallationId::random());
            // Gone first, as `write` writes over nothing.
            let renamed = fs::remove_file(&path).and_then(|()| write(&path, &mut name.as_bytes()));
            renamed.map_err(|error| CommandFailure::file("write", &path, &error))?;
        }
        Ok(())
    }

    /// Our folder last: with it there is an installation.
    fn put_in_place(
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

fn write(path: &Path, bytes: &mut dyn Read) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::copy(bytes, &mut file)?;
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

pub(super) fn in_use(home: &HomeFolder, error: &LockError) -> CommandFailure {
    match error {
        LockError::Taken { .. } => CommandFailure::new(
            format!("a gateway runs in {}", home.root().display()),
            "stop it first: hermetic gateway stop",
        ),
        LockError::Io { .. } => CommandFailure::caused(error, "check the folder's permissions"),
    }
}

fn no_backup(file: &Path, why: &str) -> CommandFailure {
    CommandFailure::new(
        format!(
            "{} is not restored: {}",
            file.display(),
            output::printable(why)
        ),
        "use another copy of it; nothing was changed",
    )
}

fn report(
    manifest: &BackupManifest,
    home: &HomeFolder,
    (moved, brought): (&MovedAside, &[BroughtBack]),
    args: &RestoreArgs,
) -> Result<(), CommandFailure> {
    if args.json {
        return output::print_json(&json!({
            "home": home.root(),
            "moved_aside": moved,
            "workspaces": brought,
            "manifest": manifest,
        }));
    }
    let mut text = String::new();
    if !args.workspaces {
        let files = manifest
            .files
            .len()
            .saturating_sub(manifest.workspaces.len());
        let home = home.root().display();
        text.push_str(&format!("restored {files} files into {home}\n"));
    }
    for path in moved {
        text.push_str(&format!("what was there is {} now\n", path.display()));
    }
    for path in &manifest.left_out {
        text.push_str(&format!(
            "not in the backup, and to be put back by hand: {}\n",
            path.display()
        ));
    }
    for one in brought {
        text.push_str(&one.line());
    }
    for left_out in &manifest.workspaces_left_out {
        text.push_str(&format!(
            "files of {} were not in it: {}\n",
            output::printable(&left_out.conversation),
            output::printable(&left_out.why)
        ));
    }
    if brought.is_empty() {
        text.push_str("files in sandboxes were not in it; conversations go on in new ones\n");
    }
    text.push_str(
        "next: `hermetic doctor`, then `hermetic gateway run`; stop the original first if it still runs \
         elsewhere\n",
    );
    output::print(&text)
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
