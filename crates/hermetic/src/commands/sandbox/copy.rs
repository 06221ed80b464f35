//! `hermetic sandbox cp`: files into a sandbox that lives, and out of it.
//!
//! Everything inside is read and written by the warden, which is where a link that somebody put there leads.
//! Names that come out are checked before a file of this machine is called by one. Nothing is replaced on
//! either side.

mod inward;
mod outward;

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hermetic_warden::client::{WardenCallError, WardenServices};
use hermetic_warden::protocol::{ByteString, FileMetadata, ResolveRequest};

use self::inward::copy_in;
use self::outward::copy_out;
use super::rows::{ListedSandbox, find};
use super::{living, reach};
use crate::failure::CommandFailure;
use crate::output::{self, printable};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One of the two is SANDBOX:PATH. A path inside that does not begin with a slash begins in the workspace; \
SANDBOX: alone is the workspace. A path of this machine with a colon in it is written ./a:b.

Nothing is replaced. Symbolic links in a folder are left out and counted.

Examples:
  hermetic sandbox cp report.csv work:
  hermetic sandbox cp work:results ./results
  hermetic sandbox cp telegram:dm:42:notes.txt .")]
pub(crate) struct SandboxCopyArgs {
    /// The file or folder to copy
    from: String,
    /// Where to: a folder that is there, or a new name
    to: String,
    /// Copy at most this many megabytes
    #[arg(long, value_name = "MB", default_value_t = 4096)]
    most: u64,
}

/// One end of a copy.
#[derive(Debug, PartialEq, Eq)]
enum CopyEnd<'a> {
    Host(&'a Path),
    Inside { sandbox: &'a str, path: &'a str },
}

/// Entries of one copy. Whoever works inside can make names without end.
const MOST_ENTRIES: u64 = 100_000;
/// Folders in folders.
const MOST_DEPTH: usize = 64;

/// What a copy did, and what it may still do.
#[derive(Debug)]
struct CopyTally {
    bytes_left: u64,
    entries_left: u64,
    bytes: u64,
    files: u64,
    /// Links, sockets and devices.
    left_out: u64,
}

pub(super) async fn run(
    rows: &[ListedSandbox],
    args: &SandboxCopyArgs,
) -> Result<(), CommandFailure> {
    let mut tally = CopyTally {
        bytes_left: args.most.saturating_mul(1_000_000),
        entries_left: MOST_ENTRIES,
        bytes: 0,
        files: 0,
        left_out: 0,
    };
    match (CopyEnd::read(&args.from), CopyEnd::read(&args.to)) {
        (CopyEnd::Host(from), CopyEnd::Inside { sandbox, path }) => {
            let row = living(find(rows, sandbox)?)?;
            let sandbox = reach(row).await?;
            copy_in(sandbox.warden(), from, path, &mut tally).await?;
        }
        (CopyEnd::Inside { sandbox, path }, CopyEnd::Host(to)) => {
            let row = living(find(rows, sandbox)?)?;
            let sandbox = reach(row).await?;
            copy_out(sandbox.warden(), path, to, &mut tally).await?;
        }
        _ => {
            return Err(CommandFailure::new(
                "one of the two has to be in a sandbox, and one on this machine",
                "write SANDBOX:PATH for what is inside, ./a:b for a name with a colon",
            ));
        }
    }
    let files = match tally.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let mut text = format!("{files}, {}\n", output::size(tally.bytes));
    if tally.left_out > 0 {
        text.push_str(&format!(
            "left out: {} links, sockets or devices\n",
            tally.left_out
        ));
    }
    output::print(&text)
}

impl<'a> CopyEnd<'a> {
    /// A conversation's key has colons too, so the path begins at the first `:/`, or behind the last colon.
    fn read(text: &'a str) -> Self {
        let is_path = text.starts_with(['/', '.', '~']);
        let at = text.find(":/").or_else(|| text.rfind(':'));
        match at.filter(|at| !is_path && *at > 0) {
            Some(at) => Self::Inside {
                sandbox: &text[..at],
                path: &text[at + 1..],
            },
            None => Self::Host(Path::new(text)),
        }
    }
}

impl CopyTally {
    fn entry(&mut self) -> Result<(), CommandFailure> {
        self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| {
            CommandFailure::new(
                format!("there are more than {MOST_ENTRIES} files and folders"),
                "pack them inside first: hermetic sandbox exec SANDBOX -- tar -cf all.tar …",
            )
        })?;
        Ok(())
    }

    fn piece(&mut self, bytes: usize) -> Result<(), CommandFailure> {
        self.bytes_left = self.bytes_left.checked_sub(bytes as u64).ok_or_else(|| {
            CommandFailure::new(
                "it is more than --most allows",
                "give --most more megabytes, or copy a part of it",
            )
        })?;
        self.bytes += bytes as u64;
        Ok(())
    }
}

async fn resolved(
    warden: &WardenServices,
    path: &str,
) -> Result<(ByteString, Option<FileMetadata>), CommandFailure> {
    let asked = ResolveRequest {
        path: match path {
            "" => ".".into(),
            path => path.into(),
        },
        shell: None,
    };
    let name = warden.resolve(asked).await;
    let name = name.map_err(|error| not_read(&path.into(), &error))?;
    let there = name.metadata.filter(|_| name.missing == 0);
    Ok((name.path, there))
}

fn beneath(folder: &ByteString, name: &ByteString) -> ByteString {
    let mut path = folder.0.clone();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(&name.0);
    ByteString(path)
}

/// A name that stays in its folder, whatever the sandbox says.
fn plain_name(name: &[u8]) -> Result<&std::ffi::OsStr, CommandFailure> {
    let odd = name.is_empty()
        || name == b"."
        || name == b".."
        || name.contains(&b'/')
        || name.contains(&0);
    match odd {
        false => Ok(std::ffi::OsStr::from_bytes(name)),
        true => Err(CommandFailure::new(
            format!(
                "the sandbox says that a file is called {:?}",
                String::from_utf8_lossy(name)
            ),
            "destroy it: it is not to be trusted any more",
        )),
    }
}

fn last_name(path: &ByteString) -> Result<PathBuf, CommandFailure> {
    let name = path
        .0
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    match name.is_empty() {
        false => Ok(PathBuf::from(plain_name(name)?)),
        true => Err(CommandFailure::new(
            "the root folder has no name",
            "name a folder that is not there yet to copy it into",
        )),
    }
}

fn too_deep() -> CommandFailure {
    CommandFailure::new(
        format!("folders lie deeper than {MOST_DEPTH} in each other"),
        "pack them inside first, or copy a part",
    )
}

fn not_read(path: &ByteString, error: &WardenCallError) -> CommandFailure {
    let what = format!("cannot read {} in the sandbox: {error}", shown(path));
    CommandFailure::new(what, "look with `hermetic sandbox exec SANDBOX -- ls -la`")
}

fn not_sent(path: &ByteString, error: &WardenCallError) -> CommandFailure {
    let what = format!("cannot write {} in the sandbox: {error}", shown(path));
    CommandFailure::new(what, "look with `hermetic sandbox exec SANDBOX -- df -h .`")
}

fn not_written(path: &Path, error: &io::Error) -> CommandFailure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => CommandFailure::new(
            format!("{} is there already", path.display()),
            "name another place: nothing is replaced",
        ),
        _ => CommandFailure::file("write", path, error),
    }
}

fn shown(path: &ByteString) -> String {
    printable(&String::from_utf8_lossy(&path.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_and_a_path_are_told_apart() {
        let inside = |sandbox, path| CopyEnd::Inside { sandbox, path };
        for (text, end) in [
            ("work:", inside("work", "")),
            ("3f9:notes.txt", inside("3f9", "notes.txt")),
            ("work:/a:b", inside("work", "/a:b")),
            ("telegram:dm:42:/tmp/x", inside("telegram:dm:42", "/tmp/x")),
            ("telegram:dm:42:x", inside("telegram:dm:42", "x")),
            ("./a:b", CopyEnd::Host(Path::new("./a:b"))),
            ("/tmp/a:b", CopyEnd::Host(Path::new("/tmp/a:b"))),
            ("plain", CopyEnd::Host(Path::new("plain"))),
            (":x", CopyEnd::Host(Path::new(":x"))),
        ] {
            assert_eq!(CopyEnd::read(text), end, "{text}");
        }
    }

    #[test]
    fn a_name_from_inside_leads_nowhere_else() {
        for name in [
            &b""[..],
            b".",
            b"..",
            b"../x",
            b"a/b",
            b"/etc/passwd",
            b"a\0b",
        ] {
            assert!(plain_name(name).is_err(), "{name:?}");
        }
        assert_eq!(plain_name(b"..x").unwrap(), "..x");
        assert!(last_name(&"/".into()).is_err());
    }

    #[test]
    fn a_copy_ends_where_it_is_bounded() {
        let mut tally = CopyTally {
            bytes_left: 10,
            entries_left: 1,
            bytes: 0,
            files: 0,
            left_out: 0,
        };
        assert!(tally.piece(10).is_ok() && tally.piece(1).is_err());
        assert!(tally.entry().is_ok() && tally.entry().is_err());
    }
}
