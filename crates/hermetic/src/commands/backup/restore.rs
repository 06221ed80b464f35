//! `hermetic restore`: a backup put into a home.
//!
//! Everything is taken out beside its place and checked against the sums of the manifest first. Then the
//! configuration is moved to its place and the folder that is ours last, in one step: whatever happens
//! before leaves a home without an installation, never half of one.

mod stage;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hermetic_config::HomeFolder;
use hermetic_store::{Store, StoreVersion};
use hermetic_types::SystemClock;
use serde_json::json;

use self::stage::{LOCKS, MovedAside, RestoreStage};
use super::archive;
use super::bring_back::{self, BringBackOutcome, BroughtBack};
use super::manifest::{BackupManifest, FilePlace};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::commands::{inputs_of_new_home, on_this_thread};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::folder_reader::LeftOutFile;
use crate::gateway_state::{GatewayLock, LockError};
use crate::output;
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is deleted: with --replace, what is there is moved aside and named. Files of sandboxes that are in the \
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
        .filter_map(|file| match FilePlace::of(&file.name)? {
            // A folder goes as a whole: one that is half ours and half theirs would be nobody's.
            FilePlace::Home(below) => Some(home.root().join(below.components().next()?)),
            FilePlace::State(_) => None,
        })
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    there.sort();
    there.dedup();
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
    for LeftOutFile { path, why } in &manifest.files_left_out {
        let path = path.display().to_string();
        let (path, why) = (output::printable(&path), output::printable(why));
        text.push_str(&format!("not in the backup: {path}: {why}\n"));
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
