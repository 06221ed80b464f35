//! `warden serve`: the command line, for backends that cannot call [`serve`](super::serve) within
//! the program.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, io};

use super::sys::adopt;
use super::{CreatorLink, ServeConfig, serve};

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;
/// sysexits(3): the socket cannot be had.
const CANNOT_CREATE: u8 = 73;

const DEFAULT_LIFETIME: Duration = Duration::from_secs(3600);

/// `--listen PATH` makes the socket, `--listen-fd N` has it already; `--lifetime SECONDS`; `--stdio`
/// has the first connection on its stdin and stdout; `--tied` ends it with the first connection.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(options) = ServeOptions::parse(words) else {
        return ExitCode::from(USAGE);
    };
    // Opened before stdin is taken: a descriptor from the command line is only known to be ours
    // while nothing else was opened.
    let Ok(listener) = options.place.open() else {
        return ExitCode::from(CANNOT_CREATE);
    };
    let first = match options.stdio.then(take_stdio).transpose() {
        Ok(first) => first,
        Err(_) => return ExitCode::from(CANNOT_CREATE),
    };
    let code = serve(ServeConfig {
        listener,
        first,
        lifetime: options.lifetime,
        oom_counter: None,
        is_init: std::process::id() == 1,
        env: env::vars_os().collect(),
        cwd: env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        tied: options.tied,
    });
    if let ListenPlace::Path(path) = &options.place {
        let _ = fs::remove_file(path);
    }
    code
}

/// The options of `warden serve`.
struct ServeOptions {
    place: ListenPlace,
    lifetime: Duration,
    stdio: bool,
    tied: bool,
}

/// The socket that a warden listens on: one to be made, or one that is open already.
enum ListenPlace {
    Path(PathBuf),
    Descriptor(i32),
}

impl ServeOptions {
    fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut place = None;
        let mut lifetime = DEFAULT_LIFETIME;
        let (mut stdio, mut tied) = (false, false);
        while let Some(word) = words.next() {
            let mut value = || words.next();
            match word.to_str()? {
                "--stdio" => stdio = true,
                "--tied" => tied = true,
                "--listen" => place = Some(ListenPlace::Path(value()?.into())),
                "--listen-fd" => {
                    place = Some(ListenPlace::Descriptor(value()?.to_str()?.parse().ok()?));
                }
                "--lifetime" => lifetime = Duration::from_secs(value()?.to_str()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(Self {
            place: place?,
            lifetime,
            stdio,
            tied,
        })
    }
}

impl ListenPlace {
    fn open(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Descriptor(0) => take_stdin(),
            Self::Descriptor(number) => adopt(*number),
            Self::Path(path) => {
                // A socket that an earlier warden left. One that answers stays: binding fails.
                if std::os::unix::net::UnixStream::connect(path).is_err() {
                    let _ = fs::remove_file(path);
                }
                // Nobody may connect between the making of the socket and the setting of its mode.
                let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
                let listener = UnixListener::bind(path);
                rustix::process::umask(before);
                let listener = listener?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                Ok(listener.into())
            }
        }
    }
}

/// The one descriptor that a plain spawn can hand over.
fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(null)?;
    Ok(taken)
}

/// Nothing that is said by accident may get between the frames.
fn take_stdio() -> io::Result<CreatorLink> {
    let from = take_stdin()?;
    let to = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(null)?;
    Ok(CreatorLink::Pipes { from, to })
}
