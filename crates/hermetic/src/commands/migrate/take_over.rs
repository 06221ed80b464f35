//! What `--apply` copies into our home.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_config::{ConfigInputs, HomeFolder};
use hermetic_types::{Clock as _, SystemClock};

use super::finding::{MigrationFinding, MigrationVerdict};
use super::hermes_home::HermesPairings;
use crate::by_hand;
use crate::failure::CommandFailure;
use crate::log;
use crate::regular_file;

/// A file of theirs that is ours too, and whether it can be copied.
#[derive(Debug)]
pub(super) struct CopiedFile {
    from: PathBuf,
    to: PathBuf,
    /// One of ours stands there.
    is_there: bool,
}

impl CopiedFile {
    pub(super) fn finding(&self) -> MigrationFinding {
        let name = self.to.file_name().unwrap_or_default().to_string_lossy();
        match self.is_there {
            true => MigrationFinding::new(
                MigrationVerdict::Different,
                &name,
                format!("{} is there already and stays as it is", self.to.display()),
            ),
            false => MigrationFinding::new(
                MigrationVerdict::Copied,
                &name,
                format!("to {}", self.to.display()),
            ),
        }
    }
}

/// The files of a configuration that lies in another home than ours.
pub(super) fn files(theirs: &HomeFolder, ours: &HomeFolder) -> Vec<CopiedFile> {
    let files = [
        (theirs.config_file(), ours.config_file()),
        (theirs.dotenv_file(), ours.dotenv_file()),
        (theirs.legacy_file(), ours.legacy_file()),
    ];
    let files = files.into_iter().filter(|(from, _)| from.is_file());
    files
        .map(|(from, to)| CopiedFile {
            is_there: to.symlink_metadata().is_ok(),
            from,
            to,
        })
        .collect()
}

/// The configuration first: with one that cannot be read nobody is let in either.
pub(super) async fn take_over(
    ours: &ConfigInputs,
    files: &[CopiedFile],
    pairings: &[HermesPairings],
) -> Result<(), CommandFailure> {
    let root = ours.home.root();
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(root);
    made.map_err(|error| CommandFailure::file("make", root, &error))?;
    for file in files.iter().filter(|file| !file.is_there) {
        copy(&file.from, &file.to)
            .map_err(|error| CommandFailure::file("write", &file.to, &error))?;
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

/// Whole or not at all, and over nothing: written aside and linked to its name.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
        fs::hard_link(&aside, to)
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
