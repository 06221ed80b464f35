//! Who we are to Modal: two variables, or a profile of the file that Modal's own client writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hermetic_types::Secret;
use serde::Deserialize;
use thiserror::Error;

#[derive(Clone, Debug)]
pub struct ModalCredentials {
    pub token_id: Secret,
    pub token_secret: Secret,
    /// Modal's own, comma-separated in order of preference, where absent.
    pub server_url: Option<String>,
    /// The workspace's default environment where absent.
    pub environment: Option<String>,
}

#[derive(Debug, Error)]
pub enum CredentialsError {
    #[error("there is no Modal token")]
    Missing,
    #[error("{} has no profile {profile:?}", path.display())]
    NoSuchProfile { path: PathBuf, profile: String },
    #[error("more than one profile of {} is active", path.display())]
    ManyActive { path: PathBuf },
    #[error("{} is no list of Modal profiles: {why}", path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("cannot read {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A profile is two short texts; a file of a megabyte is something else.
const LONGEST_PROFILE_FILE: u64 = 1 << 20;

#[derive(Clone, Debug, Default, Deserialize)]
struct ModalProfile {
    token_id: Option<Secret>,
    token_secret: Option<Secret>,
    server_url: Option<String>,
    environment: Option<String>,
    #[serde(default)]
    active: bool,
}

impl ModalCredentials {
    /// From variables, by the names Modal's own client has for them, and what they leave open from
    /// the file.
    pub fn find(
        variable: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, CredentialsError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = variable("MODAL_CONFIG_PATH")
            .map(PathBuf::from)
            .or_else(|| Some(home?.join(".modal.toml")));
        let wanted = variable("MODAL_PROFILE");
        let spoken = variable("MODAL_TOKEN_ID").zip(variable("MODAL_TOKEN_SECRET"));
        let profile = match path.as_deref().map(|path| read(path, wanted.as_deref())) {
            // Who says everything himself needs no file.
            Some(Err(_)) | None if spoken.is_some() => ModalProfile::default(),
            Some(profile) => profile?,
            None => ModalProfile::default(),
        };
        let written = profile.token_id.zip(profile.token_secret);
        let spoken = spoken.map(|(id, secret)| (Secret::new(id), Secret::new(secret)));
        let (token_id, token_secret) = spoken
            .or(written)
            .filter(|(id, secret)| !id.is_empty() && !secret.is_empty())
            .ok_or(CredentialsError::Missing)?;
        Ok(Self {
            token_id,
            token_secret,
            server_url: variable("MODAL_SERVER_URL").or(profile.server_url),
            environment: variable("MODAL_ENVIRONMENT").or(profile.environment),
        })
    }
}

impl CredentialsError {
    /// The line a person reads next.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Missing => {
                "set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or write ~/.modal.toml with \
                 `modal token new`"
            }
            Self::NoSuchProfile { .. } => "mend MODAL_PROFILE, or unset it",
            Self::ManyActive { .. } => "choose one with `modal profile activate`",
            Self::Malformed { .. } | Self::Io { .. } => "mend the file, or move it away",
        }
    }
}

fn read(path: &Path, wanted: Option<&str>) -> Result<ModalProfile, CredentialsError> {
    let text = match fs::metadata(path).map(|about| about.len() <= LONGEST_PROFILE_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ModalProfile::default()),
        Ok(true) => fs::read_to_string(path),
        Ok(false) => Err(io::ErrorKind::FileTooLarge.into()),
        Err(error) => Err(error),
    };
    let text = text.map_err(|source| CredentialsError::Io {
        path: path.to_owned(),
        source,
    })?;
    let mut profiles: BTreeMap<String, ModalProfile> =
        toml::from_str(&text).map_err(|error| CredentialsError::Malformed {
            path: path.to_owned(),
            // Without the line itself, which may hold a secret.
            why: error.message().to_owned(),
        })?;
    if let Some(name) = wanted {
        return profiles
            .remove(name)
            .ok_or_else(|| CredentialsError::NoSuchProfile {
                path: path.to_owned(),
                profile: name.to_owned(),
            });
    }
    let mut active = profiles.values().filter(|profile| profile.active);
    let first = active.next().cloned();
    if active.next().is_some() {
        return Err(CredentialsError::ManyActive {
            path: path.to_owned(),
        });
    }
    Ok(first
        .or_else(|| profiles.remove("default"))
        .or_else(|| {
            (profiles.len() == 1)
                .then(|| profiles.pop_first())?
                .map(|one| one.1)
        })
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [work]
        token_id = "ak-work"
        token_secret = "as-work"
        active = true
        [home]
        token_id = "ak-home"
        token_secret = "as-home"
        server_url = "http://127.0.0.1:1"
        [odd]
        token_id = 5
    "#;

    fn find(file: &str, variables: &[(&str, &str)]) -> Result<ModalCredentials, CredentialsError> {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".modal.toml"), file).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        ModalCredentials::find(&variable, Some(home.path()))
    }

    #[test]
    fn the_active_profile_is_taken_and_a_named_one_instead() {
        let file = FILE.replace("token_id = 5", "");
        let found = find(&file, &[]).unwrap();
        assert_eq!(found.token_id.expose(), "ak-work");
        let found = find(&file, &[("MODAL_PROFILE", "home")]).unwrap();
        assert_eq!(found.token_secret.expose(), "as-home");
        assert_eq!(found.server_url.as_deref(), Some("http://127.0.0.1:1"));
        let missing = find(&file, &[("MODAL_PROFILE", "none")]).unwrap_err();
        assert!(matches!(missing, CredentialsError::NoSuchProfile { .. }));
    }

    #[test]
    fn variables_count_more_than_the_file_even_a_broken_one() {
        let said = [("MODAL_TOKEN_ID", "ak-1"), ("MODAL_TOKEN_SECRET", "as-1")];
        assert_eq!(find(FILE, &said).unwrap().token_id.expose(), "ak-1");
        assert_eq!(find("not toml [", &said).unwrap().token_id.expose(), "ak-1");
        // Half a token is none.
        assert!(matches!(
            find("", &said[..1]).unwrap_err(),
            CredentialsError::Missing
        ));
    }

    #[test]
    fn a_broken_file_is_named_and_its_secrets_are_not() {
        let error = find("[a]\ntoken_secret = as-hunter2\n", &[]).unwrap_err();
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{error}");
        let many = "[a]\nactive = true\n[b]\nactive = true\n";
        assert!(matches!(
            find(many, &[]).unwrap_err(),
            CredentialsError::ManyActive { .. }
        ));
    }
}
