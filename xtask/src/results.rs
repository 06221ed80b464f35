//! What nextest wrote down about a run.

use std::fs;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::machine;

/// One run of the tests, as its JUnit file tells it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Results {
    pub(crate) tests: u64,
    pub(crate) failed: u64,
    /// `name: why`, from the lines a test prints when it cannot do its work here.
    pub(crate) skips: Vec<String>,
}

impl Results {
    /// Forgets an earlier run, so that a run that never came to tests is not mistaken for it.
    pub(crate) fn forget(profile: &str) -> Result<(), Failure> {
        let file = file(profile);
        match fs::remove_file(&file) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::file(format!("remove {}", file.display()))(why))
            }
            _ => Ok(()),
        }
    }

    /// Absent when the tests did not even build.
    pub(crate) fn read(profile: &str) -> Option<Self> {
        fs::read_to_string(file(profile))
            .ok()
            .map(|text| parse(&text))
    }
}

fn file(profile: &str) -> PathBuf {
    machine::target()
        .join("nextest")
        .join(profile)
        .join("junit.xml")
}

fn parse(junit: &str) -> Results {
    let head = junit
        .find("<testsuites ")
        .and_then(|start| junit[start..].split('>').next())
        .unwrap_or_default();
    let mut skips: Vec<_> = junit.split(['>', '\n']).filter_map(skip).collect();
    skips.sort();
    skips.dedup();
    Results {
        tests: number(head, "tests"),
        failed: number(head, "failures") + number(head, "errors"),
        skips,
    }
}

fn number(head: &str, key: &str) -> u64 {
    head.split_once(&format!(" {key}=\""))
        .and_then(|(_, rest)| rest.split('"').next()?.parse().ok())
        .unwrap_or(0)
}

/// A line of text between two tags. A `>` or `<` that a test printed is escaped by now.
fn skip(piece: &str) -> Option<String> {
    let said = piece.strip_prefix("SKIP: ")?.split('<').next()?;
    let plain = said
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&");
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" failures="1" errors="1" uuid="x" time="0.1">
  <testsuite name="native" tests="2" disabled="0" errors="0" failures="0">
    <testcase name="a"><system-err>SKIP: a: no cgroup &lt;v2&gt; &amp; no v1</system-err></testcase>
    <testcase name="b"><system-err>first
SKIP: b: no sshd
last</system-err></testcase>
    <testcase name="c"><system-out>a line about SKIP: is none</system-out></testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn skips_and_counts_are_read() {
        assert_eq!(
            parse(JUNIT),
            Results {
                tests: 5,
                failed: 2,
                skips: vec![
                    "a: no cgroup <v2> & no v1".to_owned(),
                    "b: no sshd".to_owned(),
                ],
            }
        );
    }
}
