//! The command line.

use crate::failure::Failure;
use crate::needs::Part;

pub(crate) const HELP: &str = "\
The project's chores.

  cargo xtask test [--with PART]... [--without PART]... [--no-install] [--no-plain-user]
                   [-- NEXTEST ARGUMENTS]
      Installs what the tests need and does not find, starts it, runs every test, and says what
      was skipped and why. As root it runs them twice: as root, then as a plain user.
      Parts: docker, podman, ssh, singularity, squid, node, browser. A crate asks for one in its manifest:
          [package.metadata.tests]
          needs = [\"docker\"]
  cargo xtask check
      Formatting, lints, cargo-deny and the dependency arrows.
  cargo xtask bench [-- BENCH ARGUMENTS]
      Runs every bench there is.
  cargo xtask docker [-- COMMAND...]
      Starts an engine of its own with the test image, runs COMMAND with DOCKER_HOST set and
      stops the engine. Without COMMAND it waits for the end of its input.
  cargo xtask fuzz [--seconds N] [TARGET...]
      Every fuzz target for ten minutes, or N seconds, as many at once as there are processors.
      What was learnt is kept under target/ for the next run; a finding is a failure.
  cargo xtask build-times
      Measures a clean release build.";

#[derive(Debug, PartialEq)]
pub(crate) enum Chore {
    Test(TestOptions),
    Check,
    Bench { rest: Vec<String> },
    Docker { command: Vec<String> },
    Fuzz(FuzzOptions),
    BuildTimes,
    Help,
}

#[derive(Debug, PartialEq)]
pub(crate) struct FuzzOptions {
    /// For each target.
    pub(crate) seconds: u64,
    /// All if none is named.
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestOptions {
    pub(crate) with: Vec<Part>,
    pub(crate) without: Vec<Part>,
    pub(crate) no_install: bool,
    pub(crate) no_plain_user: bool,
    /// Handed to nextest as they are.
    pub(crate) rest: Vec<String>,
}

impl Chore {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let Some(chore) = words.next() else {
            return Ok(Self::Help);
        };
        match chore.as_str() {
            "test" => TestOptions::parse(words).map(Self::Test),
            "check" => nothing_more(words).map(|()| Self::Check),
            "bench" => Ok(Self::Bench {
                rest: after_dashes(words)?,
            }),
            "docker" => Ok(Self::Docker {
                command: after_dashes(words)?,
            }),
            "fuzz" => FuzzOptions::parse(words).map(Self::Fuzz),
            "build-times" => nothing_more(words).map(|()| Self::BuildTimes),
            "help" | "--help" | "-h" => Ok(Self::Help),
            _ => Err(Failure::Usage(format!("no chore is called {chore:?}"))),
        }
    }
}

impl FuzzOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            seconds: 600,
            targets: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    options.seconds = number.filter(|seconds| *seconds > 0).ok_or_else(|| {
                        Failure::Usage("--seconds takes a number above zero".to_owned())
                    })?;
                }
                word if word.starts_with('-') => {
                    return Err(Failure::Usage(format!("unknown word {word:?}")));
                }
                _ => options.targets.push(word),
            }
        }
        Ok(options)
    }
}

impl TestOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--with" => options.with.push(part(words.next())?),
                "--without" => options.without.push(part(words.next())?),
                "--no-install" => options.no_install = true,
                "--no-plain-user" => options.no_plain_user = true,
                "--" => options.rest.extend(words.by_ref()),
                _ => return Err(Failure::Usage(format!("unknown word {word:?}"))),
            }
        }
        Ok(options)
    }
}

fn part(word: Option<String>) -> Result<Part, Failure> {
    word.ok_or_else(|| Failure::Usage("a part's name is missing".to_owned()))?
        .parse()
}

fn nothing_more(mut words: impl Iterator<Item = String>) -> Result<(), Failure> {
    match words.next() {
        None => Ok(()),
        Some(word) => Err(Failure::Usage(format!("unknown word {word:?}"))),
    }
}

fn after_dashes(mut words: impl Iterator<Item = String>) -> Result<Vec<String>, Failure> {
    match words.next() {
        None => Ok(Vec::new()),
        Some(word) if word == "--" => Ok(words.collect()),
        Some(word) => Err(Failure::Usage(format!(
            "unknown word {word:?}; did you mean `-- {word}`?"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Chore, Failure> {
        Chore::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_test_line_is_read_whole() {
        let Ok(Chore::Test(options)) =
            parse("test --with docker --without ssh --no-install -- -p x --with")
        else {
            panic!("not a test chore");
        };
        assert_eq!(options.with, [Part::Docker]);
        assert_eq!(options.without, [Part::Ssh]);
        assert!(options.no_install && !options.no_plain_user);
        assert_eq!(options.rest, ["-p", "x", "--with"]);
    }

    #[test]
    fn a_word_nobody_knows_is_refused() {
        for line in [
            "tset",
            "test docker",
            "test --with",
            "test --with dokcer",
            "check all",
            "bench now",
        ] {
            assert!(
                matches!(parse(line), Err(Failure::Usage(_))),
                "{line:?} was accepted"
            );
        }
    }
}
