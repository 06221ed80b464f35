//! `warden connect [--wait SECONDS] PATH`: a pair of pipes to the warden's socket and back.
//!
//! Started inside the sandbox by whatever exec the backend offers. Each direction ends by itself:
//! the end of stdin is passed on while answers still come.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// sysexits(3).
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;

/// How often a warden that is not there yet is looked for.
const BEAT: Duration = Duration::from_millis(1);

pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some((path, patience)) = parse(words) else {
        return ExitCode::from(USAGE);
    };
    match reach(&path, patience) {
        Ok(socket) => bridge(&socket),
        Err(_) => ExitCode::from(UNAVAILABLE),
    }
}

/// Our stdin to the socket, the socket to our stdout, until the warden closes.
pub fn bridge(mut socket: &UnixStream) -> ExitCode {
    let Ok(upward) = socket.try_clone() else {
        return ExitCode::from(UNAVAILABLE);
    };
    // Without the standard library's buffering: it looks for line ends in what has none.
    let stdin = rustix::stdio::stdin().try_clone_to_owned().map(File::from);
    let Ok(mut stdout) = rustix::stdio::stdout().try_clone_to_owned().map(File::from) else {
        return ExitCode::from(UNAVAILABLE);
    };
    thread::spawn(move || {
        let _ = stdin.map(|mut stdin| copy(&mut stdin, &mut &upward));
        let _ = upward.shutdown(Shutdown::Write);
    });
    // When the warden closes there is nothing left to say, whatever stdin still holds.
    let _ = copy(&mut socket, &mut stdout);
    ExitCode::SUCCESS
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Option<(OsString, Duration)> {
    let first = words.next()?;
    let (path, patience) = if first == "--wait" {
        let seconds = words.next()?.to_str()?.parse().ok()?;
        (words.next()?, Duration::from_secs(seconds))
    } else {
        (first, Duration::ZERO)
    };
    words.next().is_none().then_some((path, patience))
}

/// A warden that was started a moment ago may not listen yet.
pub fn reach(path: &OsString, patience: Duration) -> io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Err(_) if begun.elapsed() < patience => thread::sleep(BEAT),
            other => return other,
        }
    }
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
