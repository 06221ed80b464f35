//! `hermetic config init`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use crate::cli::CommandLine;
use crate::commands::inputs_of_new_home;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

pub(crate) fn run(cli: &CommandLine) -> Result<ExitReason, CommandFailure> {
    let home = inputs_of_new_home(cli)?.home;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home.root())
        .map_err(|error| CommandFailure::file("make", home.root(), &error))?;
    let path = home.config_file();
    // `create_new` also refuses a link that leads nowhere.
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let mut file = match created {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(CommandFailure::new(
                format!("{} is there already and was not touched", path.display()),
                "edit it, or move it away first",
            ));
        }
        Err(error) => return Err(CommandFailure::file("write", &path, &error)),
    };
    file.write_all(hermetic_config::STARTER.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| CommandFailure::file("write", &path, &error))?;
    output::print(&format!(
        "wrote {}\nput tokens into {} and run `hermetic config check`\n",
        path.display(),
        home.dotenv_file().display(),
    ))?;
    Ok(ExitReason::Ok)
}
