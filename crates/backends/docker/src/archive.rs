//! What goes into a container before it starts, as the tar that the engine unpacks: the warden, a
//! folder for its socket, and the workspace.

use std::sync::OnceLock;

use bytes::Bytes;

/// The folder of ours, in the root of every container.
pub(crate) const HOME: &str = "/.hermetic";
pub(crate) const WARDEN: &str = "/.hermetic/warden";
pub(crate) const SOCKET: &str = "/.hermetic/run/warden.sock";
pub(crate) const WORKSPACE: &str = "/workspace";

/// Made once each: they are two megabytes that never change.
#[derive(Debug, Default)]
pub(crate) struct Archives([[OnceLock<Bytes>; 2]; 2]);

/// Who the container's processes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Root,
    /// Known by a name only the image can resolve: the folders are open to whoever it is.
    SomebodyElse,
}

/// Where the engine unpacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the root, which can be written.
    Root,
    /// In the one folder that can, where the root cannot.
    Home,
}

impl Place {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Home => HOME,
        }
    }
}

impl Archives {
    pub(crate) fn get(&self, program: &[u8], place: Place, whose: Whose) -> Bytes {
        let kept = &self.0[usize::from(place == Place::Home)][usize::from(whose == Whose::Root)];
        kept.get_or_init(|| build(program, place, whose)).clone()
    }
}

fn build(program: &[u8], place: Place, whose: Whose) -> Bytes {
    let (run, workspace) = match whose {
        Whose::Root => (0o700, 0o755),
        Whose::SomebodyElse => (0o1777, 0o777),
    };
    let mut tar = Vec::with_capacity(program.len() + 8 * BLOCK);
    match place {
        Place::Root => {
            folder(&mut tar, ".hermetic/", 0o755);
            folder(&mut tar, ".hermetic/run/", run);
            folder(&mut tar, "workspace/", workspace);
            file(&mut tar, ".hermetic/warden", 0o555, program);
        }
        Place::Home => {
            folder(&mut tar, "run/", run);
            file(&mut tar, "warden", 0o555, program);
        }
    }
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
    fn the_archive_is_what_tar_makes_of_it() {
        let mut tar = Command::new("tar")
            .args(["-tv", "--numeric-owner", "--full-time", "--utc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let archive = Archives::default().get(&[7; 700], Place::Root, Whose::SomebodyElse);
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
