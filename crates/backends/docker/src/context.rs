//! The context that `docker context use` chose.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::address::EngineAddressError;

/// The one that means "no context".
const DEFAULT: &str = "default";

/// Where docker's own client keeps its settings.
pub fn client_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = variable("DOCKER_CONFIG").map(PathBuf::from);
    named.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".docker")))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DockerContext {
    pub(crate) host: String,
    /// Where the context has some of its own.
    pub(crate) certificates: Option<PathBuf>,
}

/// The context that is chosen by `DOCKER_CONTEXT` or in docker's own file.
pub(crate) fn chosen(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<DockerContext>, EngineAddressError> {
    let Some(folder) = client_folder(variable) else {
        return Ok(None);
    };
    let name = variable("DOCKER_CONTEXT").or_else(|| current(&folder));
    match name {
        Some(name) if name != DEFAULT => read_context(&folder, name).map(Some),
        _ => Ok(None),
    }
}

fn current(folder: &Path) -> Option<String> {
    text(&read(&folder.join("config.json"))?, &["currentContext"])
}

/// A context's folders are the checksum of its name.
fn read_context(folder: &Path, name: String) -> Result<DockerContext, EngineAddressError> {
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let contexts = folder.join("contexts");
    let meta = read(&contexts.join("meta").join(&digest).join("meta.json")).unwrap_or_default();
    let engine = &meta["Endpoints"]["docker"];
    let Some(host) = text(engine, &["Host"]) else {
        return Err(EngineAddressError::Context { name });
    };
    // Refused and not followed: whoever stands between could hand out containers of his own.
    if engine["SkipTLSVerify"] == true {
        return Err(EngineAddressError::Unproven { name });
    }
    let certificates = contexts.join("tls").join(&digest).join("docker");
    Ok(DockerContext {
        host,
        certificates: certificates.is_dir().then_some(certificates),
    })
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
        let remote = DockerContext {
            host: "ssh://me@far".to_owned(),
            certificates: None,
        };
        assert_eq!(look(Some("remote")), Ok(Some(remote.clone())));
        assert!(look(Some("absent")).is_err());

        fs::write(
            folder.path().join("config.json"),
            r#"{"currentContext":"remote"}"#,
        )
        .unwrap();
        assert_eq!(look(None), Ok(Some(remote)));

        let own = PathBuf::from(meta.to_str().unwrap().replace("/meta/", "/tls/")).join("docker");
        fs::create_dir_all(&own).unwrap();
        assert_eq!(look(None).unwrap().unwrap().certificates, Some(own));
        fs::write(
            meta.join("meta.json"),
            r#"{"Endpoints":{"docker":{"Host":"tcp://far:1","SkipTLSVerify":true}}}"#,
        )
        .unwrap();
        assert!(matches!(
            look(None),
            Err(EngineAddressError::Unproven { .. })
        ));
    }
}
