//! `warden connect [--wait SECONDS] [--leash SECONDS] PATH`: a pair of pipes to the warden's socket
//! and back.
//!
//! Started inside the sandbox by whatever exec the backend offers. Each direction ends by itself:
//! the end of stdin is passed on while answers still come.
//!
//! Some execs keep stdin open when the gateway is long gone. There a leash is asked for: what comes
//! in is framed (a length of four bytes, big-endian, then as many bytes), an empty frame is a sign
//! of life, and without any sign for that long the bridge ends as if the gateway had hung up.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// sysexits(3).
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;

/// How often a warden that is not there yet is looked for.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(1);

pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(options) = parse(words) else {
        return ExitCode::from(USAGE);
    };
    match reach(&options.path, options.patience) {
        Ok(socket) => between(&socket, options.leash),
        Err(_) => ExitCode::from(UNAVAILABLE),
    }
}

/// Our stdin to the socket, the socket to our stdout, until the warden closes.
pub fn bridge(socket: &UnixStream) -> ExitCode {
    between(socket, None)
}

fn between(mut socket: &UnixStream, leash: Option<Duration>) -> ExitCode {
    let Ok(upward) = socket.try_clone() else {
        return ExitCode::from(UNAVAILABLE);
    };
    // Without the standard library's buffering: it looks for line ends in what has none.
    let stdin = rustix::stdio::stdin().try_clone_to_owned().map(File::from);
    let Ok(mut stdout) = rustix::stdio::stdout().try_clone_to_owned().map(File::from) else {
        return ExitCode::from(UNAVAILABLE);
    };
    thread::spawn(move || {
        let _ = stdin.map(|mut stdin| match leash {
            Some(leash) => unframe(&mut stdin, &upward, leash),
            None => copy(&mut stdin, &mut &upward),
        });
        // Only this direction: whoever has no more to send may still be waiting for the end of the
        // answer.
        let _ = upward.shutdown(Shutdown::Write);
    });
    // When the warden closes there is nothing left to say, whatever stdin still holds.
    // This one on the main thread: its end is the end of the program, while the other may sit in a
    // read for ever.
    let _ = copy(&mut socket, &mut stdout);
    ExitCode::SUCCESS
}

struct ConnectOptions {
    path: OsString,
    patience: Duration,
    leash: Option<Duration>,
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Option<ConnectOptions> {
    let mut options = ConnectOptions {
        path: OsString::new(),
        patience: Duration::ZERO,
        leash: None,
    };
    loop {
        let word = words.next()?;
        let mut seconds = || Some(Duration::from_secs(words.next()?.to_str()?.parse().ok()?));
        if word == "--wait" {
            options.patience = seconds()?;
        } else if word == "--leash" {
            options.leash = Some(seconds()?);
        } else {
            options.path = word;
            return words.next().is_none().then_some(options);
        }
    }
}

/// A warden that was started a moment ago may not listen yet.
pub fn reach(path: &OsString, patience: Duration) -> io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Err(_) if begun.elapsed() < patience => thread::sleep(CONNECT_RETRY_INTERVAL),
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

/// What is framed, and nothing when it stops coming.
fn unframe(from: &mut impl Read, to: &UnixStream, leash: Duration) -> io::Result<()> {
    let heard = Arc::new(AtomicBool::new(true));
    {
        let (heard, to) = (Arc::clone(&heard), to.try_clone()?);
        thread::spawn(move || {
            // Set anew by every frame: unset over a whole leash, nobody is there.
            while heard.swap(false, Ordering::Relaxed) {
                thread::sleep(leash);
            }
            // Both ways, so that the main thread leaves its read as well.
            to.shutdown(Shutdown::Both)
        });
    }
    let mut buffer = vec![0; 128 << 10];
    loop {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        heard.store(true, Ordering::Relaxed);
        let mut left = u32::from_be_bytes(length) as usize;
        while left > 0 {
            let most = left.min(buffer.len());
            match from.read(&mut buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    (&mut &*to).write_all(&buffer[..read])?;
                    left -= read;
                }
            }
            // Within a frame too: a large one over a slow line may take longer than the leash.
            heard.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASH: Duration = Duration::from_millis(50);

    #[test]
    fn frames_become_bytes_and_empty_ones_nothing() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let framed = [&[0, 0, 0, 2][..], b"ab", &[0; 4], &[0, 0, 0, 1], b"c"].concat();
        let ended = unframe(&mut framed.as_slice(), &near, Duration::from_secs(600));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        near.shutdown(Shutdown::Write).unwrap();
        let mut said = Vec::new();
        far.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"abc");
    }

    #[test]
    fn silence_is_a_hangup() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (mut silent, _open) = UnixStream::pair().unwrap();
        thread::spawn(move || unframe(&mut silent, &near, LEASH));
        let mut said = Vec::new();
        far.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"");
    }

    #[test]
    fn a_command_line_has_its_options_before_its_path() {
        let words = |text: &str| {
            let words: Vec<_> = text.split(' ').map(OsString::from).collect();
            parse(words.into_iter()).map(|o| (o.patience.as_secs(), o.leash.map(|l| l.as_secs())))
        };
        assert_eq!(words("/s"), Some((0, None)));
        assert_eq!(words("--wait 5 --leash 60 /s"), Some((5, Some(60))));
        assert_eq!(words("--leash /s"), None);
        assert_eq!(words("/s more"), None);
    }
}
