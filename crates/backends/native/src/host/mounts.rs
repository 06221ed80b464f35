//! What an operator may show a sandbox of the host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use hermetic_sandbox::{
    BackendError, HostMount, MountMode, can_be_exchanged, is_installed_program,
};

use super::native::overlaps;
use crate::plan::BindMount;

/// Folders through which a sandbox would become the host.
const NEVER: [&str; 9] = [
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/systemd",
];

/// Places that are the sandbox's own and may not be covered.
const OWN: [&str; 6] = ["/proc", "/sys", "/dev", "/usr", "/etc", "/tmp"];

pub(super) fn check_all(
    mounts: &[HostMount],
    state: &Path,
) -> Result<Vec<BindMount>, BackendError> {
    for mount in mounts {
        let outer = mounts.iter().find(|outer| {
            outer.mode == MountMode::ReadWrite
                && can_be_exchanged(&mount.source, &outer.source, |path| {
                    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
                })
        });
        if let Some(outer) = outer {
            return Err(BackendError::Refused {
                what: format!("mounting {}", mount.source.display()),
                why: format!(
                    "it lies in {}, where a sandbox can put a link to anywhere in its place; mount \
                     one of the two, or the outer one without :rw",
                    outer.source.display()
                ),
            });
        }
    }
    mounts.iter().map(|mount| check(mount, state)).collect()
}

fn check(mount: &HostMount, state: &Path) -> Result<BindMount, BackendError> {
    let refuse = |why: &str| BackendError::Refused {
        what: format!("mounting {}", mount.source.display()),
        why: why.to_owned(),
    };
    // Resolved before it is judged: a link would pass under a harmless name.
    let source = fs::canonicalize(&mount.source)
        .map_err(|source| refuse(&format!("it cannot be found ({source})")))?;
    if source == Path::new("/") {
        return Err(refuse("it is the whole host"));
    }
    let is_program = mount.mode == MountMode::ReadOnly
        && fs::canonicalize(state).is_ok_and(|state| is_installed_program(&source, &state));
    if overlaps(&source, state) && !is_program {
        return Err(refuse("it would show the sandboxes' own state"));
    }
    if NEVER
        .iter()
        .any(|never| overlaps(&source, Path::new(never)))
    {
        return Err(refuse("it is a way to control the host"));
    }
    let kind = fs::symlink_metadata(&source)
        .map_err(|source| refuse(&format!("it cannot be looked at ({source})")))?
        .file_type();
    if kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        return Err(refuse("only folders and plain files can be shown"));
    }
    let target = clean(&mount.target)
        .ok_or_else(|| refuse("the place for it must be an absolute path without '..'"))?;
    if OWN.iter().any(|own| target.starts_with(own)) || target == Path::new("/") {
        return Err(refuse("the place for it belongs to the sandbox's system"));
    }
    Ok(BindMount {
        source,
        target,
        writable: mount.mode == MountMode::ReadWrite,
    })
}

/// A name with `=` or NUL in it would become another variable.
pub(super) fn check_environment(env: &BTreeMap<String, String>) -> Result<(), BackendError> {
    let broken = env.iter().find(|(name, value)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    });
    match broken {
        Some((name, _)) => Err(BackendError::Refused {
            what: format!("the variable {name:?}"),
            why: "it is no valid name or value".to_owned(),
        }),
        None => Ok(()),
    }
}

fn clean(target: &Path) -> Option<PathBuf> {
    let plain = target
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    (plain && target.is_absolute()).then(|| target.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_could_exchange_is_not_mounted() {
        let host = tempfile::tempdir().unwrap();
        let mount = |path: &str, mode| {
            let source = host.path().join(path);
            fs::create_dir_all(&source).unwrap();
            HostMount {
                source,
                target: format!("/data/{path}").into(),
                mode,
            }
        };
        let state = Path::new("/nonexistent");
        let (all, data) = ("all", "all/data");
        let outer = mount(all, MountMode::ReadWrite);
        let inner = mount(data, MountMode::ReadOnly);
        let refused = check_all(&[inner.clone(), outer.clone()], state);
        assert!(matches!(refused, Err(BackendError::Refused { .. })));
        // The next sandbox, after the first one did it.
        fs::remove_dir(&inner.source).unwrap();
        std::os::unix::fs::symlink("/etc", &inner.source).unwrap();
        assert!(check_all(&[inner.clone(), outer.clone()], state).is_err());
        fs::remove_file(&inner.source).unwrap();
        let fine = [
            mount(all, MountMode::ReadOnly),
            mount(data, MountMode::ReadWrite),
        ];
        assert_eq!(check_all(&fine, state).unwrap().len(), 2);
        let twice = [outer.clone(), outer];
        assert_eq!(check_all(&twice, state).unwrap().len(), 2);
    }
}
