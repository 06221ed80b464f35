//! The command line.

use crate::dist::{DistProfile, DistTarget};
use crate::failure::ChoreFailure;
use crate::needs::NeedGroup;

pub(crate) const HELP: &str = "\
The project's chores.

  cargo xtask test [--with PART]... [--without PART]... [--no-install] [--no-plain-user]
                   [--long] [-- NEXTEST ARGUMENTS]
      Installs what the tests need and does not find, starts it, runs every test, and says what
      was skipped and why. As root it runs every test as a plain user, and as root what root's
      rights change; tests that are named run as both.
      --long gives tests that have a long form some minutes each, as the soak has, runs
      everything as both users, tests encrypted rooms of Matrix, which take a build of their own,
      and compiles the fuzz targets.
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
      Measures a clean release build.
  cargo xtask dist [--target MACHINE]... [--profile release|dev] [--no-image] [--check]
      Makes what is released into target/dist: program, archive, package, container image, what it
      is made of, and the sums. The program runs on Debian 11, Ubuntu 20.04 and everything later.
      Machines: x86_64, aarch64; without one, this machine's own. Where the Rust in use has no standard
      library for one, root on a Debian fetches Debian's compiler for it into target/.
      --check also tries it (root only): archive and package are installed, used, removed and purged
      in clean systems, the container image is loaded, used and removed in an engine.
      --profile dev packs a debug build, to try the packing.
  cargo xtask pictures [PROGRAM]
      Makes the pictures of the documentation from what the program says here and now: one that is
      named, or one that is built for it.
  cargo xtask vm [--machine NAME]... [--only STORY]... [--cuts NUMBER] [--release | --packed]
                 [--no-build] [--no-install] [--by-hand]
      Makes machines (once; kept under target/vm), boots them in emulation and runs there what only
      a real machine shows. Takes an hour each on a processor of its own; a single story, minutes.
      Beside other work, start it with `nice -n -5`.
      Machines: debian-12, debian-13, ubuntu-22.04, debian-13-arm64; without one, all of them.
      Stories: doctor, exec, limits, login, stall, attack, contract, units, oom, restart, power.
      --cuts says how often the power is cut (20). --no-build takes the programs that are there;
      --packed the program that `cargo xtask dist` packed.
      --by-hand boots one, says how to get in, and waits for the end of its input.";

#[derive(Debug, PartialEq)]
pub(crate) enum XtaskChore {
    Test(TestOptions),
    Check,
    Bench { rest: Vec<String> },
    Docker { command: Vec<String> },
    Fuzz(FuzzOptions),
    BuildTimes,
    Vm(VmOptions),
    Dist(DistOptions),
    Pictures { program: Option<String> },
    Help,
}

#[derive(Debug, PartialEq)]
pub(crate) struct FuzzOptions {
    /// For each target.
    pub(crate) seconds: u64,
    /// All if none is named.
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct VmOptions {
    /// Releases by name; all that are known if none is named.
    pub(crate) machines: Vec<String>,
    /// Stories by name, likewise.
    pub(crate) only: Vec<String>,
    pub(crate) cuts: u32,
    pub(crate) release: bool,
    /// The program that was packed for a release, whatever the others are.
    pub(crate) packed: bool,
    pub(crate) no_build: bool,
    pub(crate) no_install: bool,
    pub(crate) by_hand: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct DistOptions {
    /// This machine's own kind if none is named.
    pub(crate) targets: Vec<DistTarget>,
    pub(crate) profile: DistProfile,
    pub(crate) no_image: bool,
    /// Install and remove the package in clean systems.
    pub(crate) check: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestOptions {
    pub(crate) with: Vec<NeedGroup>,
    pub(crate) without: Vec<NeedGroup>,
    pub(crate) no_install: bool,
    pub(crate) no_plain_user: bool,
    /// Tests that have a long form run it.
    pub(crate) long: bool,
    /// Handed to nextest as they are.
    pub(crate) rest: Vec<String>,
}

impl XtaskChore {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, ChoreFailure> {
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
            "vm" => VmOptions::parse(words).map(Self::Vm),
            "dist" => DistOptions::parse(words).map(Self::Dist),
            "pictures" => {
                let program = words.next();
                nothing_more(words).map(|()| Self::Pictures { program })
            }
            "help" | "--help" | "-h" => Ok(Self::Help),
            _ => Err(ChoreFailure::Usage(format!("no chore is called {chore:?}"))),
        }
    }
}

impl FuzzOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, ChoreFailure> {
        let mut options = Self {
            seconds: 600,
            targets: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    options.seconds = number.filter(|seconds| *seconds > 0).ok_or_else(|| {
                        ChoreFailure::Usage("--seconds takes a number above zero".to_owned())
                    })?;
                }
                word if word.starts_with('-') => {
                    return Err(ChoreFailure::Usage(format!("unknown word {word:?}")));
                }
                _ => options.targets.push(word),
            }
        }
        Ok(options)
    }
}

impl TestOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, ChoreFailure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--with" => options.with.push(part(words.next())?),
                "--without" => options.without.push(part(words.next())?),
                "--no-install" => options.no_install = true,
                "--no-plain-user" => options.no_plain_user = true,
                "--long" => options.long = true,
                "--" => options.rest.extend(words.by_ref()),
                _ => return Err(ChoreFailure::Usage(format!("unknown word {word:?}"))),
            }
        }
        Ok(options)
    }
}

impl VmOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, ChoreFailure> {
        let mut options = Self {
            machines: Vec::new(),
            only: Vec::new(),
            cuts: 20,
            release: false,
            packed: false,
            no_build: false,
            no_install: false,
            by_hand: false,
        };
        let value = |word: Option<String>, of: &str| {
            word.ok_or_else(|| ChoreFailure::Usage(format!("the value of {of} is missing")))
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--machine" => options.machines.push(value(words.next(), "--machine")?),
                "--only" => options.only.push(value(words.next(), "--only")?),
                "--cuts" => {
                    let cuts = value(words.next(), "--cuts")?;
                    let number = cuts.parse().ok().filter(|cuts| *cuts <= 1000);
                    options.cuts = number.ok_or_else(|| {
                        ChoreFailure::Usage(format!("{cuts:?} is no number of cuts up to 1000"))
                    })?;
                }
                "--release" => options.release = true,
                "--packed" => options.packed = true,
                "--no-build" => options.no_build = true,
                "--no-install" => options.no_install = true,
                "--by-hand" => options.by_hand = true,
                _ => return Err(ChoreFailure::Usage(format!("unknown word {word:?}"))),
            }
        }
        Ok(options)
    }
}

impl DistOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, ChoreFailure> {
        let mut options = Self {
            targets: Vec::new(),
            profile: DistProfile::Release,
            no_image: false,
            check: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--target" => {
                    let name = words.next().unwrap_or_default();
                    options.targets.push(name.parse()?);
                }
                "--profile" => {
                    options.profile = match words.next().as_deref() {
                        Some("release") => DistProfile::Release,
                        Some("dev") => DistProfile::Dev,
                        _ => {
                            let known = "--profile takes release or dev";
                            return Err(ChoreFailure::Usage(known.to_owned()));
                        }
                    };
                }
                "--no-image" => options.no_image = true,
                "--check" => options.check = true,
                _ => return Err(ChoreFailure::Usage(format!("unknown word {word:?}"))),
            }
        }
        Ok(options)
    }
}

fn part(word: Option<String>) -> Result<NeedGroup, ChoreFailure> {
    word.ok_or_else(|| ChoreFailure::Usage("a part's name is missing".to_owned()))?
        .parse()
}

fn nothing_more(mut words: impl Iterator<Item = String>) -> Result<(), ChoreFailure> {
    match words.next() {
        None => Ok(()),
        Some(word) => Err(ChoreFailure::Usage(format!("unknown word {word:?}"))),
    }
}

fn after_dashes(mut words: impl Iterator<Item = String>) -> Result<Vec<String>, ChoreFailure> {
    match words.next() {
        None => Ok(Vec::new()),
        Some(word) if word == "--" => Ok(words.collect()),
        Some(word) => Err(ChoreFailure::Usage(format!(
            "unknown word {word:?}; did you mean `-- {word}`?"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<XtaskChore, ChoreFailure> {
        XtaskChore::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_test_line_is_read_whole() {
        let Ok(XtaskChore::Test(options)) =
            parse("test --with docker --without ssh --no-install --long -- -p x --with")
        else {
            panic!("not a test chore");
        };
        assert_eq!(options.with, [NeedGroup::Docker]);
        assert_eq!(options.without, [NeedGroup::Ssh]);
        assert!(options.no_install && !options.no_plain_user && options.long);
        assert_eq!(options.rest, ["-p", "x", "--with"]);
    }

    #[test]
    fn a_machine_and_a_story_can_be_chosen() {
        let Ok(XtaskChore::Vm(options)) =
            parse("vm --machine debian-12 --only restart --only oom --cuts 3 --no-build")
        else {
            panic!("not a machine chore");
        };
        assert_eq!(options.machines, ["debian-12"]);
        assert_eq!(options.only, ["restart", "oom"]);
        assert!(options.cuts == 3 && options.no_build && !options.release);
    }

    #[test]
    fn a_release_may_be_for_another_machine() {
        let Ok(XtaskChore::Dist(options)) =
            parse("dist --target aarch64 --target amd64 --profile dev --check")
        else {
            panic!("not a release");
        };
        assert_eq!(options.targets, [DistTarget::Aarch64, DistTarget::X86_64]);
        assert!(options.profile == DistProfile::Dev && options.check && !options.no_image);
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
            "vm 12",
            "vm --machine",
            "vm --cuts many",
            "vm --cuts 100000",
            "dist --target",
            "dist --target riscv64",
            "dist --profile debug",
            "dist now",
        ] {
            assert!(
                matches!(parse(line), Err(ChoreFailure::Usage(_))),
                "{line:?} was accepted"
            );
        }
    }
}
