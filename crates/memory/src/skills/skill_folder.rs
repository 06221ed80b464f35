//! Changing the files of a skill on the disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::draft::DraftedFile;

/// Writes and removes these files of a skill, and touches no other. A folder that is not there yet appears whole.
/// Killed in between, the same change again ends the same way.
pub(super) fn change(folder: &Path, files: &BTreeMap<String, DraftedFile>) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    let (new, old) = (beside(folder, "new"), beside(folder, "old"));
    // Of a write that was killed. Its name begins with a dot, so the catalogue never took it for a skill.
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    // Earlier versions moved a skill aside to write it anew; killed in that moment, this is all there is of it.
    if !folder.exists() && old.exists() {
        fs::rename(&old, folder)?;
    }
    if folder.exists() {
        return files
            .iter()
            .try_for_each(|(path, file)| change_one(folder, path, file));
    }
    fs::create_dir(&new)?;
    for (path, file) in files {
        change_one(&new, path, file)?;
    }
    fs::rename(&new, folder)?;
    sync_folder(parent)
}

fn change_one(folder: &Path, path: &str, file: &DraftedFile) -> io::Result<()> {
    let target = folder.join(path);
    let text = match file {
        DraftedFile::Written(text) => text,
        DraftedFile::Removed => return not_found_is_fine(fs::remove_file(target)),
    };
    let parent = target.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    // The operator may have put a link there; what a model wrote does not follow it out of the skill.
    if !parent.canonicalize()?.starts_with(folder.canonicalize()?) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} leads out of the skill", parent.display()),
        ));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let aside = parent.join(format!(".{name}.new"));
    not_found_is_fine(fs::remove_file(&aside))?;
    let mut written = File::create_new(&aside)?;
    // A script stays one.
    if let Some(before) = fs::symlink_metadata(&target)
        .ok()
        .filter(fs::Metadata::is_file)
    {
        written.set_permissions(before.permissions())?;
    }
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    fs::rename(&aside, &target)?;
    sync_folder(parent)
}

fn beside(folder: &Path, ending: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{ending}"))
}

/// Names are on the disk only once their folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn not_found_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn written(path: &str, text: &str) -> BTreeMap<String, DraftedFile> {
        [(path.to_owned(), DraftedFile::Written(text.to_owned()))].into()
    }

    #[test]
    fn what_is_not_drafted_stays_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("general/deploy");
        change(&folder, &written("SKILL.md", "one")).unwrap();
        let picture = folder.join("assets/logo.png");
        fs::create_dir_all(picture.parent().unwrap()).unwrap();
        fs::write(&picture, b"\x89PNG\xff").unwrap();
        fs::write(folder.join("large.txt"), "x".repeat(500_000)).unwrap();
        let mut files = written("SKILL.md", "two");
        files.insert("references/gone.md".to_owned(), DraftedFile::Removed);
        change(&folder, &files).unwrap();
        assert_eq!(fs::read(picture).unwrap(), b"\x89PNG\xff");
        assert_eq!(fs::read_to_string(folder.join("SKILL.md")).unwrap(), "two");
        assert!(folder.join("large.txt").exists());
    }

    #[test]
    fn a_skill_that_an_earlier_version_had_moved_aside_comes_back() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deploy");
        let aside = home.path().join(".deploy.old");
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("SKILL.md"), "of before").unwrap();
        change(&folder, &written("references/a.md", "new")).unwrap();
        let kept = fs::read_to_string(folder.join("SKILL.md")).unwrap();
        assert_eq!(kept, "of before");
        assert!(!aside.exists() && folder.join("references/a.md").exists());
    }

    #[test]
    fn no_file_is_written_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (home.path().join("deploy"), home.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        change(&folder, &written("SKILL.md", "one")).unwrap();
        symlink(&elsewhere, folder.join("scripts")).unwrap();
        assert!(change(&folder, &written("scripts/run.sh", "x")).is_err());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        // A file that is a link is replaced, and what it pointed to stays.
        fs::write(elsewhere.join("kept"), "kept").unwrap();
        symlink(elsewhere.join("kept"), folder.join("LINK.md")).unwrap();
        change(&folder, &written("LINK.md", "ours")).unwrap();
        let kept = fs::read_to_string(elsewhere.join("kept")).unwrap();
        assert_eq!(kept, "kept");
    }
}
