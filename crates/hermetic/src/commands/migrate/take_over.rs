//! What `--apply` copies into our home.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_config::{ConfigInputs, HomeFolder, STARTER};
use hermetic_types::{Clock as _, SystemClock};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::count;
use super::finding::{MigrationFinding, MigrationVerdict};
use super::hermes_home::HermesPairings;
use crate::by_hand;
use crate::failure::CommandFailure;
use crate::folder_reader::{FolderFile, FolderReader, LeftOutFile};
use crate::log;
use crate::regular_file;

/// A file of theirs that is ours too, and whether it can be copied.
#[derive(Debug)]
pub(super) struct CopiedFile {
    from: PathBuf,
    to: PathBuf,
    ours: OursNow,
}

/// What stands where a file is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OursNow {
    Nothing,
    /// The configuration that a package or `config init` wrote, and nobody changed: it says nothing.
    Untouched,
    Something,
}

/// A folder of theirs that we would look for in our home.
#[derive(Debug)]
pub(super) struct CopiedFolder {
    name: &'static str,
    from: PathBuf,
    to: PathBuf,
    /// One of ours stands there, and is not mixed with theirs.
    is_there: bool,
    files: usize,
    left_out: Vec<LeftOutFile>,
}

impl CopiedFile {
    pub(super) fn finding(&self) -> MigrationFinding {
        let name = self.to.file_name().unwrap_or_default().to_string_lossy();
        match self.ours {
            OursNow::Something => MigrationFinding::new(
                MigrationVerdict::Different,
                &name,
                format!("{} is there already and stays as it is", self.to.display()),
            ),
            OursNow::Nothing => MigrationFinding::new(
                MigrationVerdict::Copied,
                &name,
                format!("to {}", self.to.display()),
            ),
            OursNow::Untouched => MigrationFinding::new(
                MigrationVerdict::Copied,
                &name,
                format!(
                    "to {}, in place of the one that nobody has changed",
                    self.to.display()
                ),
            ),
        }
    }

    /// Whether ours counts, and theirs does not.
    pub(super) fn leaves_ours(&self, name: &str) -> bool {
        self.ours == OursNow::Something && self.to.ends_with(name)
    }
}

impl CopiedFolder {
    pub(super) fn left_out(&self) -> &[LeftOutFile] {
        &self.left_out
    }

    pub(super) fn findings(&self) -> Vec<MigrationFinding> {
        let to = self.to.display();
        if self.is_there {
            let what = format!("{to} is there already and stays as it is");
            return vec![MigrationFinding::new(
                MigrationVerdict::Different,
                self.name,
                what,
            )];
        }
        let mut findings = Vec::new();
        if self.files > 0 {
            let what = format!("to {to}: {}", count(self.files, "file", "files"));
            findings.push(MigrationFinding::new(
                MigrationVerdict::Copied,
                self.name,
                what,
            ));
        }
        findings.extend(self.left_out.iter().map(|LeftOutFile { path, why }| {
            let what = format!("not copied: {}: {why}", path.display());
            MigrationFinding::new(MigrationVerdict::Lost, self.name, what)
        }));
        findings
    }
}

/// The folders that are read from our home, and are theirs alone until now.
pub(super) fn folders(
    theirs: &HomeFolder,
    ours: &HomeFolder,
    reader: impl Fn() -> FolderReader,
) -> Vec<CopiedFolder> {
    let mut folders = Vec::new();
    for name in ["memories", "skills"] {
        let (from, to) = (theirs.root().join(name), ours.root().join(name));
        let mut reader = reader();
        // Whatever goes wrong goes wrong again, and is an error, where it is copied.
        let _ = reader.read_folder(&from, &mut |_| Ok(()));
        let (files, left_out) = (reader.files(), reader.left_out());
        if files > 0 || !left_out.is_empty() {
            folders.push(CopiedFolder {
                name,
                is_there: to.symlink_metadata().is_ok(),
                from,
                to,
                files,
                left_out,
            });
        }
    }
    folders
}

/// The files of a configuration that lies in another home than ours.
pub(super) fn files(theirs: &HomeFolder, ours: &HomeFolder) -> Vec<CopiedFile> {
    let files = [
        (theirs.config_file(), ours.config_file()),
        (theirs.dotenv_file(), ours.dotenv_file()),
        (theirs.legacy_file(), ours.legacy_file()),
        (theirs.root().join("SOUL.md"), ours.root().join("SOUL.md")),
    ];
    let files = files.into_iter().filter(|(from, _)| from.is_file());
    files
        .map(|(from, to)| CopiedFile {
            ours: ours_now(&to),
            from,
            to,
        })
        .collect()
}

fn ours_now(to: &Path) -> OursNow {
    let untouched = || regular_file::read_text(to, LONGEST_STARTER).is_ok_and(|it| it == STARTER);
    match to.symlink_metadata() {
        Err(_) => OursNow::Nothing,
        Ok(_) if to.ends_with("config.yaml") && untouched() => OursNow::Untouched,
        Ok(_) => OursNow::Something,
    }
}

const LONGEST_STARTER: u64 = 64 << 10;

/// The configuration first: with one that cannot be read nobody is let in either.
pub(super) async fn take_over(
    ours: &ConfigInputs,
    files: &[CopiedFile],
    folders: &[CopiedFolder],
    pairings: &[HermesPairings],
) -> Result<(), CommandFailure> {
    let root = ours.home.root();
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(root);
    made.map_err(|error| CommandFailure::file("make", root, &error))?;
    for file in files.iter().filter(|file| file.ours != OursNow::Something) {
        copy(file).map_err(|error| CommandFailure::file("write", &file.to, &error))?;
    }
    for folder in folders.iter().filter(|folder| !folder.is_there) {
        copy_folder(folder).map_err(|error| CommandFailure::file("write", &folder.to, &error))?;
    }
    if pairings.iter().all(|one| one.people.is_empty()) {
        return Ok(());
    }
    let config = hermetic_config::load(ours)?;
    // What the agent runs on a backend that is no boundary could write a list of people and have it adopted.
    by_hand::or_refuse(&config)?;
    app::installation(config.home())?;
    let pairing = app::pairing(&app::store(&config).await?);
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let audit = app::audit(&config)?;
    for HermesPairings {
        platform, people, ..
    } in pairings
    {
        // Before they are let in: a record that cannot be written lets nobody in.
        for person in pairing.would_adopt(*platform, people).await? {
            let event = hermetic_audit::AuditEvent::Pairing {
                platform: *platform,
                act: hermetic_audit::PairingEvent::Approved,
                user: redactor.redact(person.user.as_str()).into(),
                by: hermetic_audit::AuditText::constant("hermetic migrate"),
            };
            audit.append(&event, SystemClock.now())?;
        }
        pairing.adopt(*platform, people).await?;
    }
    Ok(())
}

/// Whole or not at all, and over nothing: written aside and linked to its name. A configuration that nobody
/// changed is replaced by it.
fn copy(CopiedFile { from, to, ours }: &CopiedFile) -> io::Result<()> {
    let mut bytes = Vec::new();
    regular_file::open(from)?.read_to_end(&mut bytes)?;
    let aside = to.with_file_name(format!(".migrate.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        // Once more, as late as can be: it is somebody's as soon as he changes a byte.
        match *ours == OursNow::Untouched && ours_now(to) == OursNow::Untouched {
            true => fs::rename(&aside, to),
            false => fs::hard_link(&aside, to),
        }
    })();
    let removed = fs::remove_file(&aside);
    match written {
        Err(error) => Err(error),
        Ok(()) => match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}

/// Whole or not at all, beside its place first.
fn copy_folder(folder: &CopiedFolder) -> io::Result<()> {
    let aside =
        folder
            .to
            .with_file_name(format!(".migrate-{}.{}", folder.name, std::process::id()));
    let written = write_folder(&folder.from, &aside, &mut FolderReader::default()).and_then(|()| {
        let placed = renameat_with(CWD, &aside, CWD, &folder.to, RenameFlags::NOREPLACE);
        placed.map_err(io::Error::from)
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    written
}

/// Copies what may be copied of a folder into a new one, whose files nobody else may change.
pub(super) fn write_folder(from: &Path, into: &Path, reader: &mut FolderReader) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder.create(into)?;
    reader.read_folder(from, &mut |file| write_below(into, file))
}

pub(super) fn write_below(into: &Path, file: &FolderFile<'_>) -> io::Result<()> {
    let path = into.join(file.below);
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755).create(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut written = options
        .write(true)
        .create_new(true)
        .mode(file.mode & 0o755 | 0o600)
        .open(path)?;
    written.write_all(file.bytes)?;
    written.sync_all()
}
