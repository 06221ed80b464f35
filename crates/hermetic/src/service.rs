//! The gateway as a unit of systemd, where there is one.
//!
//! A unit names the home it serves; of two homes of one person each has a unit of its own. What runs
//! by a unit says so in its description, and is then stopped by that name and no other way.

pub(crate) mod linger;
mod unit;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hermetic_app as app;
use hermetic_config::HomeFolder;

use crate::failure::CommandFailure;

pub(crate) use unit::{CommandPlace, SystemdUnit, UnitOrigin};

/// Says whose systemd runs the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemdScope {
    User,
    System,
}

/// A unit, by its name and keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SystemdService {
    pub(crate) keeper: SystemdScope,
    pub(crate) name: String,
}

/// How a unit tells its gateway who it is.
const VARIABLE: &str = "HERMETIC_SERVICE";

/// The unit that a package brings, and the folder where packages put theirs. What lies in `/etc` under the
/// same name goes before it.
const PACKAGED_NAME: &str = "hermetic-gateway.service";
const PACKAGED_FOLDER: &str = "/usr/lib/systemd/system";
/// The home that a package makes.
pub(crate) const PACKAGED_HOME: &str = "/var/lib/hermetic/.hermes";

/// The service that runs this very process.
pub(crate) fn own_name() -> Option<String> {
    env::var(VARIABLE)
        .ok()
        .filter(|name| SystemdService::read(name).is_some())
}

impl SystemdService {
    /// The one of a package.
    pub(crate) fn packaged() -> Self {
        Self {
            keeper: SystemdScope::System,
            name: PACKAGED_NAME.to_owned(),
        }
    }

    /// Whether a package brought a unit for this home.
    fn is_packaged_for(home: &HomeFolder, folder: &Path) -> bool {
        std::fs::read_to_string(folder.join(PACKAGED_NAME))
            .is_ok_and(|text| SystemdUnit::serves(&text, home))
    }

    /// Whether it is a package's alone, and none of ours lies over it.
    pub(crate) fn belongs_to_package(&self) -> bool {
        *self == Self::packaged() && !self.path().is_some_and(|path| path.exists())
    }

    /// The home of the package, where one is installed.
    pub(crate) fn packaged_home() -> Option<HomeFolder> {
        let home = HomeFolder::at(PACKAGED_HOME);
        Self::is_packaged_for(&home, Path::new(PACKAGED_FOLDER)).then_some(home)
    }

    /// Whether this is the home of a package that is installed.
    pub(crate) fn is_packaged_home(home: &HomeFolder) -> bool {
        Self::packaged_home().is_some_and(|packaged| packaged.root() == home.root())
    }

    /// The one of this home, whether or not it is installed.
    pub(crate) fn of(home: &HomeFolder, keeper: SystemdScope) -> Result<Self, CommandFailure> {
        let packaged = Path::new(PACKAGED_FOLDER);
        if keeper == SystemdScope::System && Self::is_packaged_for(home, packaged) {
            return Ok(Self::packaged());
        }
        let usual = env::var_os("HOME").map(|folder| PathBuf::from(folder).join(".hermes"));
        let is_usual = usual.is_some_and(|usual| usual == home.root());
        let plain = Self {
            keeper,
            name: PACKAGED_NAME.to_owned(),
        };
        if is_usual && (!plain.would_hide(packaged) || plain.is_installed_for(home)) {
            return Ok(plain);
        }
        let installation = app::installation(home)?;
        let name = format!("hermetic-gateway-{installation}.service");
        Ok(Self { keeper, name })
    }

    /// Whether a unit of this name would be read in place of a package's, which is another gateway's.
    fn would_hide(&self, packaged: &Path) -> bool {
        self.keeper == SystemdScope::System && packaged.join(&self.name).exists()
    }

    /// Whether our unit of this name is in its place, and is this home's.
    fn is_installed_for(&self, home: &HomeFolder) -> bool {
        let text = self
            .path()
            .and_then(|path| std::fs::read_to_string(path).ok());
        text.is_some_and(|text| SystemdUnit::serves(&text, home))
    }

    /// The unit beside it that its sandboxes live in.
    pub(crate) fn sandboxes(&self) -> String {
        self.name
            .replacen("hermetic-gateway", "hermetic-sandboxes", 1)
    }

    /// The installed one of this home.
    pub(crate) fn installed(home: &HomeFolder) -> Result<Option<Self>, CommandFailure> {
        for keeper in [SystemdScope::User, SystemdScope::System] {
            let service = Self::of(home, keeper)?;
            if service.is_installed_for(home) {
                return Ok(Some(service));
            }
        }
        let packaged = Self::is_packaged_for(home, Path::new(PACKAGED_FOLDER));
        Ok(packaged.then(Self::packaged))
    }

    /// From what a gateway says of itself.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (keeper, name) = text.split_once(':')?;
        let keeper = match keeper {
            "user" => SystemdScope::User,
            "system" => SystemdScope::System,
            _ => return None,
        };
        // It becomes an argument.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        (name.starts_with("hermetic-gateway") && name.bytes().all(plain)).then(|| Self {
            keeper,
            name: name.to_owned(),
        })
    }

    pub(crate) fn written(&self) -> String {
        let keeper = match self.keeper {
            SystemdScope::User => "user",
            SystemdScope::System => "system",
        };
        format!("{keeper}:{}", self.name)
    }

    /// Where its unit file belongs.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(&self.name))
    }

    /// Where the unit file of its sandboxes belongs.
    pub(crate) fn sandboxes_path(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(self.sandboxes()))
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(match self.keeper {
            SystemdScope::System => PathBuf::from("/etc/systemd/system"),
            SystemdScope::User => env::var_os("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")))?
                .join("systemd/user"),
        })
    }

    /// `systemctl` with these words and the unit's name.
    pub(crate) fn tell(&self, words: &[&str]) -> Result<(), CommandFailure> {
        let mut words = words.to_vec();
        words.push(&self.name);
        self.keeper.tell(&words)
    }

    /// Whether it starts with the machine; absent where nobody can be asked.
    pub(crate) fn is_enabled(&self) -> Option<bool> {
        let mut asked = self.keeper.systemctl();
        let output = asked.args(["is-enabled", &self.name]).output().ok()?;
        match output.stdout.trim_ascii() {
            b"enabled" | b"enabled-runtime" | b"static" | b"linked" => Some(true),
            b"disabled" | b"masked" => Some(false),
            _ => None,
        }
    }
}

impl SystemdScope {
    /// Whether it is there to be spoken to.
    pub(crate) fn is_there(self) -> bool {
        self.systemctl()
            .args(["show", "--property=Version"])
            .output()
            .is_ok_and(|output| output.status.success())
    }

    pub(crate) fn tell(self, words: &[&str]) -> Result<(), CommandFailure> {
        let output = self
            .systemctl()
            .args(words)
            .output()
            .map_err(|error| CommandFailure::caused(&error, "is systemctl there?"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(CommandFailure::new(
            format!("systemctl {} failed: {}", words.join(" "), said.trim()),
            format!(
                "`{} status {}` and `journalctl{}` tell more",
                self.words(),
                words.last().unwrap_or(&""),
                if self == Self::User { " --user" } else { "" },
            ),
        ))
    }

    fn systemctl(self) -> Command {
        let mut command = Command::new("systemctl");
        if self == Self::User {
            command.arg("--user");
        }
        command.stdin(Stdio::null());
        command
    }

    fn words(self) -> &'static str {
        match self {
            Self::User => "systemctl --user",
            Self::System => "systemctl",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_a_package_is_found_by_the_home_it_serves() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at("/var/lib/hermetic/.hermes");
        let is_there = |home| SystemdService::is_packaged_for(home, folder.path());
        assert!(!is_there(&home));
        let service = SystemdService::packaged();
        let unit = SystemdUnit {
            service: &service,
            program: Path::new("/usr/bin/hermetic"),
            home: &home,
            slice: "hermetic-package.slice",
            run_as: Some("hermetic"),
            grace: std::time::Duration::from_secs(1),
            watchdog: None,
            commands: CommandPlace::Apart,
            origin: UnitOrigin::Package,
        };
        std::fs::write(folder.path().join(PACKAGED_NAME), unit.text()).unwrap();
        assert!(is_there(&home));
        assert!(!is_there(&HomeFolder::at("/srv/bot")));
    }

    /// What lies in `/etc` goes before what a package brought: root's own gateway would run in place of it, and
    /// be switched off when the package is removed.
    #[test]
    fn no_unit_of_ours_hides_that_of_a_package() {
        let folder = tempfile::tempdir().unwrap();
        let service = |keeper, name: &str| SystemdService {
            keeper,
            name: name.to_owned(),
        };
        let plain = service(SystemdScope::System, PACKAGED_NAME);
        assert!(!plain.would_hide(folder.path()));
        std::fs::write(folder.path().join(PACKAGED_NAME), "").unwrap();
        assert!(plain.would_hide(folder.path()));
        assert!(!service(SystemdScope::User, PACKAGED_NAME).would_hide(folder.path()));
        let other = service(SystemdScope::System, "hermetic-gateway-4f1c.service");
        assert!(!other.would_hide(folder.path()));
    }

    #[test]
    fn a_name_that_is_none_of_ours_becomes_no_argument() {
        let service = SystemdService {
            keeper: SystemdScope::User,
            name: "hermetic-gateway.service".to_owned(),
        };
        assert_eq!(SystemdService::read(&service.written()), Some(service));
        for text in [
            "user:ssh.service",
            "root:hermetic-gateway.service",
            "user:hermetic-gateway --now",
            "system:",
            "",
        ] {
            assert_eq!(SystemdService::read(text), None, "{text:?}");
        }
    }
}
