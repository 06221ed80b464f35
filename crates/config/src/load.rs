//! From files and variables to one immutable [`Config`], once.

use std::path::Path;

use crate::check::{self, CheckedFile, UnknownKeys, UnusedEntry};
use crate::config::{Config, UnusedKey};
use crate::dotenv;
use crate::effective::{EffectiveSetting, SettingSources, doubled};
use crate::exposure;
use crate::home::HomeFolder;
use crate::inputs::ConfigInputs;
use crate::nearest::nearest;
use crate::problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
use crate::schema::SCHEMA;
use crate::settings;
use crate::source::SourceFile;
use crate::tree;
use crate::wording;

/// Reads everything and reports every error it finds, in the order of the files.
///
/// Nothing is half taken: with one error there is no configuration.
pub fn load(inputs: &ConfigInputs) -> Result<Config, ConfigProblems> {
    let mut problems = Vec::new();
    let dotenv = source(&inputs.home.dotenv_file(), &mut problems);
    settle(inputs, dotenv.as_ref(), problems)
}

/// The same with this text for `.env`, before it is written there.
pub fn load_with_dotenv(inputs: &ConfigInputs, text: &str) -> Result<Config, ConfigProblems> {
    let dotenv = SourceFile::new(inputs.home.dotenv_file(), text);
    settle(inputs, Some(&dotenv), Vec::new())
}

fn settle(
    inputs: &ConfigInputs,
    dotenv: Option<&SourceFile>,
    mut problems: Vec<ConfigProblem>,
) -> Result<Config, ConfigProblems> {
    let home = &inputs.home;
    refuse_a_file_as_home(home)?;

    let (lines, noted) = dotenv.map(dotenv::parse).unwrap_or_default();
    problems.extend(noted);
    let variable = |name: &str| {
        let line = lines.get(name).map(|line| line.value.clone());
        line.or_else(|| inputs.variables.get(name).cloned())
    };

    let mut read = |path: &Path, strictness| match source(path, &mut problems) {
        Some(source) => check_file(&source, strictness, &variable, &mut problems),
        None => CheckedFile::default(),
    };
    let managed = read(&inputs.managed, UnknownKeys::PointOutSlips);
    let file = read(&home.config_file(), UnknownKeys::PointOutSlips);
    let legacy = read(&home.legacy_file(), UnknownKeys::LetThrough);

    problems.extend(doubled(&file));
    problems.extend(lines.iter().filter_map(|(name, line)| {
        let near = slip(name)?;
        let problem = ConfigProblem::warning(format!("{name} is not a name we know"));
        let problem = problem.in_line(&home.dotenv_file(), line.number);
        Some(problem.help(format!("did you mean {near}?")))
    }));
    for (path, holds_secrets) in [
        (home.config_file(), file.holds_secrets()),
        (home.dotenv_file(), !lines.is_empty()),
        (home.legacy_file(), legacy.holds_secrets()),
        (inputs.managed.clone(), managed.holds_secrets()),
    ] {
        problems.extend(exposure::of(&path, holds_secrets));
    }

    let sources = SettingSources {
        inputs,
        managed: &managed,
        file: &file,
        legacy: &legacy,
        dotenv: &lines,
    };
    let settled = sources.settle(&mut problems);
    problems.extend(settled.iter().filter_map(EffectiveSetting::without_effect));
    let parts = settings::ConfigSections::build(&settled, &variable, &mut problems);

    let (errors, warnings) = problems
        .into_iter()
        .partition(|problem| problem.severity() == ProblemSeverity::Error);
    if let Some(problems) = ConfigProblems::of(errors) {
        return Err(problems);
    }
    let unused = [managed.unused, file.unused, legacy.unused].into_iter();
    let unused = unused.flatten().map(UnusedKey::of).collect();
    Ok(Config::new(home.clone(), parts, settled, warnings, unused))
}

fn refuse_a_file_as_home(home: &HomeFolder) -> Result<(), ConfigProblems> {
    if !home.root().exists() || home.root().is_dir() {
        return Ok(());
    }
    let problem = ConfigProblem::error("the home is not a folder").in_file(home.root());
    let problem = problem.help("set HERMES_HOME to a folder, or pass --home");
    Err(ConfigProblems::from(problem))
}

impl UnusedKey {
    fn of(entry: UnusedEntry) -> Self {
        Self {
            missed: SCHEMA
                .missed(&entry.path, entry.is_switched_on)
                .filter(|_| !entry.is_idle),
            key: wording::short_path(&entry.path),
            file: entry.place.source.path().to_owned(),
            line: entry.place.line,
            names: entry.names,
        }
    }
}

fn source(path: &Path, problems: &mut Vec<ConfigProblem>) -> Option<SourceFile> {
    SourceFile::read(path).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}

fn check_file(
    source: &SourceFile,
    strictness: UnknownKeys,
    variable: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<ConfigProblem>,
) -> CheckedFile {
    let (root, noted) = tree::parse(source);
    problems.extend(noted);
    let Some(root) = root else {
        return CheckedFile::default();
    };
    let mut checked = check::check(&root, strictness, variable);
    problems.append(&mut checked.problems);
    checked
}

/// The variable that a name in `.env` is a slip of. Providers' keys all look alike, so those are
/// never guessed at.
fn slip(name: &str) -> Option<&'static str> {
    let guessable = SCHEMA.for_variable(name).is_none()
        && !["_API_KEY", "_BASE_URL", "_URL", "_MODEL"]
            .iter()
            .any(|ending| name.ends_with(ending));
    guessable
        .then(|| nearest(name, SCHEMA.variables()))
        .flatten()
}
