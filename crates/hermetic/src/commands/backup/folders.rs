//! The folders of an installation: what people wrote for the agent, and logins.

use std::io::{self, Write};

use hermetic_config::HomeFolder;

use super::archive::ArchiveWriter;
use super::manifest::{FOLDERS, FilePlace};
use crate::folder_reader::{FolderReader, LeftOutFile};

/// Packs them as they are now; what is not packed is named.
pub(super) fn add(
    archive: &mut ArchiveWriter<impl Write>,
    home: &HomeFolder,
) -> io::Result<Vec<LeftOutFile>> {
    let mut reader = FolderReader::default();
    for folder in FOLDERS {
        let Some(place) = FilePlace::of_folder(folder) else {
            continue;
        };
        reader.read_folder(&place.within(home), &mut |file| {
            let name = format!("{folder}/{}", file.below);
            archive.add_with_mode(&name, file.mode, file.bytes)
        })?;
    }
    Ok(reader.left_out())
}
