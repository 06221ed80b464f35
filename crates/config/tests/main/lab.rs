//! A home of one's own for each test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hermetic_config::{
    Config, ConfigInputs, ConfigProblems, EffectiveSetting, HomeFolder, SettingValue, load,
};
use tempfile::TempDir;

pub(crate) struct Lab {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            variables: [("HOME".to_owned(), "/home/ada".to_owned())].into(),
        }
    }

    /// With this as config.yaml.
    pub(crate) fn with(config: impl AsRef<[u8]>) -> Self {
        Self::new().file("config.yaml", config)
    }

    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    pub(crate) fn dotenv(self, content: &str) -> Self {
        self.file(".env", content)
    }

    /// The administrator's file.
    pub(crate) fn managed(self, content: &str) -> Self {
        self.file("managed.yaml", content)
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn load(&self) -> Result<Config, ConfigProblems> {
        load(&ConfigInputs {
            home: HomeFolder::at(self.folder.path()),
            managed: self.path("managed.yaml"),
            variables: self.variables.clone(),
            unreadable: Vec::new(),
        })
    }

    pub(crate) fn config(&self) -> Config {
        self.load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// All of the error text, with the folder's name out of the way.
    pub(crate) fn errors(&self) -> String {
        match self.load() {
            Ok(_) => "no error".to_owned(),
            Err(problems) => self.named(&problems.to_string()),
        }
    }

    pub(crate) fn warnings(&self) -> String {
        let warnings: Vec<String> = self
            .config()
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        self.named(&warnings.join("\n\n"))
    }

    /// One value and its origin, as `config show` has it.
    pub(crate) fn shown(&self, key: &str) -> String {
        let config = self.config();
        let setting = config
            .settings()
            .iter()
            .find(|setting| setting.name() == key)
            .unwrap_or_else(|| panic!("no key {key}"));
        let value = setting
            .value()
            .map_or_else(|| "-".to_owned(), SettingValue::shown);
        self.named(&format!("{value} ({})", EffectiveSetting::origin(setting)))
    }

    fn named(&self, text: &str) -> String {
        text.replace(&self.root().display().to_string(), "~/.hermes")
    }
}
