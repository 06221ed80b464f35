//! The image: a folder, a file, or something to be fetched and unpacked once.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermetic_sandbox::{BackendError, SystemView};
use sha2::{Digest, Sha256};

use crate::build;
use crate::runtime::ApptainerRuntime;

/// Hears how a build goes.
#[derive(Clone, Default)]
pub struct BuildListener(Option<Arc<HearBuild>>);

type HearBuild = dyn Fn(&BuildProgress) + Send + Sync;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    pub image: String,
    /// What the builder said last.
    pub said: String,
    pub done: bool,
}

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
pub(crate) enum ImageSource {
    /// A root file system folder or a SIF.
    There(PathBuf),
    /// To be built into this folder.
    Built { source: String, folder: PathBuf },
}

impl ImageSource {
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

/// Two who want it at once build it once.
pub(crate) async fn provide(
    runtime: &ApptainerRuntime,
    image: &ImageSource,
    building: &tokio::sync::Mutex<()>,
    tell: &BuildListener,
) -> Result<(), BackendError> {
    let (source, folder) = match image {
        ImageSource::There(path) if path.exists() => return Ok(()),
        ImageSource::There(path) => {
            return Err(BackendError::Unavailable {
                what: format!("there is no image at {}", path.display()),
                remedy: "mend terminal.singularity_image".to_owned(),
            });
        }
        ImageSource::Built { source, folder } => (source, folder),
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
        build::sweep(cache);
    }
    let built = build::build(runtime, source, folder, tell).await;
    // Another gateway may have been faster.
    if folder.exists() { Ok(()) } else { built }
}

pub(crate) fn unavailable(image: &str, why: &str) -> BackendError {
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

impl BuildListener {
    pub fn new(hear: impl Fn(&BuildProgress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    pub(crate) fn say(&self, image: &str, said: &str, done: bool) {
        if let Some(hear) = &self.0 {
            hear(&BuildProgress {
                image: image.to_owned(),
                said: said.to_owned(),
                done,
            });
        }
    }
}

impl fmt::Debug for BuildListener {
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
        let parse = |name: &str| ImageSource::parse(name, cache);
        assert_eq!(
            parse("/images/a.sif").unwrap(),
            ImageSource::There("/images/a.sif".into())
        );
        let built = parse("docker://debian:12").unwrap();
        assert!(built.place().starts_with(cache));
        assert_ne!(built.place(), parse("docker://debian:13").unwrap().place());
        for bad in ["debian:12", "a.sif", "", "--writable", "docker://a\nb"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
