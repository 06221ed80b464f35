//! The packages of the workspace, as far as the chores care.
//!
//! Read line by line: asking cargo would give JSON, and a parser for it is the dependency this
//! crate does without. `tests/arrows.rs` is where manifests are read properly.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::ChoreFailure;
use crate::machine;

#[derive(Debug, PartialEq)]
pub(crate) struct WorkspaceMember {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// Parts of the machine its tests want.
    pub(crate) needs: Vec<String>,
    pub(crate) has_benches: bool,
}

pub(crate) fn all() -> Result<Vec<WorkspaceMember>, ChoreFailure> {
    let root = machine::root();
    let mut folders = vec![root.join("tests"), root.join("benches"), root.join("xtask")];
    for parent in ["crates", "crates/backends", "crates/platforms"] {
        let parent = root.join(parent);
        let what = format!("read {}", parent.display());
        for entry in fs::read_dir(parent).map_err(ChoreFailure::file(what.clone()))? {
            folders.push(entry.map_err(ChoreFailure::file(what.clone()))?.path());
        }
    }
    folders.sort();
    Ok(folders.iter().filter_map(|folder| read(folder)).collect())
}

fn read(folder: &Path) -> Option<WorkspaceMember> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let mut member = parse(&manifest)?;
    member.folder = folder.to_owned();
    member.has_benches |= folder.join("benches").is_dir();
    Some(member)
}

fn parse(manifest: &str) -> Option<WorkspaceMember> {
    let mut section = "";
    let mut name = None;
    let mut needs = Vec::new();
    let mut has_benches = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            has_benches |= line == "[[bench]]";
        } else if let Some((key, value)) = line.split_once('=') {
            match (section, key.trim()) {
                ("[package]", "name") => name = Some(value.trim().trim_matches('"').to_owned()),
                ("[package.metadata.tests]", "needs") => needs = words(value),
                _ => {}
            }
        }
    }
    Some(WorkspaceMember {
        name: name?,
        folder: PathBuf::new(),
        needs,
        has_benches,
    })
}

/// The texts of a TOML list on one line.
fn words(list: &str) -> Vec<String> {
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_what_its_tests_need() {
        let text = "[package]\nname = \"hermetic-docker\"\n\n[package.metadata.tests]\n\
                    needs = [\"docker\", \"ssh\"]\n\n[[bench]]\nname = \"start\"\n";
        let member = parse(text).expect("a package");
        assert_eq!(member.name, "hermetic-docker");
        assert_eq!(member.needs, ["docker", "ssh"]);
        assert!(member.has_benches);
    }

    #[test]
    fn a_manifest_without_a_package_is_no_member() {
        assert_eq!(parse("[workspace]\nmembers = []\n"), None);
    }

    #[test]
    fn this_crate_is_found_among_the_members() {
        let members = all().expect("the source tree is there");
        assert!(members.iter().any(|member| member.name == "xtask"));
        assert!(members.iter().any(|member| member.name == "hermetic-types"));
    }
}
