//! The side on the remote host. Runs in its own folder, which the gateway's shell line made sure of:
//! it belongs to this user and no other may enter it.

mod folder;
mod lodge;
mod marked;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use hermetic_warden::connect::bridge;

use crate::order::{self, MAGIC, MalformedOrder, RemoteAnswer, RemoteOrder};
use lodge::RemoteTrouble;

/// sysexits(3).
const USAGE: u8 = 64;
const PROTOCOL: u8 = 76;

/// `warden remote`: one order, one answer, perhaps a link.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    if words.next().is_some() {
        return ExitCode::from(USAGE);
    }
    let Ok(order) = read_order() else {
        return ExitCode::from(PROTOCOL);
    };
    let (answer, link) = match obey(order) {
        Ok((answer, link)) => (answer, link),
        Err(trouble) => (trouble.into(), None),
    };
    if tell(&answer).is_err() {
        return ExitCode::from(PROTOCOL);
    }
    match link {
        Some(link) => bridge(&link),
        None => ExitCode::SUCCESS,
    }
}

fn obey(order: RemoteOrder) -> Result<(RemoteAnswer, Option<UnixStream>), RemoteTrouble> {
    let link = match order {
        RemoteOrder::Create(lodging) => lodge::create(&lodging)?,
        RemoteOrder::Connect(id) => lodge::connect(&id)?,
        RemoteOrder::Resume(lodging) => lodge::resume(&lodging)?,
        RemoteOrder::Stop(id) => return lodge::stop(&id).map(|()| (RemoteAnswer::Done, None)),
        RemoteOrder::Destroy(id) => {
            return lodge::destroy(&id).map(|()| (RemoteAnswer::Done, None));
        }
        RemoteOrder::List => return Ok((RemoteAnswer::Found(lodge::list()?), None)),
    };
    Ok((RemoteAnswer::Linked, Some(link)))
}

fn read_order() -> io::Result<RemoteOrder> {
    let no_order = |_: MalformedOrder| io::Error::from(io::ErrorKind::InvalidData);
    // Read to the byte: what follows an order is the link's.
    let mut stdin = unbuffered(rustix::stdio::stdin())?;
    let mut head = [0; MAGIC.len() + 4];
    stdin.read_exact(&mut head)?;
    let (magic, long) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let long = long.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; order::length(long).map_err(no_order)?];
    stdin.read_exact(&mut bytes)?;
    order::payload(&bytes).map_err(no_order)
}

fn tell(answer: &RemoteAnswer) -> io::Result<()> {
    let frame = order::frame(answer).map_err(io::Error::other)?;
    unbuffered(rustix::stdio::stdout())?.write_all(&frame)
}

fn unbuffered(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<std::fs::File> {
    Ok(fd.try_clone_to_owned()?.into())
}
