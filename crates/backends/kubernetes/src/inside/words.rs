//! The words of `warden pod`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

/// `--processes N --files N --settle SECONDS [--api ADDRESS:PORT]… [--accept RISK]… [--keep NAME]… -- …`;
/// what follows the dashes is for `serve`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PodWords {
    pub(super) processes: u64,
    pub(super) files: u64,
    pub(super) settle: Duration,
    pub(super) api: Vec<SocketAddr>,
    pub(super) accepted: Vec<String>,
    pub(super) keep: Vec<String>,
    pub(super) serve: Vec<OsString>,
}

impl PodWords {
    /// Nothing where a bound is missing or a word is unknown.
    pub(super) fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut processes, mut files, mut settle) = (None, None, None);
        let (mut api, mut accepted, mut keep) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let word = words.next()?;
            if word == "--" {
                break;
            }
            let value = words.next()?;
            let value = value.to_str()?;
            match word.to_str()? {
                "--processes" => processes = Some(value.parse().ok()?),
                "--files" => files = Some(value.parse().ok()?),
                "--settle" => settle = Some(Duration::from_secs(value.parse().ok()?)),
                "--api" => api.push(value.parse().ok()?),
                "--accept" => accepted.push(value.to_owned()),
                "--keep" => keep.push(value.to_owned()),
                _ => return None,
            }
        }
        Some(Self {
            processes: processes?,
            files: files?,
            settle: settle?,
            api,
            accepted,
            keep,
            serve: words.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<PodWords> {
        PodWords::parse(text.split(' ').map(OsString::from))
    }

    #[test]
    fn what_follows_the_dashes_is_for_the_warden() {
        let words = parse(
            "--processes 9 --files 8 --settle 5 --api 10.0.0.1:443 --api [fd00::1]:443 \
             --accept route --keep A -- --listen /s --tied",
        );
        let words = words.unwrap();
        assert_eq!((words.processes, words.files), (9, 8));
        assert_eq!(words.api.len(), 2);
        assert_eq!(words.accepted, ["route"]);
        assert_eq!(words.serve, ["--listen", "/s", "--tied"]);
    }

    #[test]
    fn a_pod_without_bounds_is_no_pod() {
        for text in [
            "--files 8 --settle 5 --",
            "--processes 9 --settle 5 --",
            "--processes 9 --files 8 --",
            "--processes 9 --files 8 --settle 5",
            "--processes 9 --files 8 --settle 5 --network yes --",
            "--processes 9 --files 8 --settle 5 --api host:443 --",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
