//! `config.yaml` with a section more, tried before it is written.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_config::{Config, ConfigInputs, HomeFolder, STARTER};

use crate::failure::CommandFailure;

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
    // Who could read the old one can read the new one: Hermes may be somebody else of its group.
    let permissions = fs::metadata(&path).map(|about| about.permissions());
    let written = put(&beside, text)
        .and_then(|()| permissions.map_or(Ok(()), |same| fs::set_permissions(&beside, same)))
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
        let root = inputs.home.root();
        remove_abandoned(root);
        let folder = root.join(format!("{STAGED}{}", std::process::id()));
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder);
        // Before it is looked whether the folder could be made: whatever is there of it goes with
        // this.
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

/// How the name of a staged home begins, before the number of its process.
const STAGED: &str = ".setup-";

/// Removes what setups left that were interrupted: it holds tokens.
fn remove_abandoned(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(STAGED));
        let process = process.and_then(|number| number.parse::<u32>().ok());
        let is_gone = |process| !Path::new(&format!("/proc/{process}")).exists();
        if process.is_some_and(is_gone) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(entry.path());
        }
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
