//! The context that `docker context use` chose.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::address::AddressError;

/// The one that means "no context".
const DEFAULT: &str = "default";

/// Where docker's own client keeps its settings.
pub fn client_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = variable("DOCKER_CONFIG").map(PathBuf::from);
    named.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".docker")))
}

/// The address in the context that is chosen by `DOCKER_CONTEXT` or in docker's own file.
pub(crate) fn chosen(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, AddressError> {
    let Some(folder) = client_folder(variable) else {
        return Ok(None);
    };
    let name = variable("DOCKER_CONTEXT").or_else(|| current(&folder));
    match name {
        Some(name) if name != DEFAULT => match host(&folder, &name) {
            Some(host) => Ok(Some(host)),
            None => Err(AddressError::Context { name }),
        },
        _ => Ok(None),
    }
}

fn current(folder: &Path) -> Option<String> {
    text(&read(&folder.join("config.json"))?, &["currentContext"])
}

/// A context's folder is the checksum of its name.
fn host(folder: &Path, name: &str) -> Option<String> {
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let meta = folder.join("contexts/meta").join(digest).join("meta.json");
    text(&read(&meta)?, &["Endpoints", "docker", "Host"])
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn text(value: &Value, path: &[&str]) -> Option<String> {
    let found = path
        .iter()
        .try_fold(value, |value, name| value.get(name))?
        .as_str()?;
    (!found.is_empty()).then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_found_where_docker_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder
            .path()
            .join("contexts/meta/b71199ebd070b36beab7317920c2c2f1d777df8d05e5527d8458fda57cb17a7a");
        fs::create_dir_all(&meta).unwrap();
        fs::write(
            meta.join("meta.json"),
            r#"{"Name":"remote","Endpoints":{"docker":{"Host":"ssh://me@far"}}}"#,
        )
        .unwrap();
        let config = folder.path().display().to_string();
        let look = |context: Option<&'static str>| {
            chosen(&|name| match name {
                "DOCKER_CONFIG" => Some(config.clone()),
                "DOCKER_CONTEXT" => context.map(str::to_owned),
                _ => None,
            })
        };
        assert_eq!(look(None), Ok(None));
        assert_eq!(look(Some("default")), Ok(None));
        assert_eq!(look(Some("remote")), Ok(Some("ssh://me@far".to_owned())));
        assert!(look(Some("absent")).is_err());

        fs::write(
            folder.path().join("config.json"),
            r#"{"currentContext":"remote"}"#,
        )
        .unwrap();
        assert_eq!(look(None), Ok(Some("ssh://me@far".to_owned())));
    }
}
