//! Where a path leads.
//!
//! Who judges a path must judge what it leads to, and then use that and nothing else. This gives the
//! real path; the calls that follow name it with [`SymlinkPolicy::Refuse`](crate::protocol::SymlinkPolicy).

use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::place::by_descriptor;
use super::{metadata, refused};
use crate::protocol::{ByteString, ResolveRequest, ResolvedName, WardenFailure, WardenReply};
use crate::serve::state::{WardenState, bad_request, system};

/// Longer than the kernel takes at once, as it may be made of several.
const LONGEST_RESOLVED_PATH: usize = 16 << 10;

pub(crate) fn resolve(
    warden: &WardenState,
    request: &ResolveRequest,
) -> Result<WardenReply, WardenFailure> {
    let path = absolute(warden, request)?;
    let mut names = path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .collect::<Vec<_>>();
    let mut missing = Vec::new();
    loop {
        let so_far = [b"/".as_slice(), &names.join(&b'/')].concat();
        match open(&so_far) {
            Ok(found) => return answer(&found, &missing),
            Err(Errno::NOENT) => refuse_dangling(&so_far)?,
            Err(Errno::LOOP) => return Err(refused("too many symlinks")),
            Err(error) => return Err(system("follow the path", &error.into())),
        }
        match names.pop() {
            // What `..` leads to depends on where the missing folder would be; whoever creates it
            // could make it anything.
            Some(b"..") => return Err(refused("`..` after a folder that does not exist")),
            Some(name) => missing.insert(0, name),
            None => return Err(system("open /", &Errno::NOENT.into())),
        }
    }
}

fn absolute(warden: &WardenState, request: &ResolveRequest) -> Result<Vec<u8>, WardenFailure> {
    let path = request.path.0.as_slice();
    if path.is_empty() || path.contains(&0) || path.len() > LONGEST_RESOLVED_PATH {
        return Err(bad_request("the path names nothing"));
    }
    let (base, rest) = match path {
        b"~" => (warden.home(), &b""[..]),
        [b'~', b'/', rest @ ..] => (warden.home(), rest),
        [b'/', ..] => return Ok(path.to_vec()),
        _ => {
            let place = request
                .shell
                .as_ref()
                .and_then(|name| warden.shells.place(name));
            let here = || warden.cwd.as_os_str().as_bytes().to_vec();
            (place.map_or_else(here, |place| place.0), path)
        }
    };
    Ok([&base, rest].join(&b'/'))
}

fn answer(found: &OwnedFd, missing: &[&[u8]]) -> Result<WardenReply, WardenFailure> {
    // The kernel's own name for what was opened, in which no link is left.
    let real = std::fs::read_link(by_descriptor(found))
        .map_err(|error| system("name the file", &error))?
        .into_os_string()
        .into_vec();
    if real.first() != Some(&b'/') {
        return Err(refused("not a file of the file system"));
    }
    let stat = fstat(found).map_err(|error| system("look at the file", &error.into()))?;
    let mut path = real;
    for name in missing {
        if path != b"/" {
            path.push(b'/');
        }
        path.extend_from_slice(name);
    }
    Ok(WardenReply::Resolved(ResolvedName {
        path: ByteString(path),
        missing: u32::try_from(missing.len()).unwrap_or(u32::MAX),
        metadata: missing.is_empty().then(|| metadata(&stat)),
    }))
}

/// A symlink to nothing would let a write create what the path does not name.
fn refuse_dangling(path: &[u8]) -> Result<(), WardenFailure> {
    if statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_err() {
        return Ok(());
    }
    let target = readlinkat(CWD, path, Vec::new()).unwrap_or_default();
    let target = target.to_string_lossy().into_owned();
    Err(refused(&format!(
        "a symlink to {target:.200}, which does not exist"
    )))
}

fn open(path: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}
