//! Files into a sandbox.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_warden::client::{WardenCallError, WardenServices};
use hermetic_warden::protocol::{ByteString, FileKind, FileMetadata, PathAt, WriteRequest};
use rustix::fs::OFlags;

use super::{CopyTally, MOST_DEPTH, beneath, not_sent, resolved, shown, too_deep};
use crate::failure::CommandFailure;

const CHUNK: usize = 64 << 10;

pub(super) async fn copy_in(
    warden: &WardenServices,
    from: &Path,
    to: &str,
    tally: &mut CopyTally,
) -> Result<(), CommandFailure> {
    let from_metadata =
        fs::metadata(from).map_err(|error| CommandFailure::file("read", from, &error))?;
    let (path, there) = resolved(warden, to).await?;
    let path = match there {
        Some(FileMetadata {
            kind: FileKind::Directory,
            ..
        }) => {
            let name = fs::canonicalize(from).ok();
            let name = name
                .as_deref()
                .and_then(Path::file_name)
                .unwrap_or_default();
            beneath(&path, &ByteString(name.as_bytes().to_vec()))
        }
        _ => path,
    };
    let mut waiting = vec![(from.to_owned(), path, 0)];
    if from_metadata.is_file() {
        let file = File::open(from).map_err(|error| CommandFailure::file("read", from, &error))?;
        return send(warden, (from, file), waiting.remove(0).1, tally).await;
    }
    while let Some((folder, into, depth)) = waiting.pop() {
        if depth > MOST_DEPTH {
            return Err(too_deep());
        }
        tally.entry()?;
        is_free(warden, &into).await?;
        let made = warden.make_dir(PathAt::resolved(into.0.clone()));
        made.await.map_err(|error| not_sent(&into, &error))?;
        let below = send_folder(warden, (&folder, &into), tally).await?;
        let deeper = below.into_iter();
        waiting.extend(deeper.map(|(folder, into)| (folder, into, depth + 1)));
    }
    Ok(())
}

/// Sends the files of one folder; its folders are given back.
async fn send_folder(
    warden: &WardenServices,
    (folder, into): (&Path, &ByteString),
    tally: &mut CopyTally,
) -> Result<Vec<(PathBuf, ByteString)>, CommandFailure> {
    let mut below = Vec::new();
    let failed = |error: io::Error| CommandFailure::file("read", folder, &error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let name = ByteString(entry.file_name().as_bytes().to_vec());
        let inside = beneath(into, &name);
        if kind.is_dir() {
            below.push((entry.path(), inside));
        } else if kind.is_file() {
            tally.entry()?;
            // It may have become a link since it was listed.
            let mut options = OpenOptions::new();
            let options = options
                .read(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
            let file = options.open(entry.path()).map_err(failed)?;
            send(warden, (&entry.path(), file), inside, tally).await?;
        } else {
            // Where it leads is not what was named.
            tally.left_out += 1;
        }
    }
    Ok(below)
}

async fn send(
    warden: &WardenServices,
    (from, mut file): (&Path, File),
    to: ByteString,
    tally: &mut CopyTally,
) -> Result<(), CommandFailure> {
    let unread = |error: io::Error| CommandFailure::file("read", from, &error);
    is_free(warden, &to).await?;
    let request = WriteRequest {
        mode: file.metadata().map_err(unread)?.permissions().mode() & 0o777,
        ..WriteRequest::new(PathAt::resolved(to.0.clone()))
    };
    let unsent = |error: WardenCallError| not_sent(&to, &error);
    let mut writer = warden.write_file(request).await.map_err(unsent)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = file.read(&mut buffer).map_err(unread)?;
        if length == 0 {
            break;
        }
        tally.piece(length)?;
        writer.write(&buffer[..length]).await.map_err(unsent)?;
    }
    writer.finish().await.map_err(unsent)?;
    tally.files += 1;
    Ok(())
}

/// Where a path leads inside, and what is there.
async fn is_free(warden: &WardenServices, path: &ByteString) -> Result<(), CommandFailure> {
    match warden.stat(PathAt::resolved(path.0.clone())).await {
        Ok(_) => Err(CommandFailure::new(
            format!("{} is there already, in the sandbox", shown(path)),
            "name another place: nothing is replaced",
        )),
        Err(WardenCallError::LinkLost) => Err(not_sent(path, &WardenCallError::LinkLost)),
        // Not there, which is what is wanted; whatever else is wrong is said by the act itself.
        Err(_) => Ok(()),
    }
}
