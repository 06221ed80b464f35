//! Files in and out.
//!
//! Only regular files are read or replaced: opening a FIFO or a device neither hangs nor has an
//! effect. The calls block the warden's one thread for as long as the disk takes for one frame.

mod place;
mod resolve;
mod write;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, unlinkat};
use rustix::io::{Errno, pread};

use super::client::OpenCall;
use super::state::system;
use crate::protocol::frame::{FrameKind, HEADER, header};
use crate::protocol::{
    ByteString, FailureKind, FileKind, FileMetadata, FolderEntry, MAX_DATA, MAX_ENTRIES, MAX_REPLY,
    PathAt, ReadRequest, WardenFailure, WardenReply, encode,
};
use place::{open, open_parent, open_parent_making};
pub(crate) use resolve::resolve;
pub(crate) use write::write;

pub(crate) async fn read(call: OpenCall, request: ReadRequest) {
    let (file, metadata) = match open_regular(&request.at) {
        Ok(opened) => opened,
        Err(failure) => return call.fail(&failure).await,
    };
    let reply = encode(&WardenReply::Metadata(metadata));
    if call.stream.send(FrameKind::Reply, &reply).await.is_err() {
        return;
    }
    let mut frame = vec![0; HEADER + MAX_DATA];
    let mut offset = request.offset;
    let mut left = request.length.unwrap_or(u64::MAX);
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(MAX_DATA);
        let length = match pread(&file, &mut frame[HEADER..HEADER + most], offset) {
            Ok(0) => break,
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(error) => return call.fail(&system("read", &error.into())).await,
        };
        frame[..HEADER].copy_from_slice(&header(FrameKind::Data, length));
        if call
            .stream
            .write_all(&frame[..HEADER + length])
            .await
            .is_err()
        {
            return;
        }
        offset += length as u64;
        left -= length as u64;
        // A fast reader of a large file must not keep the others waiting.
        tokio::task::yield_now().await;
    }
    if call.stream.send(FrameKind::DataEnd, &[]).await.is_ok() {
        let _ = call.stream.close().await;
    }
}

pub(crate) fn stat(at: &PathAt) -> Result<WardenReply, WardenFailure> {
    let file = open(at, OFlags::PATH | OFlags::NOFOLLOW)?;
    let stat = fstat(&file).map_err(|error| system("look at the file", &error.into()))?;
    Ok(WardenReply::Metadata(metadata(&stat)))
}

pub(crate) fn list(at: &PathAt) -> Result<WardenReply, WardenFailure> {
    let folder = open(at, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?;
    let list = || -> Result<Vec<FolderEntry>, Errno> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                entries.push(FolderEntry {
                    name: ByteString(name.to_vec()),
                    kind: file_kind(entry.file_type()),
                });
            }
        }
        Ok(entries)
    };
    let mut entries = list().map_err(|error| system("list the directory", &error.into()))?;
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let size: usize = entries.iter().map(|entry| entry.name.0.len() + 8).sum();
    if entries.len() > MAX_ENTRIES || size > MAX_REPLY - 64 {
        return Err(WardenFailure {
            kind: FailureKind::TooMany,
            errno: None,
            text: format!("the directory has {} entries", entries.len()),
        });
    }
    Ok(WardenReply::Entries(entries))
}

pub(crate) fn make_dir(at: &PathAt) -> Result<WardenReply, WardenFailure> {
    let within = PathAt {
        root: at.root.clone(),
        links: at.links,
        path: ByteString([at.path.0.as_slice(), b"/."].concat()),
    };
    open_parent_making(&within)?;
    Ok(WardenReply::Done)
}

pub(crate) fn remove(at: &PathAt) -> Result<WardenReply, WardenFailure> {
    let (folder, name) = open_parent(at)?;
    let removed = match unlinkat(&folder, &*name, AtFlags::empty()) {
        // Tried as a file first: a look before it could be outdated by the time of the removal.
        // Which error a folder gives differs between file systems.
        Err(Errno::ISDIR | Errno::PERM) => unlinkat(&folder, &*name, AtFlags::REMOVEDIR),
        other => other,
    };
    removed.map_err(|error| system("remove it", &error.into()))?;
    Ok(WardenReply::Done)
}

fn open_regular(at: &PathAt) -> Result<(OwnedFd, FileMetadata), WardenFailure> {
    // Looked at before it is opened: opening a FIFO may wait, and opening a device may do something.
    let found = open(at, OFlags::PATH)?;
    let stat = fstat(found.as_fd()).map_err(|error| system("look at the file", &error.into()))?;
    let metadata = metadata(&stat);
    if metadata.kind != FileKind::File {
        return Err(refused(not_a_file(metadata.kind)));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // By the descriptor that was looked at: by its name it might be a pipe now.
    let file = rustix::fs::open(place::by_descriptor(&found), flags, Mode::empty())
        .map_err(|error| system("open the file", &error.into()))?;
    Ok((file, metadata))
}

fn not_a_file(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Directory => "a directory, not a file",
        _ => "not a regular file",
    }
}

fn metadata(stat: &Stat) -> FileMetadata {
    FileMetadata {
        kind: file_kind(FileType::from_raw_mode(stat.st_mode)),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified: stat.st_mtime,
        modified_nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        inode: stat.st_ino,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

fn refused(why: &str) -> WardenFailure {
    WardenFailure {
        kind: FailureKind::Refused,
        errno: None,
        text: why.to_owned(),
    }
}
