//! A file that appears whole or not at all.

use std::cell::Cell;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, openat, readlinkat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::place::{open_parent, open_parent_making};
use super::{metadata, not_a_file, refused};
use crate::protocol::frame::FrameKind;
use crate::protocol::{
    ByteString, FailureKind, FileVersion, PathAt, SymlinkPolicy, WardenFailure, WardenReply,
    WriteRequest, encode,
};
use crate::serve::client::OpenCall;
use crate::serve::state::{bad_request, system};

/// As the kernel has it.
const MOST_SYMLINKS: usize = 40;

pub(crate) async fn write(mut call: OpenCall, request: WriteRequest) {
    let mut draft = match FileDraft::begin(&request) {
        Ok(draft) => draft,
        Err(failure) => return call.fail(&failure).await,
    };
    let ready = encode(&WardenReply::Done);
    if call.stream.send(FrameKind::Reply, &ready).await.is_err() {
        return;
    }
    loop {
        // A caller who goes away before the end leaves the old file as it was.
        let Ok(Some(frame)) = call.stream.receive(&mut call.frames).await else {
            return;
        };
        let step = match frame.kind {
            FrameKind::Data => draft.append(&frame.payload),
            FrameKind::DataEnd => {
                return call
                    .answer(draft.publish().map(|()| WardenReply::Done))
                    .await;
            }
            _ => Err(bad_request("neither data nor its end")),
        };
        if let Err(failure) = step {
            return call.fail(&failure).await;
        }
        tokio::task::yield_now().await;
    }
}

/// The new content, beside its place and not yet in it.
struct FileDraft {
    folder: OwnedFd,
    name: Vec<u8>,
    aside: Vec<u8>,
    file: OwnedFd,
    mode: Mode,
    replaces: Option<FileVersion>,
    published: bool,
}

impl FileDraft {
    fn begin(request: &WriteRequest) -> Result<Self, WardenFailure> {
        let (folder, name, old) = find_place(request)?;
        let aside = aside_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(
            &folder,
            // In the same folder, as a rename across file systems would be a copy.
            &*aside,
            flags | OFlags::CLOEXEC,
            // Ours alone until it is whole: the old file may be closed to others, and half of the
            // new one is no less so.
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|error| system("create the file", &error.into()))?;
        let mode = match &old {
            Some(old) => Mode::from_raw_mode(old.st_mode & 0o7777),
            None => Mode::from_raw_mode(request.mode & 0o777),
        };
        if let Some(old) = old {
            // Only root can give a file away; for others the file becomes theirs.
            let _ = fchown(
                &file,
                Some(rustix::fs::Uid::from_raw(old.st_uid)),
                Some(rustix::fs::Gid::from_raw(old.st_gid)),
            );
        }
        Ok(Self {
            folder,
            name,
            aside,
            file,
            mode,
            replaces: request.replaces,
            published: false,
        })
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), WardenFailure> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.file, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(system("write", &error.into())),
            }
        }
        Ok(())
    }

    fn publish(mut self) -> Result<(), WardenFailure> {
        // The mode after the owner, as giving a file away clears its set-user-id bits; and before
        // it has its name.
        fchmod(&self.file, self.mode).map_err(|error| system("set the mode", &error.into()))?;
        // As late as can be. Between this and the rename somebody may still write; the kernel has
        // no way to compare and rename in one.
        self.check_unchanged()?;
        renameat(&self.folder, &*self.aside, &self.folder, &*self.name)
            .map_err(|error| system("put the file in its place", &error.into()))?;
        self.published = true;
        Ok(())
    }
}

impl FileDraft {
    fn check_unchanged(&self) -> Result<(), WardenFailure> {
        let Some(expected) = self.replaces else {
            return Ok(());
        };
        let now = statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
        if now.is_ok_and(|now| metadata(&now).stamp() == expected) {
            return Ok(());
        }
        Err(WardenFailure {
            kind: FailureKind::Changed,
            errno: None,
            text: "the file was changed by somebody else meanwhile".to_owned(),
        })
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.published {
            let _ = unlinkat(&self.folder, &*self.aside, AtFlags::empty());
        }
    }
}

/// The directory and name to write to, symlinks followed, and what is there now.
fn find_place(request: &WriteRequest) -> Result<(OwnedFd, Vec<u8>, Option<Stat>), WardenFailure> {
    let mut at = request.at.clone();
    for _ in 0..MOST_SYMLINKS {
        let (folder, name) = if request.parents {
            open_parent_making(&at)?
        } else {
            open_parent(&at)?
        };
        let old = match statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(old) => old,
            Err(Errno::NOENT) => return Ok((folder, name, None)),
            Err(error) => return Err(system("look at the file", &error.into())),
        };
        match FileType::from_raw_mode(old.st_mode) {
            FileType::RegularFile => return Ok((folder, name, Some(old))),
            FileType::Symlink if at.links == SymlinkPolicy::Refuse => {
                return Err(refused("a symlink where a file was"));
            }
            FileType::Symlink => {
                let target = readlinkat(&folder, &*name, Vec::new())
                    .map_err(|error| system("follow the symlink", &error.into()))?;
                at = follow(&at, &name, target.to_bytes());
            }
            _ => return Err(refused(not_a_file(metadata(&old).kind))),
        }
    }
    Err(refused("too many symlinks"))
}

/// The path with its last name replaced by where the symlink of that name leads.
fn follow(at: &PathAt, name: &[u8], target: &[u8]) -> PathAt {
    let path = if target.first() == Some(&b'/') {
        target.to_vec()
    } else {
        let parent = &at.path.0[..at.path.0.len() - name.len()];
        [parent, target].concat()
    };
    PathAt {
        root: at.root.clone(),
        links: at.links,
        path: ByteString(path),
    }
}

fn aside_name() -> Vec<u8> {
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let number = NEXT.replace(NEXT.get() + 1);
    format!(".hermetic-{}-{number}.part", std::process::id()).into_bytes()
}
