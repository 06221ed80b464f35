//! A tar file with a manifest at its end, written and read from one end to the other.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::manifest::{self, BackupManifest, FORM, PackedFile};
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
        append(&mut self.tar, name, bytes, &mut summed)?;
        if summed.bytes != bytes {
            let why = format!("{name} became shorter while it was read");
            return Err(io::Error::other(why));
        }
        self.files.push(PackedFile {
            name: name.to_owned(),
            bytes,
            sha256: summed.sum(),
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
        append(&mut self.tar, &name, text.len() as u64, &text[..])?;
        self.tar.into_inner()
    }
}

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    name: &str,
    bytes: u64,
    from: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, name, from)
}

/// Takes the files out of an archive: each is handed over with its name, and everything is checked
/// against the manifest at the end. What was handed over counts for nothing before this returns.
pub(super) fn read(
    archive: &mut File,
    mut take: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<BackupManifest, String> {
    archive.rewind().map_err(|error| error.to_string())?;
    let mut tar = tar::Archive::new(archive);
    let entries = tar.entries().map_err(|error| unreadable(&error))?;
    let mut seen: Vec<PackedFile> = Vec::new();
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
        let is_known = manifest::place_of(&name).is_some() || manifest::is_workspace(&name);
        if !is_known || seen.iter().any(|file| file.name == name) {
            return Err(format!("{name} in it is no file of a backup"));
        }
        let mut summed = SummedFile::new(&mut entry);
        take(&name, &mut summed).map_err(|error| format!("{name}: {error}"))?;
        seen.push(PackedFile {
            name,
            bytes: summed.bytes,
            sha256: summed.sum(),
        });
    }
    Err("its end is missing: it was cut off, or is no backup".to_owned())
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
    for packed in &manifest.files {
        if !seen.contains(packed) {
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
