//! The name of one home, given at its first use.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use hermetic_config::HomeFolder;
use hermetic_types::InstallationId;
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::AppFailure;

pub fn installation(home: &HomeFolder) -> Result<InstallationId, AppFailure> {
    let folder = home.state();
    let path = folder.join("installation");
    make_folder(home).map_err(|error| AppFailure::file("make", &folder, &error))?;
    // Read back below even where we wrote it ourselves: of two that began at once, only one name
    // counts.
    let given = give_name(&folder, &path);
    given.map_err(|error| AppFailure::file("write", &path, &error))?;
    let text =
        fs::read_to_string(&path).map_err(|error| AppFailure::file("read", &path, &error))?;
    text.trim().parse().map_err(|_| {
        AppFailure::new(
            format!("{} holds no installation id", path.display()),
            "remove it if no sandbox of this home is left; a new one is made",
        )
    })
}

/// The name that this home has already, if it has one.
pub fn known_installation(home: &HomeFolder) -> Option<InstallationId> {
    let text = fs::read_to_string(home.state().join("installation")).ok()?;
    text.trim().parse().ok()
}

/// With the owner of the home: root may be the first to use a home that is somebody else's, who could not
/// read it afterwards.
fn make_folder(home: &HomeFolder) -> io::Result<()> {
    let private = 0o700;
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(private).create(home.root())?;
    let state = home.state();
    let name = state.strip_prefix(home.root()).unwrap_or(&state);
    // By descriptors: whoever owns the home could put a link in place of a name meanwhile.
    let folder = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(home.root(), folder, Mode::empty())?;
    match rustix::fs::mkdirat(&root, name, Mode::from_raw_mode(private)) {
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => {
            let made = rustix::fs::openat(&root, name, folder | OFlags::NOFOLLOW, Mode::empty())?;
            give_to_owner_of(&root, &made)
        }
    }
}

fn give_to_owner_of(folder: impl AsFd, made: impl AsFd) -> io::Result<()> {
    let owner = rustix::fs::fstat(folder)?;
    if rustix::process::geteuid().is_root() && owner.st_uid != 0 {
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        rustix::fs::fchown(made, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Written aside and linked into place: of two first uses at once, one wins and both read it.
fn give_name(folder: &Path, path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let id = InstallationId::random();
    let aside = folder.join(format!("installation.{id}"));
    let linked = write_name(folder, &aside, &id).and_then(|()| fs::hard_link(&aside, path));
    // Also where there was no room to write it: a start tries again, and would leave one each time.
    let removed = fs::remove_file(&aside);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed?,
        linked => linked.and(removed)?,
    }
    // The name in the folder as well: sandboxes are found again by it, and one that a power cut takes away would
    // leave them to nobody.
    File::open(folder)?.sync_all()
}

fn write_name(folder: &Path, aside: &Path, id: &InstallationId) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(aside)?;
    give_to_owner_of(File::open(folder)?, &file)?;
    writeln!(file, "{id}")?;
    // Without it, a power cut may leave a name with nothing behind it, and no gateway starts.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, chown};
    use std::thread;

    #[test]
    fn what_root_makes_in_the_home_of_another_is_theirs() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP: what_root_makes_in_the_home_of_another_is_theirs: needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(65534), Some(65534)).unwrap();
        let home = HomeFolder::at(folder.path());
        installation(&home).unwrap();
        for made in [home.state(), home.state().join("installation")] {
            let owner = fs::metadata(&made).unwrap();
            assert_eq!((owner.uid(), owner.gid()), (65534, 65534), "{made:?}");
        }
    }

    #[test]
    fn eight_first_uses_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
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
