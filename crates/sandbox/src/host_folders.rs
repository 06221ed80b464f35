//! Folders of the host that nobody shows a sandbox by accident.

use std::path::{Component, Path, PathBuf};

/// Whoever can write below one of these owns the machine.
const SYSTEM: [&str; 11] = [
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/sbin",
    "/usr",
    "/var/lib",
    "/var/spool",
];

/// Sockets that act for whoever reaches them, and what engines keep: also to read, as a socket is written to
/// through a read-only mount, and images hold their secrets.
const CONTROL: [(&str, &str); 12] = [
    (
        "/run/user",
        "whoever reaches a user's bus or engine there acts as that user",
    ),
    (
        "/run/dbus",
        "whoever reaches the system's bus has its services act",
    ),
    ("/run/docker.sock", ENGINE),
    ("/run/docker", ENGINE),
    ("/run/podman", ENGINE),
    ("/run/containerd", ENGINE),
    ("/run/crio", ENGINE),
    ("/run/cri-dockerd.sock", ENGINE),
    ("/run/k3s", ENGINE),
    ("/var/lib/docker", ENGINE),
    ("/var/lib/containerd", ENGINE),
    ("/var/lib/containers", ENGINE),
];
const ENGINE: &str = "whoever reaches an engine owns its host";

/// What people keep keys in, wherever their home is.
const KEYS: [&str; 11] = [
    ".aws",
    ".azure",
    ".docker",
    ".gnupg",
    ".hermes",
    ".kube",
    ".netrc",
    ".password-store",
    ".pki",
    ".ssh",
    ".vault-token",
];

/// What runs at a login or at a start, wherever the home is.
const START_UP: [&str; 12] = [
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/fish",
    ".config/systemd",
    ".local/bin",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Why an operator has to name the risk before this path of the host is shown in a sandbox; nothing
/// where there is none.
pub fn risk_of_showing(path: &Path, writable: bool) -> Option<&'static str> {
    if KEYS.iter().any(|name| is_part(path, name)) || path.starts_with("/etc/ssh") {
        return Some("it holds keys");
    }
    if matches!(path.to_str(), Some("/etc/shadow" | "/etc/gshadow")) {
        return Some("it holds passwords");
    }
    // An old name of the same folder, on every system that has it.
    let path = &match path.strip_prefix("/var/run") {
        Ok(rest) => Path::new("/run").join(rest),
        Err(_) => path.to_owned(),
    };
    let control = CONTROL
        .iter()
        .find(|(place, _)| path.starts_with(place) || Path::new(place).starts_with(path));
    if let Some((_, why)) = control {
        return Some(why);
    }
    if is_home(path) {
        return Some("it is somebody's whole home, with keys and start-up files");
    }
    if !writable {
        // What follows is about writing only: reading these is what most mounts are for.
        return None;
    }
    if SYSTEM.iter().any(|part| path.starts_with(part)) || path == Path::new("/var") {
        return Some("whoever writes there owns the machine");
    }
    if START_UP.iter().any(|name| is_part(path, name)) {
        return Some("what is written there runs outside of the sandbox");
    }
    None
}

/// Whether this is the tree of a program that was installed for sandboxes, which they may be shown read-only
/// although it lies in our own part of the home: `agents/NAME/tree` there, and nothing above or beside it.
pub fn is_installed_program(source: &Path, state: &Path) -> bool {
    let below = source.strip_prefix(state).ok();
    let parts = below.map(|below| below.components().collect::<Vec<_>>());
    let is = |part: &Component<'_>, name: &str| part.as_os_str() == name;
    matches!(
        parts.as_deref(),
        Some([agents, Component::Normal(name), tree])
            if is(agents, "agents") && is(tree, "tree")
                && !name.as_encoded_bytes().starts_with(b".")
    )
}

/// Whether somebody who can write in `folder` can put something else, such as a link to `/etc`, where
/// `source` leads. `real` follows links. It is asked of each part of the way and not of its end alone: what
/// lies there may have been exchanged already.
pub fn can_be_exchanged(source: &Path, folder: &Path, real: impl Fn(&Path) -> PathBuf) -> bool {
    let real_folder = real(folder);
    // The folder itself stays in its place: nobody inside can write above it.
    let above = source.ancestors().skip(1);
    above
        .into_iter()
        .any(|part| part.starts_with(folder) || real(part).starts_with(&real_folder))
}

/// Whether the path leads to or through that relative one, at any depth.
fn is_part(path: &Path, part: &str) -> bool {
    let parts: Vec<_> = path.components().collect();
    let wanted: Vec<_> = Path::new(part).components().collect();
    parts.windows(wanted.len()).any(|some| some == wanted)
}

fn is_home(path: &Path) -> bool {
    let mut parts = path
        .components()
        .skip_while(|part| *part == Component::RootDir);
    match parts.next().and_then(|part| part.as_os_str().to_str()) {
        Some("root") => parts.next().is_none(),
        Some("home") => parts.nth(1).is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_owns_the_machine_or_an_account_is_a_risk() {
        for path in [
            "/etc",
            "/etc/cron.d",
            "/usr/local/bin",
            "/boot",
            "/var",
            "/var/spool/cron",
            "/root",
            "/home",
            "/home/alice",
            "/home/alice/.ssh",
            "/home/alice/.config/systemd/user",
            "/home/alice/.bashrc",
            "/srv/bot/.hermes",
        ] {
            assert!(risk_of_showing(Path::new(path), true).is_some(), "{path}");
        }
    }

    #[test]
    fn keys_are_one_even_to_read() {
        for path in [
            "/root",
            "/home/alice/.ssh/id_ed25519",
            "/etc/shadow",
            "/x/.aws",
        ] {
            assert!(risk_of_showing(Path::new(path), false).is_some(), "{path}");
        }
    }

    #[test]
    fn a_socket_that_acts_for_others_is_one_even_read_only() {
        for path in [
            "/run",
            "/run/",
            "/var",
            "/var/run",
            "/run/user",
            "/run/user/1000",
            "/run/user/1000/bus",
            "/run/user/1000/docker.sock",
            "/var/run/user/1000/podman/podman.sock",
            "/run/dbus/system_bus_socket",
            "/run/crio/crio.sock",
            "/run/containerd",
            "/var/lib",
            "/var/lib/docker/volumes/data",
            "/var/lib/containers",
        ] {
            assert!(risk_of_showing(Path::new(path), false).is_some(), "{path}");
        }
        for path in ["/run/app", "/run/postgresql", "/var/lib/app", "/var/log"] {
            assert_eq!(risk_of_showing(Path::new(path), false), None, "{path}");
        }
    }

    #[test]
    fn of_our_own_part_only_the_tree_of_a_program_is_shown() {
        let state = Path::new("/home/alice/.hermes/hermetic");
        let shown = |path: &str| is_installed_program(&state.join(path), state);
        assert!(shown("agents/claude/tree"));
        for path in [
            "",
            "agents",
            "agents/claude",
            "agents/claude/tree/node_modules",
            "agents/claude/checksums",
            "agents/.staging-claude/tree",
            "agents/../tree",
            "other/claude/tree",
            "/elsewhere/agents/claude/tree",
        ] {
            assert!(!shown(path), "{path}");
        }
    }

    #[test]
    fn what_lies_in_a_writable_folder_can_be_exchanged() {
        let real = |path: &Path| {
            let mut known = path.ancestors();
            let found = known.find_map(|part| {
                let real = part.canonicalize().ok()?;
                Some(real.join(path.strip_prefix(part).ok()?))
            });
            found.unwrap_or_else(|| path.to_owned())
        };
        let host = tempfile::tempdir().unwrap();
        let at = |path: &str| host.path().join(path);
        std::fs::create_dir_all(at("out/data")).unwrap();
        std::fs::create_dir_all(at("beside")).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        link("out", "way");
        let is = |source: &str| can_be_exchanged(&at(source), &at("out"), real);
        for source in ["out/data", "out/data/deep", "out/none", "way/data"] {
            assert!(is(source), "{source}");
        }
        for source in ["out", "way", "beside", "beside/out", "output"] {
            assert!(!is(source), "{source}");
        }
        // Done already.
        std::fs::remove_dir(at("out/data")).unwrap();
        link("/etc", "out/data");
        assert!(is("out/data") && is("way/data") && is("way/data/cron.d"));
    }

    #[test]
    fn projects_and_data_are_none() {
        for path in [
            "/home/alice/project",
            "/root/project",
            "/srv/data",
            "/opt/app",
            "/var/www/site",
            "/mnt/disk",
            "/home/alice/.config/nvim",
        ] {
            assert_eq!(risk_of_showing(Path::new(path), true), None, "{path}");
        }
        for path in ["/etc/hosts", "/usr/share", "/home/alice/.bashrc"] {
            assert_eq!(risk_of_showing(Path::new(path), false), None, "{path}");
        }
    }
}
