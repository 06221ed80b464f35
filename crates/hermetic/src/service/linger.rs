//! Whether the services of a user go on when he logs out, which systemd does for nobody unless it is told to.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::CommandFailure;
use crate::ownership::own_name;

/// Where systemd writes down who asked for it.
const WRITTEN_DOWN: &str = "/var/lib/systemd/linger";

/// The user whose services end with his last session; absent where they do not, or nobody knows his name.
pub(crate) fn is_missing_for() -> Option<String> {
    is_missing_in(Path::new(WRITTEN_DOWN), own_name()?)
}

fn is_missing_in(folder: &Path, user: String) -> Option<String> {
    (!folder.join(&user).exists()).then_some(user)
}

pub(crate) fn enable() -> Result<(), CommandFailure> {
    let output = Command::new("loginctl")
        .arg("enable-linger")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| CommandFailure::caused(&error, "is loginctl there?"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(CommandFailure::new(
        format!("loginctl enable-linger failed: {}", said.trim()),
        "sudo loginctl enable-linger YOUR-NAME",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_written_down_is_not_asked_about() {
        let folder = tempfile::tempdir().unwrap();
        let missing = || is_missing_in(folder.path(), "ada".to_owned());
        assert_eq!(missing().as_deref(), Some("ada"));
        std::fs::write(folder.path().join("ada"), "").unwrap();
        assert_eq!(missing(), None);
    }
}
