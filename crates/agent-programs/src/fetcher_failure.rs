//! What npm's last words mean for the person who waits.

use std::io;

use thiserror::Error;

/// The reason why a package could not be fetched.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("npm is not on this machine")]
    NoNpm,
    #[error("npm cannot be started")]
    Start(#[source] io::Error),
    #[error("the disk is full")]
    DiskFull,
    #[error("what the registry sent is not what this version of hermetic was made for: {package}")]
    Checksum { package: String },
    #[error("there is no {package}@{version} in the registry")]
    NoSuchVersion { package: String, version: String },
    #[error("the registry cannot be reached: {said}")]
    Network { said: String },
    #[error("npm took longer than {minutes} minutes")]
    TooSlow { minutes: u64 },
    #[error("npm failed: {said}")]
    Failed { said: String },
}

impl FetchError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoNpm => {
                "install it: `apt install npm`, `dnf install nodejs-npm` or `apk add npm`; it is needed for \
                 installing and for nothing else"
            }
            Self::Start(_) => "see whether `npm --version` works",
            Self::DiskFull => "make room where the home is, and try again; nothing half was kept",
            Self::Checksum { .. } => {
                "do not use it; try again later or from another registry (`npm config get registry`)"
            }
            Self::NoSuchVersion { .. } => "leave --version out, or see `npm view` for the versions",
            Self::Network { .. } => {
                "check the network and `npm config get registry`; a proxy is taken from HTTPS_PROXY"
            }
            Self::TooSlow { .. } => "try again; a nearer registry may help",
            Self::Failed { .. } => "see whether the same package can be fetched by npm alone",
        }
    }

    pub(crate) fn of(said: &str, package: &str, version: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let last = || {
            let lines = said.lines().filter(|line| line.contains("npm error"));
            let told: Vec<_> = lines
                .map(|line| line.trim_start_matches("npm error").trim())
                .filter(|line| !line.is_empty() && !line.starts_with("A complete log"))
                .take(3)
                .collect();
            let told = match told.is_empty() {
                true => "it said nothing".to_owned(),
                false => told.join("; "),
            };
            told.chars().filter(|c| !c.is_control()).take(300).collect()
        };
        if has(&["ENOSPC", "no space left", "EDQUOT"]) {
            Self::DiskFull
        } else if has(&["EINTEGRITY"]) {
            Self::Checksum {
                package: format!("{package}@{version}"),
            }
        } else if has(&["ETARGET", "E404", "notarget"]) {
            Self::NoSuchVersion {
                package: package.to_owned(),
                version: version.to_owned(),
            }
        } else if has(&[
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ECONNRESET",
            "ETIMEDOUT",
            "ERR_SOCKET_TIMEOUT",
        ]) {
            Self::Network { said: last() }
        } else {
            Self::Failed { said: last() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npms_words_become_reasons() {
        let of = |said: &str| FetchError::of(said, "pack", "1.0.0").to_string();
        assert_eq!(of("npm error code ENOSPC"), "the disk is full");
        assert!(of("npm error code EINTEGRITY").contains("pack@1.0.0"));
        assert!(of("npm error code ETARGET").contains("no pack@1.0.0"));
        assert!(of("npm error code ECONNREFUSED\nnpm error errno x").contains("errno x"));
        assert_eq!(of(""), "npm failed: it said nothing");
        assert!(of(&format!("npm error {}", "x".repeat(9999))).len() < 400);
    }
}
