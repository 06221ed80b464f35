//! `config.yaml` with a section more, tried before it is written.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_config::{Config, ConfigInputs, HomeFolder, STARTER};

use crate::failure::CommandFailure;
use crate::ownership::give_to_owner_of;

/// The file as it is, or the starter where there is none, with the model at its end.
pub(super) fn with_model(inputs: &ConfigInputs, section: &str) -> Result<String, CommandFailure> {
    let path = inputs.home.config_file();
    let mut text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => STARTER.to_owned(),
        Err(error) => return Err(CommandFailure::file("read", &path, &error)),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push('\n');
    text.push_str(section);
    Ok(text)
}

/// Beside the old one first, so that a full disk or a crash leaves the old one whole.
pub(super) fn write(inputs: &ConfigInputs, text: &str) -> Result<(), CommandFailure> {
    let path = inputs.home.config_file();
    let path = fs::canonicalize(&path).unwrap_or(path);
    let beside = path.with_file_name(format!(".config.{}", std::process::id()));
    let written = put(&beside, text)
        .and_then(|()| give_to_owner_of(inputs.home.root(), &beside))
        .and_then(|()| fs::rename(&beside, &path));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        CommandFailure::file("write", &path, &error)
    })
}

/// A home that exists for as long as something is tried.
pub(super) struct StagedHome {
    folder: PathBuf,
    inputs: ConfigInputs,
}

impl StagedHome {
    pub(super) fn build(
        inputs: &ConfigInputs,
        config: &str,
        dotenv: &str,
    ) -> Result<Self, CommandFailure> {
        let folder = inputs
            .home
            .root()
            .join(format!(".setup-{}", std::process::id()));
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder);
        let staged = Self {
            inputs: ConfigInputs {
                home: HomeFolder::at(&folder),
                ..inputs.clone()
            },
            folder,
        };
        let home = &staged.inputs.home;
        let put = made
            .and_then(|()| put(&home.config_file(), config))
            .and_then(|()| put(&home.dotenv_file(), dotenv));
        put.map_err(|error| CommandFailure::file("write", &staged.folder, &error))?;
        Ok(staged)
    }

    /// What the files would say. A section that is there already, without a name in it, stands in the way.
    pub(super) fn config(&self) -> Result<Config, CommandFailure> {
        Ok(hermetic_config::load(&self.inputs)?)
    }
}

impl Drop for StagedHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
