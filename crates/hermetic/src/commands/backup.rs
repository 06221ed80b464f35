//! `hermetic backup`: an installation in one file, while it runs.

mod archive;
mod bring_back;
mod folders;
mod manifest;
mod new_file;
pub(crate) mod restore;
mod workspaces;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_audit::RecordSnapshot;
use hermetic_config::{Config, HomeFolder};
use hermetic_store::{Store, StoreVersion};
use hermetic_types::{Clock as _, InstallationId, SystemClock};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::archive::ArchiveWriter;
use self::manifest::{BackupManifest, FilePlace};
use self::new_file::{NewFile, folder_of};
use self::workspaces::PackedWorkspaces;
use super::{load, on_this_thread};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::folder_reader::LeftOutFile;
use crate::output;
use crate::ownership::refuse_root_for_another;
use crate::regular_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file holds the configuration, .env, the store (conversations, pairings, approvals, memories), SOUL.md, \
skills and Hermes' memories, the audit record with its key, the rules and the certificate authority of egress, \
logins at MCP servers, prices of models. It holds secrets and can be read by its owner only. With --workspaces \
it also holds the files that sandboxes on this machine keep; a stopped sandbox is started for that.

Not in it: logs, programs of agents (`hermetic agents install` brings them back), skills of folders that the \
configuration names elsewhere. Links are not followed. What is left out of a folder is named.

A running gateway goes on meanwhile. The backup gets its name when it is whole. A file in a sandbox that \
changes while it is packed may be half old, half new; the report names it.

Examples:
  hermetic backup
  hermetic backup --workspaces /mnt/backups/
  hermetic backup /mnt/backups/
  hermetic restore hermetic-20260101-040000.tar")]
pub(crate) struct BackupArgs {
    /// Write this file, or one with the date in its name into this folder
    #[arg(value_name = "FILE")]
    to: Option<PathBuf>,
    /// Also pack the files that sandboxes keep
    #[arg(long)]
    workspaces: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// When the last backup of a home was made, and where it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastBackup {
    /// Seconds since 1970.
    pub(crate) at: u64,
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

impl LastBackup {
    const NOTE: &str = "last_backup.json";

    pub(crate) fn of(home: &HomeFolder) -> Option<Self> {
        let text = fs::read_to_string(home.state().join(Self::NOTE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn note(&self, home: &HomeFolder) -> io::Result<()> {
        let path = home.state().join(Self::NOTE);
        let aside = path.with_extension("new");
        fs::write(&aside, serde_json::to_vec(self)?)?;
        fs::rename(aside, path)
    }
}

pub(crate) fn run(cli: &CommandLine, args: &BackupArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    // It holds every key.
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    on_this_thread(async {
        let to = target(args.to.as_deref());
        let (manifest, last) = back_up(&config, &to, args.workspaces).await?;
        if args.json {
            output::print_json(
                &json!({"file": last.file, "bytes": last.bytes, "manifest": manifest}),
            )?;
            return Ok(ExitReason::Ok);
        }
        let mut text = format!(
            "wrote {} ({} files, {})\n",
            last.file.display(),
            manifest.files.len(),
            output::size(last.bytes)
        );
        for path in &manifest.left_out {
            text.push_str(&format!(
                "not in it, because it lies elsewhere: {}\n",
                path.display()
            ));
        }
        for LeftOutFile { path, why } in &manifest.files_left_out {
            let path = path.display().to_string();
            text.push_str(&format!("not in it: {}: {why}\n", output::printable(&path)));
        }
        text.push_str(&told_of_workspaces(&manifest, args.workspaces));
        text.push_str("it holds secrets: keep it as you keep .env\n");
        output::print(&text)?;
        Ok(ExitReason::Ok)
    })
}

fn told_of_workspaces(manifest: &BackupManifest, wanted: bool) -> String {
    if !wanted {
        return "files in sandboxes are not in it: --workspaces packs them\n".to_owned();
    }
    let mut text = String::new();
    for packed in &manifest.workspaces {
        text.push_str(&format!(
            "files of {}: {}\n",
            output::printable(&packed.conversation),
            output::size(packed.bytes)
        ));
        if let Some(doubt) = &packed.doubt {
            text.push_str(&format!("  not all as they were: {doubt}\n"));
        }
    }
    for left_out in &manifest.workspaces_left_out {
        text.push_str(&format!(
            "files of {} are NOT in it: {}\n",
            output::printable(&left_out.conversation),
            left_out.why
        ));
    }
    if text.is_empty() {
        text.push_str("no sandbox keeps files\n");
    }
    text
}

/// A file by its date where only a folder is named, or nothing.
fn target(named: Option<&Path>) -> PathBuf {
    let now = SystemClock.now().calendar().to_zoned(TimeZone::system());
    let name = format!("hermetic-{}.tar", now.strftime("%Y%m%d-%H%M%S"));
    match named {
        None => PathBuf::from(name),
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(file) => file.to_owned(),
    }
}

async fn back_up(
    config: &Config,
    to: &Path,
    with_workspaces: bool,
) -> Result<(BackupManifest, LastBackup), CommandFailure> {
    let home = config.home();
    // An archive without its rows would be found out when it is needed.
    if let app::StorePlace::Postgres(address) = app::StorePlace::of(config)? {
        return Err(CommandFailure::new(
            format!("the rows are in {address}, which a backup of this home does not hold"),
            "copy the database by pg_dump and the home's files beside it, or first bring the rows into a file: \
             hermetic store migrate --to sqlite:PATH",
        ));
    }
    let state = home.state();
    let installation = app::installation(home)?;
    // For the copy of the store, too, which has one name in that folder for all of them.
    let _alone = alone(home)?;
    let failed = |error: &io::Error| no_backup(to, error);
    let new = NewFile::begin(to).map_err(|error| failed(&error))?;
    let mut archive = ArchiveWriter::new(io::BufWriter::new(new.file()));
    let store_version = add_store(&mut archive, &state, (to, &installation)).await?;
    let left_out = add_files(&mut archive, config).map_err(|error| failed(&error))?;
    let files_left_out = folders::add(&mut archive, home).map_err(|error| failed(&error))?;
    let place = (to, &installation);
    let files = match with_workspaces {
        true => workspaces::add(&mut archive, config, place).await?,
        false => PackedWorkspaces::default(),
    };
    let manifest = BackupManifest {
        form: manifest::form_of(archive.files()),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: now(),
        home: fs::canonicalize(home.root()).unwrap_or_else(|_| home.root().to_owned()),
        installation: installation.to_string(),
        store_version: store_version.0,
        files: archive.files().to_vec(),
        left_out,
        files_left_out,
        workspaces: files.packed,
        workspaces_left_out: files.left_out,
    };
    let written = archive.finish(&manifest).and_then(|buffered| {
        let whole = buffered.into_inner();
        whole.map(drop).map_err(io::IntoInnerError::into_error)
    });
    let bytes = written.and_then(|()| new.keep());
    let bytes = bytes.map_err(|error| failed(&error))?;
    let last = LastBackup {
        at: manifest.made_at,
        file: std::path::absolute(to).unwrap_or_else(|_| to.to_owned()),
        bytes,
    };
    // What it is for is made; a note that cannot be written is no reason to call it failed.
    if let Err(error) = last.note(home) {
        tracing::warn!(%error, "the time of this backup cannot be noted");
    }
    Ok((manifest, last))
}

/// A copy of one moment beside the archive, which is packed and goes.
async fn add_store(
    archive: &mut ArchiveWriter<impl io::Write>,
    state: &Path,
    (to, installation): (&Path, &InstallationId),
) -> Result<StoreVersion, CommandFailure> {
    let store = state.join("state.db");
    if !store.exists() {
        return Ok(StoreVersion(0));
    }
    let copy = StoreCopy(folder_of(to).join(format!(".hermetic-{installation}.partial")));
    // Of one that was killed: nobody else makes a backup of this home now.
    let _ = fs::remove_file(&copy.0);
    let copied = Store::copy(&store, &copy.0).await;
    let version = copied.map_err(|error| {
        CommandFailure::new(
            error.to_string(),
            "make room there, or name another folder; nothing was written",
        )
    })?;
    let packed = File::open(&copy.0).and_then(|file| {
        let bytes = file.metadata()?.len();
        archive.add(manifest::STORE, bytes, file)
    });
    packed.map_err(|error| no_backup(to, &error))?;
    Ok(version)
}

/// Removed however this ends; one that was killed leaves it to the next.
struct StoreCopy(PathBuf);

impl Drop for StoreCopy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Everything but the store; what lies elsewhere is named.
fn add_files(
    archive: &mut ArchiveWriter<impl io::Write>,
    config: &Config,
) -> io::Result<Vec<PathBuf>> {
    let places = app::audit_places(config);
    // Whoever names folders of skills elsewhere keeps them there.
    let mut left_out = config.memory().skill_folders.clone();
    if let Some(taken) = RecordSnapshot::take(&places)? {
        let parts = [
            (
                manifest::RECORD_KEY,
                taken.key,
                places.key_is_beside(),
                places.key(),
            ),
            (
                manifest::RECORD_HEAD,
                taken.head,
                places.head_is_beside(),
                places.head(),
            ),
        ];
        for (name, bytes, is_beside, path) in parts {
            match bytes {
                Some(bytes) if is_beside => archive.add(name, bytes.len() as u64, &bytes[..])?,
                Some(_) => left_out.push(path.to_owned()),
                None => {}
            }
        }
        archive.add(manifest::RECORD, taken.length, taken.record)?;
    }
    let packed_apart = [
        manifest::STORE,
        manifest::RECORD,
        manifest::RECORD_KEY,
        manifest::RECORD_HEAD,
    ];
    for name in manifest::all_files().filter(|name| !packed_apart.contains(name)) {
        let Some(place) = FilePlace::of(name) else {
            continue;
        };
        let path = place.within(config.home());
        match regular_file::open(&path) {
            Ok(file) => archive.add(name, file.metadata()?.len(), file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let why = format!("cannot read {}: {error}", path.display());
                return Err(io::Error::other(why));
            }
        }
    }
    Ok(left_out)
}

/// One backup of a home at a time.
fn alone(home: &HomeFolder) -> Result<File, CommandFailure> {
    let path = home.state().join("backup.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| CommandFailure::file("open", &path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CommandFailure::new(
            "another backup of this home is being made",
            "wait for it",
        )),
        Err(TryLockError::Error(error)) => Err(CommandFailure::file("lock", &path, &error)),
    }
}

fn no_backup(to: &Path, error: &io::Error) -> CommandFailure {
    let remedy = match error.kind() {
        io::ErrorKind::AlreadyExists => "name another file: nothing is replaced",
        io::ErrorKind::StorageFull => {
            "make room there, or name another folder; nothing was written"
        }
        _ => "check the folder and its permissions; nothing was written",
    };
    CommandFailure::new(format!("cannot write {}: {error}", to.display()), remedy)
}

fn now() -> u64 {
    u64::try_from(SystemClock.now().seconds()).unwrap_or(0)
}
