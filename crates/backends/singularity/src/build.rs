//! Building an image, with whoever waits for it or with nobody: then the builder ends, and the half
//! that it made goes too.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::{ProcessHandle, kill, remove};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::timeout;

use crate::image::{BuildListener, unavailable};
use crate::runtime::ApptainerRuntime;

/// One that falls silent for this long has gone; unpacking a large layer takes its time.
const BUILDER_SILENCE_TIMEOUT: Duration = Duration::from_secs(600);
/// Longer lines are cut before anybody sees them.
const MOST_BUILD_LINE: usize = 300;
/// The last lines of a build, which say why it failed.
const MOST_KEPT: usize = 12;
/// No more of a builder that writes without end.
const MOST_HEARD: u64 = 64 << 20;
/// A killed builder is gone at once, except from an unresponsive disk.
const BUILDER_KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Whole or not at all: unpacked under another name.
pub(crate) async fn build(
    runtime: &ApptainerRuntime,
    source: &str,
    folder: &Path,
    tell: &BuildListener,
) -> Result<(), BackendError> {
    tracing::info!(image = source, "building the image");
    let mut half = UnfinishedBuild::make(folder)
        .map_err(|error| BackendError::failed("make room for the image", error))?;
    let mut command = tokio::process::Command::from(runtime.build_command(&half.rest()));
    command.args(["build", "--sandbox", "--fix-perms", "--force"]);
    if is_of_this_machine(source) {
        command.arg("--no-https");
    }
    let mut child = command
        .arg(half.root())
        .arg(source)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // In a group of its own: the builder starts others, and all of them are ended together.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| BackendError::failed("start the build", error))?;
    half.builder = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let mut kept: Vec<String> = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr.take(MOST_HEARD)).split(b'\n');
        loop {
            match timeout(BUILDER_SILENCE_TIMEOUT, lines.next_segment()).await {
                Ok(Ok(Some(line))) => {
                    let said = plain(&line);
                    tell.say(source, &said, false);
                    kept.push(said);
                    if kept.len() > MOST_KEPT {
                        kept.remove(0);
                    }
                }
                Ok(_) => break,
                Err(_) => return Err(unavailable(source, "the build fell silent")),
            }
        }
    }
    let ended = child.wait().await;
    // Collected: from here on the number may be somebody else's, and nobody may be killed by it.
    half.builder = None;
    if !ended.is_ok_and(|status| status.success()) {
        return Err(unavailable(source, &why(&kept)));
    }
    fs::rename(half.root(), folder)
        .map_err(|error| BackendError::failed("keep the image", error))?;
    tell.say(source, "built", true);
    Ok(())
}

/// Halves that a killed gateway left, and builders that go on without one.
pub(crate) fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let half = name.to_str().and_then(|name| name.split_once(".half-"));
        let owner = half.and_then(|(_, rest)| rest.split('-').next());
        let Some(pid) = owner.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            // Before what it makes is removed, or it goes on making it.
            end_builders(&entry.path());
            let _ = remove(&entry.path());
        }
    }
}

/// What a build makes until it is whole, and what else it needs room for. Dropped, it goes, and so
/// does its builder.
struct UnfinishedBuild {
    path: PathBuf,
    builder: Option<Pid>,
}

const ROOT: &str = "root";

impl UnfinishedBuild {
    fn make(folder: &Path) -> io::Result<Self> {
        // Each has its own: an earlier one of this process may still be on its way out.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let half = Self {
            path: folder.with_extension(format!("half-{}-{number}", std::process::id())),
            builder: None,
        };
        let _ = remove(&half.path);
        fs::create_dir_all(half.rest())?;
        Ok(half)
    }

    fn root(&self) -> PathBuf {
        self.path.join(ROOT)
    }

    fn rest(&self) -> PathBuf {
        self.path.join("rest")
    }
}

impl Drop for UnfinishedBuild {
    fn drop(&mut self) {
        if let Some(builder) = self.builder {
            let _ = kill_process_group(builder, Signal::KILL);
        }
        let path = self.path.clone();
        // A tree of an image's size is no work for whoever happens to drop it.
        std::thread::spawn(move || {
            end_builders(&path);
            remove(&path)
        });
    }
}

/// Every process that was told to build there, and nobody else: a half has a name of its own.
fn end_builders(half: &Path) {
    let root = half.join(ROOT);
    let told = root.as_os_str().as_encoded_bytes();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(process) = pid.and_then(ProcessHandle::observe) else {
            continue;
        };
        let Some(held) = process.open() else {
            continue;
        };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if words.split(|byte| *byte == 0).any(|word| word == told) {
            kill(held.as_fd(), BUILDER_KILL_TIMEOUT);
        }
    }
}

/// A registry on loopback has no name to prove; every other speaks TLS or not at all.
fn is_of_this_machine(source: &str) -> bool {
    let Some(rest) = source.strip_prefix("docker://") else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn why(kept: &[String]) -> String {
    let errors: Vec<&str> = kept
        .iter()
        .filter_map(|line| line.strip_prefix("FATAL:").or(line.strip_prefix("ERROR:")))
        .map(str::trim)
        .collect();
    match (errors.is_empty(), kept.last()) {
        (false, _) => errors.join("; "),
        (true, Some(last)) => last.clone(),
        (true, None) => "it said nothing".to_owned(),
    }
}

/// A line without colours and other surprises, of a bearable length.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::new();
    let mut escaped = false;
    for one in text.chars() {
        match one {
            '\u{1b}' => escaped = true,
            letter if escaped => escaped = !letter.is_ascii_alphabetic(),
            control if control.is_control() => {}
            other if plain.len() < MOST_BUILD_LINE => plain.push(other),
            _ => break,
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_builder_says_is_shown_plain() {
        assert_eq!(
            plain(b"\x1b[34mINFO:   \x1b[0m Starting build...\r"),
            "INFO:    Starting build..."
        );
        assert_eq!(plain(&[b'x'; 5000]).len(), MOST_BUILD_LINE);
        assert_eq!(plain(b"\xff\x00\x07"), "\u{fffd}");
    }

    #[test]
    fn only_a_registry_of_this_machine_is_asked_in_clear() {
        for own in [
            "docker://127.0.0.1:5000/a",
            "docker://localhost/a",
            "docker://[::1]:5000/a",
        ] {
            assert!(is_of_this_machine(own), "{own}");
        }
        for far in [
            "docker://debian:12",
            "docker://127.0.0.1.example.org/a",
            "docker://localhost.example.org/a",
            "docker://192.0.2.1:5000/a",
            "docker://example.org/127.0.0.1/a",
            "docker://user@127.0.0.1/a",
            "oras://127.0.0.1/a",
        ] {
            assert!(!is_of_this_machine(far), "{far}");
        }
    }
}
