//! `warden terminal PATH`: from the terminal it runs in to the warden's socket and back.
//!
//! The terminal is made a plain pipe first. Nobody tells a terminal's program that its reader is
//! gone, so this one ends when it has heard nothing for too long; the warden then knows too.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, exit};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_warden::connect;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::frame::{self, CREDIT, FrameReader, LONGEST_SILENCE, LinkFrame, MAGIC, NOBODY, PIECE};

/// sysexits(3).
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;

/// A warden that was just started may not listen yet.
const WARDEN_LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(path), None) = (words.next(), words.next()) else {
        return ExitCode::from(USAGE);
    };
    let socket = connect::reach(&path, WARDEN_LISTEN_TIMEOUT);
    match socket.and_then(|socket| carry(&socket)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            let _ = io::stdout()
                .write_all(&NOBODY)
                .and_then(|()| io::stdout().flush());
            ExitCode::from(UNAVAILABLE)
        }
    }
}

/// Until the warden closes; the process ends elsewhere when the terminal does.
fn carry(socket: &UnixStream) -> io::Result<()> {
    // Before the magic: what is said after it must not be echoed or have its line ends changed.
    make_plain()?;
    let stdin: File = rustix::stdio::stdin().try_clone_to_owned()?.into();
    let stdout: File = rustix::stdio::stdout().try_clone_to_owned()?.into();
    let line = Arc::new(TerminalLine {
        stdout: Mutex::new(stdout),
        credit: Mutex::new(CREDIT),
        given: Condvar::new(),
        heard: Mutex::new(Instant::now()),
    });
    line.write(&MAGIC)?;
    let upward = socket.try_clone()?;
    {
        let line = Arc::clone(&line);
        thread::spawn(move || {
            let _ = line.hear(stdin, &upward);
            // The whole process: the other direction sits in a read of the warden that nobody would
            // wake.
            exit(0);
        });
    }
    {
        let line = Arc::clone(&line);
        thread::spawn(move || line.end_in_silence());
    }
    line.tell(socket)
}

/// Bytes as they are: no echo, no signals, no line ends. What was typed before is dropped.
fn make_plain() -> io::Result<()> {
    let terminal = rustix::stdio::stdin();
    let mut manners = tcgetattr(terminal)?;
    manners.make_raw();
    Ok(tcsetattr(terminal, OptionalActions::Flush, &manners)?)
}

struct TerminalLine {
    stdout: Mutex<File>,
    credit: Mutex<u16>,
    given: Condvar,
    heard: Mutex<Instant>,
}

impl TerminalLine {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        locked(&self.stdout).write_all(bytes)
    }

    /// From the warden to the terminal, as far as there is credit.
    fn tell(&self, mut socket: &UnixStream) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        loop {
            let read = match socket.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            // Before the write: a reader who lags is hung up on by the toolbox, and with it the
            // link.
            self.spend();
            self.write(&frame::data(&buffer[..read]))?;
        }
    }

    fn spend(&self) {
        let credit = locked(&self.credit);
        let mut credit = self
            .given
            .wait_while(credit, |credit| *credit == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *credit -= 1;
    }

    /// From the terminal to the warden.
    fn hear(&self, mut stdin: File, mut socket: &UnixStream) -> io::Result<()> {
        let mut frames = FrameReader::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match stdin.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            *locked(&self.heard) = Instant::now();
            frames.push(&buffer[..read]);
            while let Some(frame) = frames.next().map_err(io::Error::other)? {
                match frame {
                    LinkFrame::Data(bytes) => socket.write_all(&bytes)?,
                    LinkFrame::Beat => self.write(&LinkFrame::Beat.to_bytes())?,
                    LinkFrame::Ack(count) => {
                        let mut credit = locked(&self.credit);
                        // More than was ever lent would be a mistake, and let the toolbox hang up
                        // on its reader.
                        *credit = credit.saturating_add(count).min(CREDIT);
                        self.given.notify_one();
                    }
                }
            }
        }
    }

    fn end_in_silence(&self) {
        while locked(&self.heard).elapsed() < LONGEST_SILENCE {
            thread::sleep(SILENCE_CHECK_INTERVAL);
        }
        exit(0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
