//! What the last words of npm or pip mean for the person who waits.

use std::io;

use thiserror::Error;

/// The reason why a package could not be fetched.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("npm is not on this machine")]
    NoNpm,
    #[error("pip is not on this machine")]
    NoPip,
    #[error("pip does not say for which Python it fetches: {said}")]
    NoPython { said: String },
    #[error("npm or pip cannot be started")]
    Start(#[source] io::Error),
    #[error("the disk is full")]
    DiskFull,
    #[error("what the registry sent is not what this version of hermetic was made for: {package}")]
    Checksum { package: String },
    #[error("there is no {package}@{version} in the registry")]
    NoSuchVersion { package: String, version: String },
    #[error("the registry cannot be reached: {said}")]
    Network { said: String },
    #[error("fetching took longer than {minutes} minutes")]
    TooSlow { minutes: u64 },
    #[error("fetching failed: {said}")]
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
            Self::NoPip => {
                "install it: `apt install python3-pip`, `dnf install python3-pip` or `apk add py3-pip`; it is \
                 needed for installing and for nothing else"
            }
            Self::NoPython { .. } => "see whether `pip3 --version` works",
            Self::Start(_) => "see whether `npm --version` and `pip3 --version` work",
            Self::DiskFull => "make room where the home is, and try again; nothing half was kept",
            Self::Checksum { .. } => {
                "do not use it; try again later or from another registry (`npm config get registry`, `pip config list`)"
            }
            Self::NoSuchVersion { .. } => {
                "leave --version out, or see `npm view` or `pip index versions` for the versions; of PyPI it may be \
                 that there is none for the Python of this machine"
            }
            Self::Network { .. } => {
                "check the network and the registry (`npm config get registry`, `pip config list`); a proxy is taken from \
                 HTTPS_PROXY"
            }
            Self::TooSlow { .. } => "try again; a nearer registry may help",
            Self::Failed { .. } => {
                "see whether the same package can be fetched by npm or pip alone"
            }
        }
    }

    pub(crate) fn of(said: &str, package: &str, version: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let last = || {
            let is_error = |line: &&str| line.contains("npm error") || line.starts_with("ERROR:");
            let told: Vec<_> = said
                .lines()
                .filter(is_error)
                .map(|line| {
                    line.trim_start_matches("npm error")
                        .trim_start_matches("ERROR:")
                        .trim()
                })
                .filter(|line| !line.is_empty() && !line.starts_with("A complete log"))
                .take(3)
                .collect();
            let told = match told.is_empty() {
                true => "it said nothing".to_owned(),
                false => told.join("; "),
            };
            told.chars().filter(|c| !c.is_control()).take(300).collect()
        };
        if has(&["ENOSPC", "no space left", "No space left", "EDQUOT"]) {
            Self::DiskFull
        } else if has(&["EINTEGRITY", "DO NOT MATCH THE HASHES"]) {
            Self::Checksum {
                package: format!("{package}@{version}"),
            }
        } else if has(&["ETARGET", "E404", "notarget"])
            || has(&["No matching distribution found"]) && !has(&["Retrying (", "connection"])
        {
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
            "Retrying (",
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
    fn last_words_become_reasons() {
        let of = |said: &str| FetchError::of(said, "pack", "1.0.0").to_string();
        assert_eq!(of("npm error code ENOSPC"), "the disk is full");
        assert!(of("npm error code EINTEGRITY").contains("pack@1.0.0"));
        assert!(of("npm error code ETARGET").contains("no pack@1.0.0"));
        assert!(of("npm error code ECONNREFUSED\nnpm error errno x").contains("errno x"));
        assert_eq!(of(""), "fetching failed: it said nothing");
        assert!(of("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM").contains("pack@1.0.0"));
        let none = "ERROR: No matching distribution found for pack==1.0.0";
        assert!(of(none).contains("no pack@1.0.0"));
        let off = format!("WARNING: Retrying (Retry(total=0)) after connection broken\n{none}");
        assert!(of(&off).contains("cannot be reached"), "{}", of(&off));
        assert!(of(&format!("npm error {}", "x".repeat(9999))).len() < 400);
    }
}
