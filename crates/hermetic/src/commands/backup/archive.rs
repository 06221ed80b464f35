//! A tar file with a manifest at its end, written and read from one end to the other.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::manifest::{self, BackupManifest, FORM, FilePlace, PackedFile};
use crate::folder_reader::{MOST_BYTES, MOST_FILES};
use crate::regular_file;

/// Packs files one after the other and knows the sum of each.
pub(super) struct ArchiveWriter<W: Write> {
    tar: tar::Builder<W>,
    files: Vec<PackedFile>,
}

impl<W: Write> ArchiveWriter<W> {
    pub(super) fn new(into: W) -> Self {
        Self {
            tar: tar::Builder::new(into),
            files: Vec::new(),
        }
    }

    /// Exactly so many bytes; a file that is shorter by now is an error, one that grew is cut.
    pub(super) fn add(&mut self, name: &str, bytes: u64, from: impl Read) -> io::Result<()> {
        let mut summed = SummedFile::new(from.take(bytes));
        append(&mut self.tar, (name, PRIVATE), bytes, &mut summed)?;
        if summed.bytes != bytes {
            let why = format!("{name} became shorter while it was read");
            return Err(io::Error::other(why));
        }
        self.files.push(PackedFile {
            name: name.to_owned(),
            bytes,
            sha256: summed.sum(),
            mode: None,
        });
        Ok(())
    }

    /// A file of a folder, which was read already.
    pub(super) fn add_with_mode(&mut self, name: &str, mode: u32, text: &[u8]) -> io::Result<()> {
        let mode = mode & KEPT_OF_MODE;
        let bytes = text.len() as u64;
        append(&mut self.tar, (name, mode), bytes, text)?;
        self.files.push(PackedFile {
            name: name.to_owned(),
            bytes,
            sha256: manifest::sum(Sha256::digest(text)),
            mode: Some(mode),
        });
        Ok(())
    }

    pub(super) fn files(&self) -> &[PackedFile] {
        &self.files
    }

    /// With the manifest behind everything it speaks of.
    pub(super) fn finish(mut self, manifest: &BackupManifest) -> io::Result<W> {
        let text = serde_json::to_vec_pretty(manifest)?;
        let name = manifest::name(&text);
        append(
            &mut self.tar,
            (&name, PRIVATE),
            text.len() as u64,
            &text[..],
        )?;
        self.tar.into_inner()
    }
}

/// Of whatever is no file in a folder.
const PRIVATE: u32 = 0o600;

/// Nobody else may write to what is restored, and no bit gives anybody rights.
const KEPT_OF_MODE: u32 = 0o755;

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    (name, mode): (&str, u32),
    bytes: u64,
    from: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, name, from)
}

/// Takes the files out of an archive: each is handed over with its name and mode, and everything is checked
/// against the manifest at the end. What was handed over counts for nothing before this returns.
pub(super) fn read(
    archive: &mut File,
    mut take: impl FnMut((&str, u32), &mut dyn Read) -> io::Result<()>,
) -> Result<BackupManifest, String> {
    archive.rewind().map_err(|error| error.to_string())?;
    let mut tar = tar::Archive::new(archive);
    let entries = tar.entries().map_err(|error| unreadable(&error))?;
    let mut seen: Vec<PackedFile> = Vec::new();
    let mut names = HashSet::new();
    let mut in_folders = InFolders::default();
    for entry in entries {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        let name = entry.path().map_err(|error| unreadable(&error))?;
        let name = name.to_string_lossy().into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(format!("{name} in it is no ordinary file"));
        }
        if name.starts_with(manifest::NAME) {
            // Nobody reads what was put behind it.
            return compare(&name, &mut entry, &seen);
        }
        let is_known = FilePlace::of(&name).is_some() || manifest::is_workspace(&name);
        if !is_known || !names.insert(name.clone()) {
            return Err(format!("{name} in it is no file of a backup"));
        }
        let mode = in_folders.mode_of(&name, entry.size(), entry.header())?;
        let mut summed = SummedFile::new(&mut entry);
        let taken = take((&name, mode.unwrap_or(PRIVATE)), &mut summed);
        taken.map_err(|error| format!("{name}: {error}"))?;
        seen.push(PackedFile {
            name,
            bytes: summed.bytes,
            sha256: summed.sum(),
            mode,
        });
    }
    Err("its end is missing: it was cut off, or is no backup".to_owned())
}

/// What an archive puts into folders, which has a bound: nobody checks its manifest before.
#[derive(Default)]
struct InFolders {
    files: usize,
    bytes: u64,
}

impl InFolders {
    /// The mode of a file in a folder, if it is one.
    fn mode_of(
        &mut self,
        name: &str,
        bytes: u64,
        header: &tar::Header,
    ) -> Result<Option<u32>, String> {
        if !manifest::is_in_folder(name) {
            return Ok(None);
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files > MOST_FILES || self.bytes > MOST_BYTES {
            return Err("there is more in its folders than a backup packs".to_owned());
        }
        let mode = header.mode().map_err(|error| unreadable(&error))?;
        Ok(Some(mode & KEPT_OF_MODE))
    }
}

fn compare(
    name: &str,
    entry: &mut impl Read,
    seen: &[PackedFile],
) -> Result<BackupManifest, String> {
    let mut text = String::new();
    let mut bounded = entry.take(manifest::LONGEST);
    let read = bounded.read_to_string(&mut text);
    read.map_err(|error| unreadable(&error))?;
    if name != manifest::name(text.as_bytes()) {
        return Err("its manifest is not what was written".to_owned());
    }
    // Its form first: the rest may be written another way in a later one.
    let form = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|manifest| manifest["form"].as_u64());
    match form {
        Some(form) if form > u64::from(FORM) => {
            return Err("a newer version of this program made it".to_owned());
        }
        _ => {}
    }
    let manifest: BackupManifest =
        serde_json::from_str(&text).map_err(|_| "its manifest cannot be read".to_owned())?;
    // Side by side: a backup may have thousands.
    let by_name: HashMap<_, _> = seen.iter().map(|file| (&file.name, file)).collect();
    for packed in &manifest.files {
        if by_name.get(&packed.name) != Some(&packed) {
            return Err(format!("{} in it is not what was packed", packed.name));
        }
    }
    match seen.len() == manifest.files.len() {
        true => Ok(manifest),
        false => Err("it holds files that its manifest does not name".to_owned()),
    }
}

fn unreadable(error: &io::Error) -> String {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    // What the reader of archives says of other files quotes them.
    match error.kind() {
        InvalidData | InvalidInput | Other | UnexpectedEof => {
            "it is no backup, or a damaged one".to_owned()
        }
        _ => format!("it cannot be read: {error}"),
    }
}

/// Counts and sums up what is read through it.
struct SummedFile<R> {
    from: R,
    sha256: Sha256,
    bytes: u64,
}

impl<R: Read> SummedFile<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            sha256: Sha256::new(),
            bytes: 0,
        }
    }

    fn sum(self) -> String {
        manifest::sum(self.sha256.finalize())
    }
}

impl<R: Read> Read for SummedFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.sha256.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The beginning and the length of one file in an archive that was read and found whole.
pub(super) fn place_in(archive: &mut File, wanted: &str) -> io::Result<Option<(u64, u64)>> {
    archive.rewind()?;
    let mut tar = tar::Archive::new(archive);
    for entry in tar.entries_with_seek()? {
        let entry = entry?;
        if entry.path()?.to_str() == Some(wanted) {
            return Ok(Some((entry.raw_file_position(), entry.size())));
        }
    }
    Ok(None)
}

/// Opens an archive to be read twice.
pub(super) fn open(path: &Path) -> io::Result<File> {
    regular_file::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_folders_is_bounded_and_gives_nobody_rights() {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o6777);
        let mut folders = InFolders::default();
        let mut mode_of = |name: &str, bytes| folders.mode_of(name, bytes, &header);
        assert_eq!(mode_of("home/config.yaml", u64::MAX), Ok(None));
        assert_eq!(mode_of("home/skills/a/run.sh", MOST_BYTES), Ok(Some(0o755)));
        assert!(mode_of("home/skills/b", 1).is_err());
        assert!(mode_of("home/skills/c", u64::MAX).is_err());

        let mut folders = InFolders::default();
        let all = (0..MOST_FILES).all(|_| folders.mode_of("home/skills/x", 0, &header).is_ok());
        assert!(all && folders.mode_of("home/skills/x", 0, &header).is_err());
    }
}
