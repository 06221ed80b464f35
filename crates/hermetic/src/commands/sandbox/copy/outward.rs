//! Files out of a sandbox.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use hermetic_warden::client::{WardenCallError, WardenServices};
use hermetic_warden::protocol::{ByteString, FileKind, PathAt, ReadRequest};

use super::{
    CopyTally, MOST_DEPTH, beneath, last_name, not_read, not_written, plain_name, resolved,
    too_deep,
};
use crate::failure::CommandFailure;
use crate::output::printable;

pub(super) async fn copy_out(
    warden: &WardenServices,
    from: &str,
    to: &Path,
    tally: &mut CopyTally,
) -> Result<(), CommandFailure> {
    let (path, metadata) = resolved(warden, from).await?;
    let metadata = metadata.ok_or_else(|| {
        CommandFailure::new(
            format!("there is no {} in the sandbox", printable(from)),
            "look with `hermetic sandbox exec SANDBOX -- ls`",
        )
    })?;
    let to = match to.is_dir() {
        true => to.join(last_name(&path)?),
        false => to.to_owned(),
    };
    match metadata.kind {
        FileKind::File => fetch(warden, path, &to, tally).await,
        FileKind::Directory => fetch_folder(warden, path, &to, tally).await,
        FileKind::Symlink | FileKind::Other => Err(CommandFailure::new(
            format!("{} is no file and no folder", printable(from)),
            "only files and folders are copied",
        )),
    }
}

async fn fetch_folder(
    warden: &WardenServices,
    from: ByteString,
    to: &Path,
    tally: &mut CopyTally,
) -> Result<(), CommandFailure> {
    let mut waiting = vec![(from, to.to_owned(), 0)];
    while let Some((folder, into, depth)) = waiting.pop() {
        if depth > MOST_DEPTH {
            return Err(too_deep());
        }
        tally.entry()?;
        let mut builder = DirBuilder::new();
        // Fails where anything is there, a link that leads elsewhere as well.
        let made = builder.mode(0o755).create(&into);
        made.map_err(|error| not_written(&into, &error))?;
        let entries = warden.list_dir(PathAt::resolved(folder.0.clone()));
        for entry in entries.await.map_err(|error| not_read(&folder, &error))? {
            let name = plain_name(&entry.name.0)?;
            let (inside, outside) = (beneath(&folder, &entry.name), into.join(name));
            match entry.kind {
                FileKind::Directory => waiting.push((inside, outside, depth + 1)),
                FileKind::File => {
                    tally.entry()?;
                    fetch(warden, inside, &outside, tally).await?;
                }
                FileKind::Symlink | FileKind::Other => tally.left_out += 1,
            }
        }
    }
    Ok(())
}

/// Whole, or not at all.
async fn fetch(
    warden: &WardenServices,
    from: ByteString,
    to: &Path,
    tally: &mut CopyTally,
) -> Result<(), CommandFailure> {
    let lost = |error: &WardenCallError| not_read(&from, error);
    let at = PathAt::resolved(from.0.clone());
    let mut reader = warden
        .read_file(ReadRequest::whole(at))
        .await
        .map_err(|error| lost(&error))?;
    // No bit that lends rights crosses over.
    let mode = reader.metadata().mode & 0o777 | 0o600;
    // Over nothing that is there, and through no link.
    let new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to);
    let mut file = new.map_err(|error| not_written(to, &error))?;
    let copied = async {
        while let Some(piece) = reader.next().await.map_err(|error| lost(&error))? {
            tally.piece(piece.len())?;
            file.write_all(&piece)
                .map_err(|error| not_written(to, &error))?;
        }
        Ok(())
    };
    let copied = copied.await;
    match copied {
        Ok(()) => tally.files += 1,
        // We made it, a moment ago.
        Err(_) => drop(fs::remove_file(to)),
    }
    copied
}
