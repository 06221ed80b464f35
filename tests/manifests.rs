//! What cargo says about the packages of a workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PREFIX: &str = "hermetic-";

pub(crate) struct Workspace {
    pub packages: Vec<Package>,
}

pub(crate) struct Package {
    /// Without the prefix: `policy`. The binary, which has none, is `hermetic`.
    pub name: String,
    pub folder: PathBuf,
    /// Everything it depends on to be built, under its full name. No dev-dependencies.
    pub needs: Vec<String>,
    /// The root file of its library and of each program.
    pub roots: Vec<PathBuf>,
    pub private: bool,
}

impl Workspace {
    pub(crate) fn ours() -> Self {
        let output = Command::new(env!("CARGO"))
            .args([
                "metadata",
                "--no-deps",
                "--offline",
                "--format-version",
                "1",
            ])
            .arg("--manifest-path")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .output()
            .expect("the cargo that built this test is there");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata: {complaint}");
        let read: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
        let packages = list(&read, "packages").map(Package::read).collect();
        Self { packages }
    }

    /// Packages made up for a test: name, folder, what each needs.
    pub(crate) fn of(packages: &[(&str, &str, &[&str])]) -> Self {
        let made_up = |(name, folder, needs): &(&str, &str, &[&str])| Package {
            name: (*name).to_owned(),
            folder: PathBuf::from(folder),
            needs: needs.iter().copied().map(str::to_owned).collect(),
            roots: Vec::new(),
            private: true,
        };
        Self {
            packages: packages.iter().map(made_up).collect(),
        }
    }
}

impl Package {
    /// The packages of ours that it depends on, without their prefix.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &str> {
        self.needs
            .iter()
            .filter_map(|need| need.strip_prefix(PREFIX))
    }

    pub(crate) fn is_backend(&self) -> bool {
        self.lies_in("backends")
    }

    pub(crate) fn is_platform(&self) -> bool {
        self.lies_in("platforms")
    }

    fn lies_in(&self, group: &str) -> bool {
        self.folder.parent().and_then(Path::file_name) == Some(group.as_ref())
    }

    fn read(package: &Value) -> Self {
        let full_name = text(package, "name");
        let manifest = PathBuf::from(text(package, "manifest_path"));
        let builds = |need: &&Value| need["kind"] != "dev";
        let is_root = |target: &&Value| {
            let kinds = [
                Value::from("lib"),
                Value::from("bin"),
                Value::from("proc-macro"),
            ];
            list(target, "kind").any(|kind| kinds.contains(kind))
        };
        Self {
            name: full_name
                .strip_prefix(PREFIX)
                .unwrap_or(full_name)
                .to_owned(),
            folder: manifest
                .parent()
                .expect("a manifest is in a folder")
                .to_owned(),
            needs: list(package, "dependencies")
                .filter(builds)
                .map(|need| text(need, "name").to_owned())
                .collect(),
            roots: list(package, "targets")
                .filter(is_root)
                .map(|target| text(target, "src_path").into())
                .collect(),
            private: package["publish"].as_array().is_some_and(Vec::is_empty),
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key]
        .as_array()
        .expect("a list in cargo's format 1")
        .iter()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("a text in cargo's format 1")
}
