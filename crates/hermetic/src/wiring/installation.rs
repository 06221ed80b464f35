//! The name of one home, given at its first use.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use hermetic_config::Home;
use hermetic_types::InstallationId;

use crate::failure::Failure;

pub(crate) fn installation(home: &Home) -> Result<InstallationId, Failure> {
    let folder = home.state();
    let path = folder.join("installation");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| Failure::file("make", &folder, &error))?;
    let given = give_name(&folder, &path);
    given.map_err(|error| Failure::file("write", &path, &error))?;
    let text = fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    text.trim().parse().map_err(|_| {
        Failure::new(
            format!("{} holds no installation id", path.display()),
            "remove it if no sandbox of this home is left; a new one is made",
        )
    })
}

/// Written aside and linked into place: of two first uses at once, one wins and both read it.
fn give_name(folder: &std::path::Path, path: &std::path::Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let id = InstallationId::random();
    let aside = folder.join(format!("installation.{id}"));
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&aside)?;
    writeln!(file, "{id}")?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn eight_first_uses_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let names: Vec<_> = thread::scope(|scope| {
            let uses: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| installation(&home).unwrap()))
                .collect();
            uses.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(names.iter().all(|name| name == &names[0]), "{names:?}");
        assert_eq!(fs::read_dir(home.state()).unwrap().count(), 1);
    }
}
