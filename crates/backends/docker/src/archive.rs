//! What goes into an image before it has containers, as the tar that the engine unpacks: the warden, a
//! folder for its socket, and the workspace.

use std::sync::OnceLock;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Unpacked here.
pub(crate) const ROOT: &str = "/";
pub(crate) const WARDEN: &str = "/.hermetic/warden";
pub(crate) const RUN: &str = "/.hermetic/run";
pub(crate) const SOCKET: &str = "/.hermetic/run/warden.sock";
pub(crate) const WORKSPACE: &str = "/workspace";

/// Made once each: they are megabytes that never change.
#[derive(Debug, Default)]
pub(crate) struct WardenArchives {
    tars: [OnceLock<Bytes>; 2],
    digest: OnceLock<[u8; 32]>,
}

/// Says whether the container's processes run as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerUserKind {
    Root,
    /// Known by a name only the image can resolve: the folders are open to whoever it is.
    SomebodyElse,
}

impl WardenArchives {
    pub(crate) fn get(&self, program: &[u8], whose: ContainerUserKind) -> Bytes {
        let kept = &self.tars[usize::from(whose == ContainerUserKind::Root)];
        kept.get_or_init(|| build(program, whose)).clone()
    }

    /// By which one program is told from another.
    pub(crate) fn digest(&self, program: &[u8]) -> &[u8; 32] {
        self.digest.get_or_init(|| Sha256::digest(program).into())
    }
}

impl ContainerUserKind {
    /// The mode of the folder that the warden's socket is in.
    pub(crate) fn run_mode(self) -> u32 {
        match self {
            Self::Root => 0o700,
            Self::SomebodyElse => 0o1777,
        }
    }

    fn workspace_mode(self) -> u32 {
        match self {
            Self::Root => 0o755,
            Self::SomebodyElse => 0o777,
        }
    }
}

fn build(program: &[u8], whose: ContainerUserKind) -> Bytes {
    let mut tar = Vec::with_capacity(program.len() + 8 * BLOCK);
    folder(&mut tar, ".hermetic/", 0o755);
    folder(&mut tar, ".hermetic/run/", whose.run_mode());
    folder(&mut tar, "workspace/", whose.workspace_mode());
    file(&mut tar, ".hermetic/warden", 0o555, program);
    // An archive ends with two empty blocks, without which an engine takes it for one that was cut
    // off.
    tar.resize(tar.len() + 2 * BLOCK, 0);
    tar.into()
}

/// What an archive of one path begins with.
pub(crate) enum ArchiveEntry<'a> {
    File(&'a [u8]),
    Link(String),
}

/// Nothing for a folder, a device, or what is no archive.
pub(crate) fn first(tar: &[u8]) -> Option<ArchiveEntry<'_>> {
    let mut rest = tar;
    loop {
        let (header, after) = rest.split_at_checked(BLOCK)?;
        let text = |range: std::ops::Range<usize>| {
            let field = header[range].split(|byte| *byte == 0).next();
            std::str::from_utf8(field.unwrap_or_default()).ok()
        };
        let size = usize::from_str_radix(text(124..136)?.trim(), 8).ok()?;
        match header[156] {
            b'0' | 0 => return after.get(..size).map(ArchiveEntry::File),
            b'2' => return Some(ArchiveEntry::Link(text(157..257)?.to_owned())),
            // Words about the entry that follows.
            b'x' | b'g' => rest = after.get(size.next_multiple_of(BLOCK)..)?,
            _ => return None,
        }
    }
}

/// Readable by all.
pub(crate) fn one_file(name: &str, content: &[u8]) -> Bytes {
    let mut tar = Vec::with_capacity(content.len() + 4 * BLOCK);
    file(&mut tar, name, 0o644, content);
    tar.resize(tar.len() + 2 * BLOCK, 0);
    tar.into()
}

const BLOCK: usize = 512;

fn folder(tar: &mut Vec<u8>, name: &str, mode: u32) {
    tar.extend(header(name, mode, 0, b'5'));
}

fn file(tar: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    tar.extend(header(name, mode, content.len(), b'0'));
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}

/// One ustar header. Owner and group are root's: zero, as the empty block has them.
fn header(name: &str, mode: u32, size: usize, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn the_first_file_is_found_behind_words_about_it() {
        let mut tar = header("x", 0o644, 3, b'x').to_vec();
        tar.resize(2 * BLOCK, 7);
        tar.extend_from_slice(&one_file("etc/file", b"content"));
        assert!(matches!(first(&tar), Some(ArchiveEntry::File(b"content"))));
        for bad in [&tar[..700], &tar[..2 * BLOCK + 515], &[b'9'; 2000], b""] {
            assert!(first(bad).is_none());
        }
    }

    #[test]
    fn the_archive_is_what_tar_makes_of_it() {
        let mut tar = Command::new("tar")
            .args(["-tv", "--numeric-owner", "--full-time", "--utc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let archive = WardenArchives::default().get(&[7; 700], ContainerUserKind::SomebodyElse);
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let output = tar.wait_with_output().unwrap();
        assert!(output.status.success());
        let listed = String::from_utf8(output.stdout).unwrap();
        let words: Vec<Vec<&str>> = listed
            .lines()
            .map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                vec![words[0], words[1], words[2], words[words.len() - 1]]
            })
            .collect();
        assert_eq!(
            words,
            [
                ["drwxr-xr-x", "0/0", "0", ".hermetic/"],
                ["drwxrwxrwt", "0/0", "0", ".hermetic/run/"],
                ["drwxrwxrwx", "0/0", "0", "workspace/"],
                ["-r-xr-xr-x", "0/0", "700", ".hermetic/warden"],
            ]
        );
    }
}
