//! The order of steps, and what each of them may not be done before.

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::duplicate::{duplicate, remove_folder};
use crate::survey::{FileStamp, WorkspaceSurvey};

/// The folder of ours in the workspace. `/undo` looks for the copy in it by the number of the turn.
const OWN_FOLDER: &str = ".hermetic-undo";
/// In it, the copy while it is made.
const UNFINISHED: &str = "new";
/// In it, a note of an `/undo` that was cut: somebody's files may be in that folder and nowhere else.
const CUT_UNDO: &str = "moving";
/// In it, the number of the turn whose copy is there, and what the workspace was like then.
const STATE_NOTE: &str = "state";

/// What to keep, and how much of it at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRequest {
    /// The path that the folder has to have.
    pub workspace: PathBuf,
    pub turn: i64,
    pub most_kilobytes: u64,
    pub most_entries: usize,
}

/// How it ended, as the program's exit code says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// There is a copy of this turn.
    Kept,
    /// The folder is not the workspace.
    Elsewhere,
    /// The workspace is too large, or not one file system.
    TooLarge,
    /// It could not be copied, or something stands where the copy would be.
    NotCopied,
}

impl CopyRequest {
    /// Reads the words that the program is started with, after its role.
    pub fn of_words(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let workspace = words.next()?.into();
        let mut number = || words.next()?.to_str()?.parse::<i64>().ok();
        Some(Self {
            workspace,
            turn: number()?,
            most_kilobytes: number()?.try_into().ok()?,
            most_entries: number()?.try_into().ok()?,
        })
    }
}

impl CopyOutcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Kept => 0,
            Self::Elsewhere => 3,
            Self::TooLarge => 4,
            Self::NotCopied => 5,
        }
    }
}

/// Keeps a copy of this folder, once for each turn. The copy of an earlier turn goes, in favour of this one or
/// because this one could not be made.
pub fn keep(folder: &Path, request: &CopyRequest) -> CopyOutcome {
    if !fs::canonicalize(folder).is_ok_and(|path| path == request.workspace) {
        return CopyOutcome::Elsewhere;
    }
    let own = folder.join(OWN_FOLDER);
    // What is not a folder of ours is not followed and not touched.
    if look(&own).is_some_and(|found| !found.is_dir()) || look(&own.join(CUT_UNDO)).is_some() {
        return CopyOutcome::NotCopied;
    }
    let copy = own.join(request.turn.to_string());
    // A turn that goes on after a restart has its copy already.
    if look(&copy).is_some_and(|found| found.is_dir()) {
        return CopyOutcome::Kept;
    }
    match renew(folder, &own, &copy, request) {
        Ok(()) => CopyOutcome::Kept,
        Err(failed) => {
            let _ = remove_folder(&own);
            failed
        }
    }
}

fn renew(folder: &Path, own: &Path, copy: &Path, request: &CopyRequest) -> Result<(), CopyOutcome> {
    let broken = |_: io::Error| CopyOutcome::NotCopied;
    // Before anything is looked at: whatever changes from here on has no earlier stamp than this folder.
    let began = stamp_now(own).map_err(broken)?;
    // A folder that is mounted below is somebody else's, and no rename leads into it or out of it.
    if is_mounted_below(&request.workspace) {
        return Err(CopyOutcome::TooLarge);
    }
    let survey = WorkspaceSurvey::of(folder, OWN_FOLDER, request)?;
    let state = survey.is_older_than(began).then(|| survey.digest());
    if let Some(before) = earlier_copy(own, state) {
        // Nothing has changed since the copy of that turn was made, so it is one of this turn as well.
        fs::rename(own.join(before), copy).map_err(broken)?;
    } else {
        // Gone before the new one is made, so that both never need room at once.
        remove_folder(own).map_err(broken)?;
        let unfinished = own.join(UNFINISHED);
        fs::create_dir_all(&unfinished).map_err(broken)?;
        fs::write(own.join(".gitignore"), "*\n").map_err(broken)?;
        duplicate(&survey, folder, &unfinished).map_err(broken)?;
        fs::rename(unfinished, copy).map_err(broken)?;
    }
    // After the rename: killed between the two, the note names a copy that is not there.
    if let Some(state) = state {
        let _ = fs::write(own.join(STATE_NOTE), format!("{} {state}\n", request.turn));
    }
    Ok(())
}

/// Our folder, made where there is none, and the kernel's stamp of this moment on it.
fn stamp_now(own: &Path) -> io::Result<FileStamp> {
    fs::create_dir_all(own)?;
    // To set its rights counts as a change, also where they were the same.
    fs::set_permissions(own, Permissions::from_mode(0o755))?;
    Ok(FileStamp::of(&fs::symlink_metadata(own)?))
}

/// The name of the copy that is there, if it is one of a workspace in this state.
fn earlier_copy(own: &Path, state: Option<u64>) -> Option<String> {
    let note = fs::read_to_string(own.join(STATE_NOTE)).ok()?;
    let (turn, noted) = note.trim_end().split_once(' ')?;
    let turn: i64 = turn.parse().ok()?;
    let is_same = state.is_some_and(|state| state.to_string() == noted);
    let name = turn.to_string();
    let is_there = look(&own.join(&name)).is_some_and(|found| found.is_dir());
    (is_same && is_there).then_some(name)
}

/// Whether something is mounted in the workspace; yes where nobody can tell.
fn is_mounted_below(workspace: &Path) -> bool {
    let Ok(mounts) = fs::read("/proc/self/mountinfo") else {
        return true;
    };
    let mut below = workspace.as_os_str().as_bytes().to_vec();
    below.push(b'/');
    mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .any(|point| point.starts_with(&below))
}

/// What is there, not what it leads to.
fn look(path: &Path) -> Option<Metadata> {
    // One that may not be looked at is in the way of what comes next, which says so.
    fs::symlink_metadata(path).ok()
}

impl FileStamp {
    pub(crate) fn of(found: &Metadata) -> Self {
        Self(found.ctime(), found.ctime_nsec())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    struct TestWorkspace(tempfile::TempDir);

    impl TestWorkspace {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// A file of the copy.
        fn kept(&self, turn: i64, name: &str) -> PathBuf {
            self.path(OWN_FOLDER).join(turn.to_string()).join(name)
        }

        fn keep(&self, turn: i64) -> CopyOutcome {
            let request = CopyRequest {
                workspace: self.0.path().canonicalize().unwrap(),
                turn,
                most_kilobytes: 1024,
                most_entries: 20,
            };
            keep(self.0.path(), &request)
        }

        /// Waits until whatever changes from now on has a later stamp than what is there. The kernel's clock for
        /// stamps has ticks of some milliseconds.
        fn until_the_next_tick(&self) {
            let elsewhere = tempfile::NamedTempFile::new().unwrap();
            let stamp = || {
                fs::write(elsewhere.path(), "x").unwrap();
                FileStamp::of(&fs::metadata(elsewhere.path()).unwrap())
            };
            let before = stamp();
            while stamp() == before {
                std::thread::yield_now();
            }
        }
    }

    impl Drop for TestWorkspace {
        fn drop(&mut self) {
            // A plain user cannot remove what is in a read-only folder.
            let _ = remove_folder(self.0.path());
        }
    }

    fn inode(path: &Path) -> u64 {
        fs::symlink_metadata(path).unwrap().ino()
    }

    #[test]
    fn what_did_not_change_is_not_copied_again() {
        let workspace = TestWorkspace::new();
        fs::create_dir(workspace.path("src")).unwrap();
        fs::write(workspace.path("src/a"), "one").unwrap();
        workspace.until_the_next_tick();
        assert_eq!(workspace.keep(1), CopyOutcome::Kept);
        let copied = inode(&workspace.kept(1, "src/a"));
        assert_eq!(workspace.keep(2), CopyOutcome::Kept);
        assert_eq!(inode(&workspace.kept(2, "src/a")), copied, "it was copied");
        assert!(!workspace.kept(1, "").exists());
        // The same length, and the modification time set back: what counts is the kernel's own stamp.
        let modified = fs::metadata(workspace.path("src/a"))
            .unwrap()
            .modified()
            .unwrap();
        fs::write(workspace.path("src/a"), "two").unwrap();
        let file = fs::File::options()
            .write(true)
            .open(workspace.path("src/a"))
            .unwrap();
        file.set_modified(modified).unwrap();
        assert_eq!(workspace.keep(3), CopyOutcome::Kept);
        assert_eq!(
            fs::read_to_string(workspace.kept(3, "src/a")).unwrap(),
            "two"
        );
        workspace.until_the_next_tick();
        fs::rename(workspace.path("src/a"), workspace.path("src/b")).unwrap();
        assert_eq!(workspace.keep(4), CopyOutcome::Kept);
        assert!(workspace.kept(4, "src/b").exists() && !workspace.kept(4, "src/a").exists());
        // A copy that was used up by an `/undo` is not taken for one.
        workspace.until_the_next_tick();
        assert_eq!(workspace.keep(5), CopyOutcome::Kept);
        fs::remove_dir_all(workspace.kept(5, "")).unwrap();
        assert_eq!(workspace.keep(6), CopyOutcome::Kept);
        assert!(workspace.kept(6, "src/b").exists());
    }

    #[test]
    fn every_kind_of_file_is_copied_as_what_it_is() {
        let workspace = TestWorkspace::new();
        let folder = workspace.path("read only");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("run"), "#!/bin/sh").unwrap();
        fs::set_permissions(folder.join("run"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(folder.join("run"), workspace.path("linked")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
        let pipe = workspace.path("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        // A gibibyte with one byte in it.
        let sparse = fs::File::create(workspace.path("sparse")).unwrap();
        sparse.set_len(1 << 30).unwrap();
        std::os::unix::fs::FileExt::write_at(&sparse, b"x", 512 << 20).unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_500_000_000_123);
        sparse.set_modified(old).unwrap();
        assert_eq!(workspace.keep(1), CopyOutcome::Kept);

        let facts = |name: &str| fs::symlink_metadata(workspace.kept(1, name)).unwrap();
        assert_eq!(facts("read only/run").mode() & 0o7777, 0o751);
        assert_eq!(facts("read only").mode() & 0o7777, 0o555);
        assert_eq!(facts("linked").ino(), facts("read only/run").ino());
        assert!(facts("pipe").file_type().is_fifo());
        assert_eq!(facts("sparse").len(), 1 << 30);
        assert!(facts("sparse").blocks() < 2048, "its holes were filled");
        assert_eq!(facts("sparse").modified().unwrap(), old);
        let mut byte = [0];
        let copied = fs::File::open(workspace.kept(1, "sparse")).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&copied, &mut byte, 512 << 20).unwrap();
        assert_eq!(&byte, b"x");

        // A copy in which a folder is read-only can be removed all the same.
        fs::write(workspace.path("new"), "").unwrap();
        assert_eq!(workspace.keep(2), CopyOutcome::Kept);
        assert!(!workspace.kept(1, "").exists() && workspace.kept(2, "new").exists());
    }

    #[test]
    fn what_is_too_large_is_not_copied_and_leaves_nothing() {
        let workspace = TestWorkspace::new();
        fs::write(workspace.path("small"), "x").unwrap();
        assert_eq!(workspace.keep(1), CopyOutcome::Kept);
        fs::write(workspace.path("large"), vec![b'x'; 1100 << 10]).unwrap();
        assert_eq!(workspace.keep(2), CopyOutcome::TooLarge);
        assert!(!workspace.path(OWN_FOLDER).exists());
        fs::remove_file(workspace.path("large")).unwrap();
        for number in 0..20 {
            fs::write(workspace.path(&number.to_string()), "").unwrap();
        }
        assert_eq!(workspace.keep(3), CopyOutcome::TooLarge);
        // An `/undo` that was cut has the only copy of some files in there.
        let own = workspace.path(OWN_FOLDER);
        fs::create_dir(&own).unwrap();
        fs::write(own.join(CUT_UNDO), "out 2").unwrap();
        assert_eq!(workspace.keep(4), CopyOutcome::NotCopied);
        assert!(own.join(CUT_UNDO).exists());
    }
}
