//! An agent's folders, written into a sandbox that cannot be shown them.
//!
//! Once for each sandbox: a mark, written last, says that all of it is there, and of what was installed. A sandbox
//! that keeps its files keeps these too. What runs inside could change them, and would change its own agent alone,
//! which is bounded by the same sandbox.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use hermetic_warden::client::WardenServices;
use hermetic_warden::protocol::{PathAt, ReadRequest, WriteRequest};
use tokio::time::Instant;

use crate::program::{AgentProgram, ProgramUpload};

/// Below the home folder inside.
const FOLDER: &str = ".hermetic/agents";
/// A file costs a round trip or two, and a package has hundreds.
const FILES_AT_ONCE: usize = 16;
const PIECE_BYTES: usize = 256 << 10;
const MOST_MARK_BYTES: usize = 256;
/// Of the sum that tells versions apart, in names of folders.
const MARK_LETTERS: usize = 12;

/// Writes what a program needs of folders that are not shown, where it is not there yet; the words that start the
/// program there.
pub async fn upload_program(
    warden: &WardenServices,
    home: &str,
    program: &AgentProgram,
) -> Result<Vec<String>, String> {
    upload(warden, home, &program.uploads).await?;
    Ok(placed(&program.command, home, &program.uploads))
}

async fn upload(
    warden: &WardenServices,
    home: &str,
    uploads: &[ProgramUpload],
) -> Result<(), String> {
    for one in uploads {
        if is_there(warden, home, one).await {
            continue;
        }
        let begun = Instant::now();
        let files = files_of(one.outside.clone()).await;
        let files = files.map_err(|error| format!("{} cannot be read: {error}", one.name))?;
        let count = files.len();
        let writes = files.into_iter().map(|file| {
            let at = format!("{FOLDER}/{}/{}", folder_name(one), file.inside);
            write(warden, home, at, file).boxed()
        });
        let writes: Vec<_> = writes.collect();
        let written: Result<(), String> = stream::iter(writes)
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect()
            .await;
        written.map_err(|error| format!("{} could not be copied: {error}", one.name))?;
        // Last of all: half a folder is none.
        put(warden, home, &mark_path(one), one.mark.as_bytes()).await?;
        let milliseconds = begun.elapsed().as_millis();
        tracing::info!(
            agent = one.name,
            files = count,
            milliseconds,
            "an agent was copied into a sandbox"
        );
    }
    Ok(())
}

/// The same words, where they name a folder that was uploaded with its place inside.
fn placed(words: &[String], home: &str, uploads: &[ProgramUpload]) -> Vec<String> {
    let place = |word: &String| {
        let found = uploads.iter().find_map(|one| {
            let rest = word.strip_prefix(one.inside.to_str()?)?;
            let ends = rest.is_empty() || rest.starts_with('/');
            ends.then(|| format!("{home}/{FOLDER}/{}{rest}", folder_name(one)))
        });
        found.unwrap_or_else(|| word.clone())
    };
    words.iter().map(place).collect()
}

/// Of its version: an agent that runs keeps its folder when another one comes.
fn folder_name(upload: &ProgramUpload) -> String {
    let mark: String = upload.mark.chars().take(MARK_LETTERS).collect();
    format!("{}-{mark}", upload.name)
}

fn mark_path(upload: &ProgramUpload) -> String {
    format!("{FOLDER}/{}.installed", folder_name(upload))
}

async fn is_there(warden: &WardenServices, home: &str, upload: &ProgramUpload) -> bool {
    let read = ReadRequest {
        at: PathAt::beneath(home, mark_path(upload)),
        offset: 0,
        length: Some(MOST_MARK_BYTES as u64),
    };
    let mark = async {
        let reader = warden.read_file(read).await.ok()?;
        reader.collect(MOST_MARK_BYTES).await.ok()?
    };
    mark.await
        .is_some_and(|mark| mark == upload.mark.as_bytes())
}

/// One file on its way.
struct UploadedFile {
    outside: PathBuf,
    inside: String,
    mode: u32,
}

async fn write(
    warden: &WardenServices,
    home: &str,
    at: String,
    file: UploadedFile,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.inside);
    let mut request = WriteRequest::new(PathAt::beneath(home, at));
    request.parents = true;
    request.mode = file.mode;
    let opened = warden.write_file(request).await;
    let mut writer = opened.map_err(|error| failed(&error))?;
    let opened = File::open(&file.outside);
    let mut source = Some(opened.map_err(|error| failed(&error))?);
    while let Some(file) = source.take() {
        let piece = tokio::task::spawn_blocking(move || next_piece(file)).await;
        let piece = piece.map_err(|error| failed(&error))?;
        let (bytes, rest) = piece.map_err(|error| failed(&error))?;
        if !bytes.is_empty() {
            writer.write(&bytes).await.map_err(|error| failed(&error))?;
            source = Some(rest);
        }
    }
    writer.finish().await.map_err(|error| failed(&error))
}

/// The next bytes, none at the end. Agents have files of hundreds of megabytes.
fn next_piece(mut file: File) -> io::Result<(Vec<u8>, File)> {
    let mut bytes = Vec::with_capacity(PIECE_BYTES);
    (&mut file)
        .take(PIECE_BYTES as u64)
        .read_to_end(&mut bytes)?;
    Ok((bytes, file))
}

async fn put(warden: &WardenServices, home: &str, at: &str, bytes: &[u8]) -> Result<(), String> {
    let mut request = WriteRequest::new(PathAt::beneath(home, at));
    request.parents = true;
    let written = async {
        let mut writer = warden.write_file(request).await?;
        writer.write(bytes).await?;
        writer.finish().await
    };
    written.await.map_err(|error| error.to_string())
}

async fn files_of(folder: PathBuf) -> io::Result<Vec<UploadedFile>> {
    let walk = tokio::task::spawn_blocking(move || {
        let mut files = Vec::new();
        walk(&folder, &folder, &mut files).map(|()| files)
    });
    walk.await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Files alone: an installed tree has no links, and one that was put there since is not followed.
fn walk(root: &Path, folder: &Path, files: &mut Vec<UploadedFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else if kind.is_file() {
            let inside = path.strip_prefix(root).map_err(io::Error::other)?;
            let inside = inside
                .to_str()
                .ok_or_else(|| io::Error::other("its name is no text"))?;
            files.push(UploadedFile {
                inside: inside.to_owned(),
                mode: entry.metadata()?.permissions().mode() & 0o777,
                outside: path,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_folders_are_placed() {
        let upload = ProgramUpload {
            name: "one".to_owned(),
            outside: "/home/agents/one/tree".into(),
            inside: "/agents/one".into(),
            mark: "0123456789abcdef".to_owned(),
        };
        let words = [
            "/agents/one/bin/x",
            "/agents/one",
            "/agents/oneself",
            "-x=/agents/one",
        ];
        let placed = placed(&words.map(str::to_owned), "/root", &[upload]);
        assert_eq!(
            placed,
            [
                "/root/.hermetic/agents/one-0123456789ab/bin/x",
                "/root/.hermetic/agents/one-0123456789ab",
                "/agents/oneself",
                "-x=/agents/one",
            ]
        );
    }
}
