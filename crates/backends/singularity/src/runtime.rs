//! The program that makes instances: Apptainer where it is there, else Singularity.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use hermetic_sandbox::BackendError;

/// As it was found, with what it may see of our environment.
#[derive(Clone, Debug)]
pub struct ApptainerRuntime {
    program: PathBuf,
    /// How its own variables begin.
    prefix: &'static str,
    env: BTreeMap<OsString, OsString>,
}

/// In the order of preference.
const KNOWN: [(&str, &str); 2] = [("apptainer", "APPTAINER"), ("singularity", "SINGULARITY")];

/// What every run of it needs. Its own variables are left out: they could add binds, mounts and
/// variables to a sandbox that nobody decided on.
const ALWAYS: [&str; 8] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
];

/// What a build needs besides, which fetches and unpacks.
const FOR_BUILDS: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "LANG",
];
const OWN_FOR_BUILDS: [&str; 4] = [
    "CACHEDIR",
    "CONFIGDIR",
    "DOCKER_PASSWORD",
    "DOCKER_USERNAME",
];

impl ApptainerRuntime {
    /// Looks along `PATH` of the environment given, and where administrators put things.
    pub fn find(look: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let path = look("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path)
            .chain(["/usr/bin", "/usr/local/bin"].map(PathBuf::from))
            .collect();
        Self::among(&folders, look)
    }

    /// Looks into these folders alone.
    pub fn among(folders: &[PathBuf], look: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        KNOWN.into_iter().find_map(|(name, prefix)| {
            let mut places = folders.iter().map(|folder| folder.join(name));
            let program = places.find(|place| place.is_absolute() && place.is_file())?;
            let own = OWN_FOR_BUILDS.map(|name| format!("{prefix}_{name}"));
            let names = ALWAYS
                .iter()
                .chain(&FOR_BUILDS)
                .map(|name| (*name).to_owned());
            let env = names
                .chain(own)
                .filter_map(|name| Some((OsString::from(&name), look(&name)?)))
                .collect();
            Some(Self {
                program,
                prefix,
                env,
            })
        })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// For instances: with a list of instances of our own, and as little else as it works with.
    pub(crate) fn command(&self, list: &Path) -> Command {
        let mut command = self.bare();
        command.envs(self.of(|name| ALWAYS.iter().any(|known| name == *known)));
        command.env(format!("{}_CONFIGDIR", self.prefix), list);
        command
    }

    /// For building an image, as the user would; what it needs meanwhile is in `rest`, where it is
    /// found and removed if it is killed.
    pub(crate) fn build_command(&self, rest: &Path) -> Command {
        let mut command = self.bare();
        command.envs(self.of(|_| true));
        command.env(format!("{}_TMPDIR", self.prefix), rest);
        command
    }

    pub(crate) fn version_command(&self) -> Command {
        let mut command = self.bare();
        command.envs(self.of(|_| true)).arg("--version");
        command
    }

    fn bare(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir("/");
        command
    }

    fn of(&self, wanted: impl Fn(&OsStr) -> bool) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.env.iter().filter(move |(name, _)| wanted(name))
    }
}

pub(crate) fn lacking() -> BackendError {
    BackendError::Unavailable {
        what: "neither apptainer nor singularity is installed".to_owned(),
        remedy: "install apptainer: https://apptainer.org/docs/admin/latest/installation.html"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn apptainer_is_preferred_and_its_own_variables_stay_outside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("singularity"), "").unwrap();
        let look = |name: &str| match name {
            "PATH" => Some(folder.path().into()),
            "APPTAINER_BIND" | "SINGULARITY_BIND" => Some("/:/host".into()),
            "APPTAINER_DOCKER_PASSWORD" => Some("secret".into()),
            _ => None,
        };
        let only = [folder.path().to_owned()];
        let older = ApptainerRuntime::among(&only, &look).unwrap();
        assert_eq!(
            (&older.program, older.prefix),
            (&at("singularity"), "SINGULARITY")
        );
        fs::write(at("apptainer"), "").unwrap();
        let found = ApptainerRuntime::find(&look).unwrap();
        assert_eq!(found.program, at("apptainer"));

        let seen = |command: &Command| {
            let names = command.get_envs().filter(|(_, value)| value.is_some());
            names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        let started = found.command(Path::new("/list"));
        assert_eq!(seen(&started), ["APPTAINER_CONFIGDIR", "PATH"]);
        let built = found.build_command(Path::new("/rest"));
        assert_eq!(
            seen(&built),
            ["APPTAINER_DOCKER_PASSWORD", "APPTAINER_TMPDIR", "PATH"]
        );
    }
}
