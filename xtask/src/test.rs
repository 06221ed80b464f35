//! Every test, on a machine where nothing was prepared.

use std::process::Command;

use crate::arguments::TestOptions;
use crate::cargo_tools::NEXTEST;
use crate::docker::DockerLab;
use crate::failure::ChoreFailure;
use crate::members::WorkspaceMember;
use crate::needs::{LackingNeed, NeedGroup};
use crate::plain_user::PlainUser;
use crate::results::{TestResults, tried_by_nobody};
use crate::singularity::SingularityLab;
use crate::synapse::SynapseLab;
use crate::{doctests, fuzz, machine, members, needs, program, say, time_table};

pub(crate) fn run(options: &TestOptions) -> Result<(), ChoreFailure> {
    let root = machine::is_root();
    let members = members::all()?;
    let mut report = TestReport::default();

    say::step("What the tests need from this machine");
    let parts = needs::wanted(&members, options)?;
    let lacking = needs::provide(&parts, root && !options.no_install);
    NEXTEST.provide()?;
    let docker = docker(&parts, &lacking, &mut report);
    let may_install = root && !options.no_install;
    let homeserver = synapse(&parts, &lacking, options, &mut report);
    let parts = LabParts {
        docker,
        synapse: homeserver,
        singularity: singularity(&parts, &lacking, may_install, &mut report),
    };
    report.not_set_up(lacking);

    let profile = match root {
        // Tests that were named, and long runs, are for both users whole.
        true if options.rest.is_empty() && !options.no_plain_user && !options.long => "root",
        _ => "default",
    };
    say::step(match profile {
        "root" => "What root's rights change, as root",
        _ => "Every test",
    });
    let who = if root { "as root" } else { "as this user" };
    report.take(who, profile, nextest(profile, options, &parts, None)?);

    if root && !options.no_plain_user {
        say::step("Every test, as a plain user");
        match PlainUser::new()? {
            Ok(user) => {
                let outcome = nextest("plain-user", options, &parts, Some(&user))?;
                report.take("as a plain user", "plain-user", outcome);
            }
            Err(why) => report
                .missing
                .push(format!("the run as a plain user: {why}")),
        }
    } else if root {
        report
            .missing
            .push("the run as a plain user: --no-plain-user was given".to_owned());
    } else {
        report
            .missing
            .push("the run as root: started as a plain user".to_owned());
    }

    examples(&members, options, &mut report)?;
    encrypted_rooms(options, &parts, &mut report);
    fuzz_targets(options, &mut report);
    drop(parts);
    report.end()
}

/// The engine with its image, where wanted. Without it the tests that want it skip.
fn docker(
    parts: &[NeedGroup],
    lacking: &[LackingNeed],
    report: &mut TestReport,
) -> Option<DockerLab> {
    if !parts.contains(&NeedGroup::Docker)
        || lacking.iter().any(|one| one.part == NeedGroup::Docker)
    {
        return None;
    }
    match DockerLab::start() {
        Ok(docker) => Some(docker),
        Err(why) => {
            say::note(&format!("{why}"));
            report.missing.push(format!("a Docker engine: {why}"));
            None
        }
    }
}

/// The runtime with its image, likewise.
fn singularity(
    parts: &[NeedGroup],
    lacking: &[LackingNeed],
    may_install: bool,
    report: &mut TestReport,
) -> Option<SingularityLab> {
    if !parts.contains(&NeedGroup::Singularity)
        || lacking.iter().any(|one| one.part == NeedGroup::Singularity)
    {
        return None;
    }
    match SingularityLab::provide(may_install) {
        Ok(singularity) => Some(singularity),
        Err(why) => {
            say::note(&format!("{why}"));
            report.missing.push(format!("Apptainer: {why}"));
            None
        }
    }
}

/// A homeserver, where one is wanted by tests that run.
fn synapse(
    parts: &[NeedGroup],
    lacking: &[LackingNeed],
    options: &TestOptions,
    report: &mut TestReport,
) -> Option<SynapseLab> {
    let rest = &options.rest;
    let concerns = |word: &String| word.contains("matrix") || word.contains("hermetic-app");
    let is_wanted = parts.contains(&NeedGroup::Synapse)
        && !lacking.iter().any(|one| one.part == NeedGroup::Synapse);
    if !is_wanted || names_packages(rest) && !rest.iter().any(concerns) {
        return None;
    }
    match SynapseLab::start() {
        Ok(synapse) => Some(synapse),
        Err(why) => {
            say::note(&format!("{why}"));
            report.missing.push(format!("a Matrix homeserver: {why}"));
            None
        }
    }
}

/// What was set up for tests, where it could be.
struct LabParts {
    docker: Option<DockerLab>,
    synapse: Option<SynapseLab>,
    singularity: Option<SingularityLab>,
}

type ChoreOutcome = Result<(), ChoreFailure>;

fn nextest(
    profile: &str,
    options: &TestOptions,
    parts: &LabParts,
    user: Option<&PlainUser>,
) -> Result<ChoreOutcome, ChoreFailure> {
    TestResults::forget(profile)?;
    let mut command = machine::cargo();
    command.args(["nextest", "run", "--profile", profile]);
    if !names_packages(&options.rest) {
        command.arg("--workspace");
    }
    if options.long {
        command.env("HERMETIC_LONG", "1");
    }
    if let Some(docker) = &parts.docker {
        docker.tell(&mut command);
    }
    if let Some(singularity) = &parts.singularity {
        singularity.tell(&mut command);
    }
    if let Some(synapse) = &parts.synapse {
        synapse.tell(&mut command);
    }
    if let Some(user) = user {
        // A chosen few may all be root's.
        user.tell(command.arg("--no-tests=pass"));
    }
    command.args(&options.rest);
    Ok(program::show(&mut command))
}

fn names_packages(rest: &[String]) -> bool {
    rest.iter()
        .any(|word| word.starts_with("-p") || word.starts_with("--package"))
}

/// Nextest leaves examples in documentation to cargo.
fn examples(
    members: &[WorkspaceMember],
    options: &TestOptions,
    report: &mut TestReport,
) -> Result<(), ChoreFailure> {
    let with_examples = doctests::packages(members)?;
    if with_examples.is_empty() || !options.rest.is_empty() {
        return Ok(());
    }
    say::step("Examples in the documentation");
    let mut command: Command = machine::cargo();
    command.args(["test", "--doc"]);
    for package in with_examples {
        command.args(["--package", package]);
    }
    if let Err(why) = program::show(&mut command) {
        report.bad.push(why.to_string());
    }
    Ok(())
}

/// Encrypted rooms are in no default build, so that nobody builds what they need but here: the platform's own
/// tests, and a whole gateway's.
fn encrypted_rooms(options: &TestOptions, parts: &LabParts, report: &mut TestReport) {
    if !options.long || !options.rest.is_empty() {
        return;
    }
    say::step("Encrypted rooms of Matrix");
    let platform = ["--package", "hermetic-matrix", "--features", "e2ee"];
    let gateway = ["--package", "hermetic-app", "--features", "matrix-e2ee"];
    let mut lints = machine::cargo();
    lints
        .arg("clippy")
        .args(platform)
        .args(["--all-targets", "--locked"]);
    lints.args(["--", "--deny", "warnings"]);
    let mut of_platform = machine::cargo();
    of_platform.args(["nextest", "run"]).args(platform);
    let mut of_gateway = machine::cargo();
    of_gateway.args(["nextest", "run"]).args(gateway);
    of_gateway.arg("sealed_matrix::");
    for tests in [&mut of_platform, &mut of_gateway] {
        if let Some(synapse) = &parts.synapse {
            synapse.tell(tests);
        }
    }
    for mut command in [lints, of_platform, of_gateway] {
        if let Err(why) = program::show(&mut command) {
            report.bad.push(why.to_string());
        }
    }
}

/// That they compile, not that they find nothing: that takes hours (`cargo xtask fuzz`).
fn fuzz_targets(options: &TestOptions, report: &mut TestReport) {
    if !options.long || !options.rest.is_empty() {
        return;
    }
    say::step("Fuzz targets, whether they compile");
    if let Err(why) = fuzz::check() {
        report.bad.push(why.to_string());
    }
}

/// The last thing a person reads.
#[derive(Default)]
struct TestReport {
    counts: Vec<String>,
    longest: Vec<String>,
    skips: Vec<String>,
    missing: Vec<String>,
    failed: Vec<String>,
    bad: Vec<String>,
    runs: Vec<TestResults>,
}

impl TestReport {
    fn not_set_up(&mut self, lacking: Vec<LackingNeed>) {
        self.missing.extend(lacking.into_iter().map(|one| one.text));
    }

    fn take(&mut self, who: &str, profile: &str, outcome: ChoreOutcome) {
        let results = TestResults::read(profile);
        match &results {
            Some(results) => self.counts.push(format!(
                "{who}: {} tests, {} failed, {} skipped themselves",
                results.tests,
                results.failed.len(),
                results.skips.len()
            )),
            None => self.counts.push(format!("{who}: no test came to run")),
        }
        let results = results.unwrap_or_default();
        let longest = time_table::lines(&results.times).into_iter();
        self.longest
            .extend(longest.map(|line| format!("{line} ({who})")));
        let named = |line: &String| format!("{line} ({who})");
        self.skips.extend(results.skips.iter().map(named));
        self.failed.extend(results.failed.iter().map(named));
        self.runs.push(results);
        if let Err(why) = outcome {
            self.bad.push(format!("{who}: {why}"));
        }
    }

    fn end(self) -> Result<(), ChoreFailure> {
        say::step("Summary");
        for count in &self.counts {
            say::note(count);
        }
        list("What took longest, several at once:", &self.longest);
        list("Skipped, and why:", &self.skips);
        let untried: Vec<_> = tried_by_nobody(&self.runs)
            .into_iter()
            .map(|one| format!("{} ({})", one.test, one.why))
            .collect();
        list("Tried by neither user, or not whole:", &untried);
        list("Not here, so not tested:", &self.missing);
        list("Failed:", &self.failed);
        if self.bad.is_empty() {
            say::end("All tests that could run here passed.");
            Ok(())
        } else {
            Err(ChoreFailure::Bad(self.bad))
        }
    }
}

fn list(title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    say::note(title);
    for line in lines {
        say::note(&format!("  {line}"));
    }
}
