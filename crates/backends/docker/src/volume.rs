//! `docker_volumes`: what of the host is shown inside, as `docker run -v` takes it, and what never
//! is.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use hermetic_sandbox::{can_be_exchanged, risk_of_showing};
use thiserror::Error;

/// `/host/folder:/inside[:ro]` or `volume:/inside[:ro]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerVolume {
    source: String,
    target: String,
    options: Vec<String>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum VolumeError {
    #[error("{text:?} is no volume: expected /host/folder:/inside, with :ro to forbid writing")]
    Malformed { text: String },
    #[error("the option {option:?} of the volume {text:?} is not known")]
    Option { option: String, text: String },
    #[error("{folder} is not shown inside: {why}")]
    Danger { folder: String, why: &'static str },
    #[error(
        "{folder} is not shown inside: it lies in {outer}, where a sandbox can put a link to \
         anywhere in its place"
    )]
    Exchangeable { folder: String, outer: String },
}

/// How a mount is labelled, cached or copied; none of it reaches the host.
const OPTIONS: [&str; 9] = [
    "ro",
    "rw",
    "z",
    "Z",
    "nocopy",
    "cached",
    "consistent",
    "delegated",
    "rprivate",
];

/// Whoever can write to one of these owns the host.
const ENGINES: [&str; 7] = [
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/crio",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
];
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

impl ContainerVolume {
    /// Nothing for a text without a colon, which Hermes skips too.
    pub fn parse(text: &str) -> Result<Option<Self>, VolumeError> {
        let malformed = || VolumeError::Malformed {
            text: text.to_owned(),
        };
        if !text.contains(':') {
            return Ok(None);
        }
        let mut parts = text.split(':');
        let (source, target) = (parts.next(), parts.next());
        let (Some(source), Some(target)) = (source, target) else {
            return Err(malformed());
        };
        let options: Vec<String> = parts
            .flat_map(|part| part.split(','))
            .map(str::to_owned)
            .collect();
        if let Some(option) = options.iter().find(|one| !OPTIONS.contains(&one.as_str())) {
            return Err(VolumeError::Option {
                option: option.clone(),
                text: text.to_owned(),
            });
        }
        let plain = |path: &str| {
            Path::new(path).is_absolute()
                && !Path::new(path)
                    .components()
                    .any(|part| part == Component::ParentDir)
        };
        let named = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        };
        if !plain(target) || target.trim_end_matches('/').is_empty() {
            return Err(malformed());
        }
        if !plain(source) && !named(source) {
            return Err(malformed());
        }
        Ok(Some(Self {
            source: source.to_owned(),
            target: target.to_owned(),
            options,
        }))
    }

    fn is_writable(&self) -> bool {
        !self.options.iter().any(|option| option == "ro")
    }

    pub fn target(&self) -> &str {
        &self.target
    }

    /// The folder on the engine's host; nothing for a volume that the engine keeps.
    pub fn folder(&self) -> Option<&Path> {
        self.source
            .starts_with('/')
            .then(|| Path::new(&self.source))
    }

    /// Whether it may be shown. `own` are paths of ours that no sandbox sees; `near` tells whether
    /// the engine's paths are this machine's, so that links can be followed; `accepted` are sources
    /// that the operator took the risk for.
    pub fn check(
        &self,
        own: &[PathBuf],
        near: bool,
        accepted: &[String],
    ) -> Result<(), VolumeError> {
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        if accepted.contains(&self.source) {
            return Ok(());
        }
        let danger = |why| {
            Err(VolumeError::Danger {
                folder: self.source.clone(),
                why,
            })
        };
        // As it is written and as it really is: the engine follows links when it mounts, and either
        // name may be the dangerous one.
        for folder in [folder.to_owned(), real(folder, near)] {
            if folder == Path::new("/") {
                return danger("it is the whole host");
            }
            if KERNEL.iter().any(|kernel| folder.starts_with(kernel)) {
                return danger("it is the host's kernel and devices");
            }
            let engines = ENGINES.iter().map(PathBuf::from);
            if engines
                .map(|path| real(&path, near))
                .any(|path| overlaps(&folder, &path))
                || ENGINES
                    .iter()
                    .any(|path| overlaps(&folder, Path::new(path)))
                || folder.starts_with("/var/run/docker.sock")
            {
                return danger("whoever reaches an engine owns its host");
            }
            if own.iter().any(|path| overlaps(&folder, &real(path, near))) {
                return danger("it would show hermetic's own state and secrets");
            }
            if let Some(why) = risk_of_showing(&folder, self.is_writable()) {
                return danger(why);
            }
        }
        Ok(())
    }
}

/// Whether one of those that a container is shown lies in another one that can be written to.
pub(crate) fn check_together(
    volumes: &[ContainerVolume],
    near: bool,
    accepted: &[String],
) -> Result<(), VolumeError> {
    for volume in volumes {
        let Some(folder) = volume
            .folder()
            .filter(|_| !accepted.contains(&volume.source))
        else {
            continue;
        };
        let outer = volumes.iter().find(|outer| {
            let outer_folder = outer.folder().filter(|_| outer.is_writable());
            outer_folder
                .is_some_and(|outer| can_be_exchanged(folder, outer, |path| real(path, near)))
        });
        if let Some(outer) = outer {
            return Err(VolumeError::Exchangeable {
                folder: volume.source.clone(),
                outer: outer.source.clone(),
            });
        }
    }
    Ok(())
}

impl fmt::Display for ContainerVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.target)?;
        if !self.options.is_empty() {
            write!(f, ":{}", self.options.join(","))?;
        }
        Ok(())
    }
}

/// With links followed as far as the path exists.
fn real(path: &Path, near: bool) -> PathBuf {
    if !near {
        return path.to_owned();
    }
    path.ancestors()
        .find_map(|known| {
            let rest = path.strip_prefix(known).ok()?;
            let found = fs::canonicalize(known).ok()?;
            Some(if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            })
        })
        .unwrap_or_else(|| path.to_owned())
}

/// Whether one is, contains or lies in the other.
fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(text: &str) -> ContainerVolume {
        ContainerVolume::parse(text).unwrap().unwrap()
    }

    #[test]
    fn volumes_are_read_as_docker_reads_them() {
        for text in ["/data:/data", "/data:/in:ro", "cache:/cache", "/a:/b:ro,z"] {
            assert_eq!(volume(text).to_string(), text);
        }
        assert_eq!(ContainerVolume::parse("anonymous"), Ok(None));
        for text in [
            ":/x",
            "/a:",
            "/a:b",
            "/a:/",
            "/a/../..:/x",
            "a/b:/x",
            "/a:/b:rshared",
            "/a:/b:exec",
            "-v:/x",
            "/a:/b:ro:suid",
        ] {
            assert!(ContainerVolume::parse(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn what_owns_the_host_is_not_shown() {
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("innocent");
        std::os::unix::fs::symlink("/", &link).unwrap();
        let own = [home.path().join("hermes/state")];
        for source in [
            "/",
            "/.",
            "//",
            "/proc",
            "/proc/1/root",
            "/sys/fs",
            "/dev",
            "/run",
            "/var/run",
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/var/lib/docker/volumes",
            "/var",
            "/run/podman/podman.sock",
            "/etc",
            "/root",
            "/home/alice/.ssh",
            "/usr/local",
            link.to_str().unwrap(),
            link.join("var").to_str().unwrap(),
            home.path().to_str().unwrap(),
            home.path().join("hermes/state/sandboxes").to_str().unwrap(),
        ] {
            let text = format!("{source}:/inside");
            let judged = volume(&text).check(&own, true, &[]);
            assert!(judged.is_err(), "{source} is shown");
            assert_eq!(
                volume(&text).check(&own, true, &[source.to_owned()]),
                Ok(())
            );
        }
        let fine = home.path().join("project");
        assert_eq!(
            volume(&format!("{}:/p", fine.display())).check(&own, true, &[]),
            Ok(())
        );
        assert_eq!(volume("named:/p").check(&own, true, &[]), Ok(()));
    }

    #[test]
    fn what_a_sandbox_could_exchange_is_not_shown() {
        let all = |texts: &[&str]| texts.iter().map(|text| volume(text)).collect::<Vec<_>>();
        let check =
            |texts: &[&str], accepted: &[String]| check_together(&all(texts), false, accepted);
        let nested = ["/srv/all:/all", "/srv/all/data:/data:ro"];
        assert!(matches!(
            check(&nested, &[]),
            Err(VolumeError::Exchangeable { .. })
        ));
        assert_eq!(check(&nested, &["/srv/all/data".to_owned()]), Ok(()));
        for fine in [
            ["/srv/all:/all:ro", "/srv/all/data:/data"],
            ["/srv/all:/all", "/srv/all:/again"],
            ["/srv/all:/all", "/srv/allotment:/data"],
            ["srv:/all", "/srv/all/data:/data"],
        ] {
            assert_eq!(check(&fine, &[]), Ok(()), "{fine:?}");
        }
    }
}
