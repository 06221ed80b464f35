//! The image: a folder, a file, or something to be fetched and unpacked once.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SystemView};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::timeout;

use crate::runtime::Runtime;

/// Hears how a build goes.
#[derive(Clone, Default)]
pub struct Tell(Option<Arc<Hear>>);

type Hear = dyn Fn(&Progress) + Send + Sync;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub image: String,
    /// What the builder said last.
    pub said: String,
    pub done: bool,
}

/// One that falls silent for this long has gone; unpacking a large layer takes its time.
const SILENCE: Duration = Duration::from_secs(600);
/// Longer lines are cut before anybody sees them.
const MOST_SAID: usize = 300;
const MOST_KEPT: usize = 12;
const MOST_HEARD: u64 = 64 << 20;

/// Kinds that the runtime fetches or unpacks by itself.
const BUILT: [&str; 8] = [
    "docker://",
    "docker-archive:",
    "oci:",
    "oci-archive:",
    "oras://",
    "library://",
    "shub://",
    "docker-daemon:",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// A root file system folder or a SIF.
    There(PathBuf),
    /// To be built into this folder.
    Built { source: String, folder: PathBuf },
}

impl Image {
    pub(crate) fn of(system: &SystemView, cache: &Path) -> Result<Self, BackendError> {
        match system {
            SystemView::Rootfs(folder) => Ok(Self::There(folder.clone())),
            SystemView::Image(name) => Self::parse(name, cache),
            SystemView::Host => Err(refused(
                "the host's own system",
                "an instance needs an image",
            )),
        }
    }

    pub(crate) fn parse(name: &str, cache: &Path) -> Result<Self, BackendError> {
        if BUILT.iter().any(|kind| name.starts_with(kind)) {
            if name.chars().any(char::is_control) {
                return Err(refused("the image", "its name holds control characters"));
            }
            let digest = Sha256::digest(name.as_bytes());
            let key: String = digest[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            return Ok(Self::Built {
                source: name.to_owned(),
                folder: cache.join(key),
            });
        }
        let path = Path::new(name);
        if path.is_absolute() {
            return Ok(Self::There(path.to_owned()));
        }
        Err(refused(
            &format!("the image {name:?}"),
            "it is neither an absolute path of a folder or a SIF nor one of docker://, oras://, \
             library://, docker-archive:, oci-archive:",
        ))
    }

    /// Where it is once it is there.
    pub(crate) fn place(&self) -> &Path {
        match self {
            Self::There(path) => path,
            Self::Built { folder, .. } => folder,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.place().exists()
    }
}

/// Whole or not at all: unpacked under another name, and two who want it at once build it once.
pub(crate) async fn provide(
    runtime: &Runtime,
    image: &Image,
    building: &tokio::sync::Mutex<()>,
    tell: &Tell,
) -> Result<(), BackendError> {
    let (source, folder) = match image {
        Image::There(path) if path.exists() => return Ok(()),
        Image::There(path) => {
            return Err(BackendError::Unavailable {
                what: format!("there is no image at {}", path.display()),
                remedy: "mend terminal.singularity_image".to_owned(),
            });
        }
        Image::Built { source, folder } => (source, folder),
    };
    let _turn = building.lock().await;
    if folder.exists() {
        return Ok(());
    }
    let failed = |step: &'static str| move |error: io::Error| BackendError::failed(step, error);
    if let Some(cache) = folder.parent() {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(cache);
        made.map_err(failed("make the image cache"))?;
        sweep(cache);
    }
    let half = folder.with_extension(format!("half-{}", std::process::id()));
    let built = build(runtime, source, &half, tell).await;
    let kept = match built {
        Ok(()) => fs::rename(&half, folder).map_err(failed("keep the image")),
        Err(error) => Err(error),
    };
    if kept.is_err() {
        let _ = hermetic_sandbox::host::remove(&half);
    }
    // Another gateway may have been faster.
    if folder.exists() { Ok(()) } else { kept }
}

/// Halves that a killed builder left.
fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split_once(".half-"));
        let Some(pid) = owner.and_then(|(_, pid)| pid.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = hermetic_sandbox::host::remove(&entry.path());
        }
    }
}

async fn build(
    runtime: &Runtime,
    source: &str,
    half: &Path,
    tell: &Tell,
) -> Result<(), BackendError> {
    tracing::info!(image = source, "building the image");
    let _ = hermetic_sandbox::host::remove(half);
    let mut command = tokio::process::Command::from(runtime.build_command());
    let mut child = command
        .args(["build", "--sandbox", "--fix-perms", "--force"])
        .arg(half)
        .arg(source)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| BackendError::failed("start the build", error))?;
    let mut kept: Vec<String> = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr.take(MOST_HEARD)).split(b'\n');
        loop {
            match timeout(SILENCE, lines.next_segment()).await {
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
    if ended.is_ok_and(|status| status.success()) {
        tell.say(source, "built", true);
        return Ok(());
    }
    let errors: Vec<&str> = kept
        .iter()
        .filter_map(|line| line.strip_prefix("FATAL:").or(line.strip_prefix("ERROR:")))
        .map(str::trim)
        .collect();
    let why = match (errors.is_empty(), kept.last()) {
        (false, _) => errors.join("; "),
        (true, Some(last)) => last.clone(),
        (true, None) => "it said nothing".to_owned(),
    };
    Err(unavailable(source, &why))
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
            other if plain.len() < MOST_SAID => plain.push(other),
            _ => break,
        }
    }
    plain.trim().to_owned()
}

fn unavailable(image: &str, why: &str) -> BackendError {
    BackendError::Unavailable {
        what: format!("the image {image} cannot be had: {why}"),
        remedy: "check its name and the network, or name a folder or a SIF in \
                 terminal.singularity_image"
            .to_owned(),
    }
}

fn refused(what: &str, why: &str) -> BackendError {
    BackendError::Refused {
        what: what.to_owned(),
        why: why.to_owned(),
    }
}

impl Tell {
    pub fn new(hear: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    fn say(&self, image: &str, said: &str, done: bool) {
        if let Some(hear) = &self.0 {
            hear(&Progress {
                image: image.to_owned(),
                said: said.to_owned(),
                done,
            });
        }
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_path_or_something_to_build() {
        let cache = Path::new("/cache");
        let parse = |name: &str| Image::parse(name, cache);
        assert_eq!(
            parse("/images/a.sif").unwrap(),
            Image::There("/images/a.sif".into())
        );
        let built = parse("docker://debian:12").unwrap();
        assert!(built.place().starts_with(cache));
        assert_ne!(built.place(), parse("docker://debian:13").unwrap().place());
        for bad in ["debian:12", "a.sif", "", "--writable", "docker://a\nb"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_a_builder_says_is_shown_plain() {
        assert_eq!(
            plain(b"\x1b[34mINFO:   \x1b[0m Starting build...\r"),
            "INFO:    Starting build..."
        );
        assert_eq!(plain(&[b'x'; 5000]).len(), MOST_SAID);
        assert_eq!(plain(b"\xff\x00\x07"), "\u{fffd}");
    }
}
