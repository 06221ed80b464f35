//! The `.env` of a home, changed as a whole.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};

use hermetic_config::{HomeFolder, dotenv_value, set_in_dotenv};

use crate::failure::CommandFailure;

/// Only its owner reads it.
const MODE: u32 = 0o600;

#[derive(Debug)]
pub(crate) struct DotenvFile {
    text: String,
    /// What was set here. It is set again in whatever the file holds when it is written: somebody may have
    /// edited it while the questions were answered.
    changes: Vec<(String, String)>,
}

impl DotenvFile {
    /// Nothing, if there is no such file yet.
    pub(crate) fn read(home: &HomeFolder) -> Result<Self, CommandFailure> {
        Ok(Self {
            text: read(home)?,
            changes: Vec::new(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `None` for an empty one, too.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        dotenv_value(&self.text, name).filter(|value| !value.is_empty())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        if self.value(name).as_deref() != Some(value) {
            self.text = set_in_dotenv(&self.text, &[(name, value)]);
            self.changes.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Beside the old one first, so that a full disk or a crash leaves the old one whole. A link is
    /// followed: what it leads to is replaced, not the link.
    pub(crate) fn write(&self, home: &HomeFolder) -> Result<(), CommandFailure> {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(home.root());
        made.map_err(|error| CommandFailure::file("make", home.root(), &error))?;
        let mut text = read(home)?;
        for (name, value) in &self.changes {
            text = set_in_dotenv(&text, &[(name, value)]);
        }
        let path = home.dotenv_file();
        let path = fs::canonicalize(&path).unwrap_or(path);
        // Root may set up somebody else's gateway, which has to read it.
        let owner = fs::metadata(&path).or_else(|_| fs::metadata(home.root()));
        let beside = path.with_file_name(format!(".env.{}", std::process::id()));
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(MODE)
                .open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::Permissions::from_mode(MODE))?;
            let owner = owner?;
            if rustix::process::geteuid().is_root() {
                fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
            }
            file.sync_all()?;
            fs::rename(&beside, &path)
        })();
        written.map_err(|error| {
            // Whatever half of it is there holds a token.
            let _ = fs::remove_file(&beside);
            CommandFailure::file("write", &path, &error)
        })
    }
}

fn read(home: &HomeFolder) -> Result<String, CommandFailure> {
    let path = home.dotenv_file();
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(CommandFailure::file("read", &path, &error)),
    }
}
