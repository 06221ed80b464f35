//! What nextest wrote down about a run.

use std::fs;
use std::path::PathBuf;

use crate::failure::ChoreFailure;
use crate::machine;

/// One run of the tests, as its JUnit file tells it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestResults {
    pub(crate) tests: u64,
    /// Names of those that failed.
    pub(crate) failed: Vec<String>,
    /// `name: why`, from the lines a test prints when it cannot do its work here.
    pub(crate) skips: Vec<String>,
    /// Seconds of each test that ran.
    pub(crate) times: Vec<TestTime>,
    /// The tests that said at least one such line, each with the last one.
    pub(crate) skipping: Vec<SkippingTest>,
}

/// A test that could not do its work, or not all of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SkippingTest {
    /// Package, binary and name, as nextest prints them.
    pub(crate) test: String,
    pub(crate) why: String,
}

/// How long one test took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestTime {
    /// Package and binary, as nextest prints them.
    pub(crate) binary: String,
    pub(crate) name: String,
    pub(crate) seconds: f64,
}

impl TestResults {
    /// Forgets an earlier run, so that a run that never came to tests is not mistaken for it.
    pub(crate) fn forget(profile: &str) -> Result<(), ChoreFailure> {
        let file = file(profile);
        match fs::remove_file(&file) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(ChoreFailure::file(
                format!("remove {}", file.display()),
            )(why)),
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

/// Nextest writes below the source tree, wherever cargo builds.
fn file(profile: &str) -> PathBuf {
    let store = machine::root().join("target/nextest");
    store.join(profile).join("junit.xml")
}

fn parse(junit: &str) -> TestResults {
    let head = junit
        .find("<testsuites ")
        .and_then(|start| junit[start..].split('>').next())
        .unwrap_or_default();
    let mut skips: Vec<_> = junit.split(['>', '\n']).filter_map(skip).collect();
    skips.sort();
    skips.dedup();
    TestResults {
        tests: number(head, "tests"),
        failed: failed(junit),
        skips,
        times: times(junit),
        skipping: skipping(junit),
    }
}

/// What a test prints stands between its own tag and the next one's.
fn skipping(junit: &str) -> Vec<SkippingTest> {
    let cases = junit.split("<testcase ").skip(1);
    cases
        .filter_map(|case| {
            let tag = format!(" {}", case.split('>').next()?);
            let why = case.split(['>', '\n']).filter_map(skip).next_back()?;
            Some(SkippingTest {
                test: format!(
                    "{} {}",
                    attribute(&tag, "classname").unwrap_or_default(),
                    attribute(&tag, "name")?
                ),
                why,
            })
        })
        .collect()
}

/// The tests that skipped themselves in each run in which they were: nobody has tried them, or not whole.
pub(crate) fn tried_by_nobody(runs: &[TestResults]) -> Vec<SkippingTest> {
    let whole_somewhere = |one: &SkippingTest| {
        runs.iter().any(|run| {
            let was_there = |time: &TestTime| format!("{} {}", time.binary, time.name) == one.test;
            run.times.iter().any(was_there) && !run.skipping.iter().any(|it| it.test == one.test)
        })
    };
    let mut left = Vec::<SkippingTest>::new();
    for one in runs.iter().flat_map(|run| &run.skipping) {
        if !left.iter().any(|it| it.test == one.test) && !whole_somewhere(one) {
            left.push(one.clone());
        }
    }
    left
}

fn times(junit: &str) -> Vec<TestTime> {
    let cases = junit.split('<').filter(|tag| tag.starts_with("testcase "));
    cases
        .filter_map(|tag| {
            Some(TestTime {
                binary: attribute(tag, "classname")?.to_owned(),
                name: attribute(tag, "name")?.to_owned(),
                seconds: attribute(tag, "time")?.parse().ok()?,
            })
        })
        .collect()
}

fn failed(junit: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut current = String::new();
    for tag in junit.split('<').skip(1) {
        if tag.starts_with("testcase ") {
            let named = |key| attribute(tag, key).unwrap_or_default();
            current = format!("{} {}", named("classname"), named("name"));
        } else if tag.starts_with("failure") || tag.starts_with("error") {
            names.push(current.clone());
        }
    }
    names.dedup();
    names
}

fn number(tag: &str, key: &str) -> u64 {
    attribute(tag, key)
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

fn attribute<'a>(tag: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {key}=\""))?;
    rest.split('"').next()
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
<testsuites name="nextest-run" tests="4" failures="1" errors="0" uuid="x" time="0.1">
  <testsuite name="native" tests="2" disabled="0" errors="0" failures="0">
    <testcase name="a" classname="hermetic-native" time="0.1"><system-err>SKIP: a: no cgroup &lt;v2&gt; &amp; no v1</system-err></testcase>
    <testcase name="b" classname="hermetic-native" time="0.1"><system-err>first
SKIP: b: no sshd
last</system-err></testcase>
    <testcase name="d" classname="hermetic-native" timestamp="x" time="1.5"><failure type="test failure">x</failure></testcase>
    <testcase name="c"><system-out>a line about SKIP: is none</system-out></testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn skips_and_counts_are_read() {
        assert_eq!(
            parse(JUNIT),
            TestResults {
                tests: 4,
                failed: vec!["hermetic-native d".to_owned()],
                skips: vec![
                    "a: no cgroup <v2> & no v1".to_owned(),
                    "b: no sshd".to_owned(),
                ],
                times: [("a", 0.1), ("b", 0.1), ("d", 1.5)].map(time).to_vec(),
                skipping: vec![
                    skipping_test("a", "a: no cgroup <v2> & no v1"),
                    skipping_test("b", "b: no sshd"),
                ],
            }
        );
    }

    #[test]
    fn what_one_user_tried_whole_counts_as_tried() {
        let run = |names: &[&str], skipping: &[&str]| TestResults {
            times: names.iter().map(|name| time((name, 0.1))).collect(),
            skipping: skipping
                .iter()
                .map(|name| skipping_test(name, "no npm"))
                .collect(),
            ..TestResults::default()
        };
        let as_root = run(&["a", "b"], &["b"]);
        let as_a_plain_user = run(&["a", "b", "c"], &["a", "b", "c"]);
        assert_eq!(
            tried_by_nobody(&[as_root, as_a_plain_user]),
            [skipping_test("b", "no npm"), skipping_test("c", "no npm")]
        );
    }

    fn time((name, seconds): (&str, f64)) -> TestTime {
        TestTime {
            binary: "hermetic-native".to_owned(),
            name: name.to_owned(),
            seconds,
        }
    }

    fn skipping_test(name: &str, why: &str) -> SkippingTest {
        SkippingTest {
            test: format!("hermetic-native {name}"),
            why: why.to_owned(),
        }
    }
}
