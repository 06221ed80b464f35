//! From files and variables to one immutable [`Config`], once.

use std::path::Path;

use crate::check::{self, Checked, Strictness};
use crate::config::{Config, Unused};
use crate::dotenv;
use crate::effective::{Setting, Sources, doubled};
use crate::exposure;
use crate::inputs::Inputs;
use crate::nearest::nearest;
use crate::problem::{Problem, Problems, Severity};
use crate::schema::SCHEMA;
use crate::settings;
use crate::source::Source;
use crate::tree;
use crate::wording;

/// Reads everything and reports every error it finds, in the order of the files.
///
/// Nothing is half taken: with one error there is no configuration.
pub fn load(inputs: &Inputs) -> Result<Config, Problems> {
    let mut problems = Vec::new();
    let dotenv = source(&inputs.home.dotenv_file(), &mut problems);
    settle(inputs, dotenv.as_ref(), problems)
}

/// The same with this text for `.env`, before it is written there.
pub fn load_with_dotenv(inputs: &Inputs, text: &str) -> Result<Config, Problems> {
    let dotenv = Source::new(inputs.home.dotenv_file(), text);
    settle(inputs, Some(&dotenv), Vec::new())
}

fn settle(
    inputs: &Inputs,
    dotenv: Option<&Source>,
    mut problems: Vec<Problem>,
) -> Result<Config, Problems> {
    let home = &inputs.home;
    if home.root().exists() && !home.root().is_dir() {
        let problem = Problem::error("the home is not a folder").in_file(home.root());
        return Err(Problems::from(
            problem.help("set HERMES_HOME to a folder, or pass --home"),
        ));
    }

    let (lines, noted) = dotenv.map(dotenv::parse).unwrap_or_default();
    problems.extend(noted);
    let variable = |name: &str| {
        let line = lines.get(name).map(|line| line.value.clone());
        line.or_else(|| inputs.variables.get(name).cloned())
    };

    let mut read = |path: &Path, strictness| match source(path, &mut problems) {
        Some(source) => check_file(&source, strictness, &variable, &mut problems),
        None => Checked::default(),
    };
    let managed = read(&inputs.managed, Strictness::PointOutSlips);
    let file = read(&home.config_file(), Strictness::PointOutSlips);
    let legacy = read(&home.legacy_file(), Strictness::LetThrough);

    problems.extend(doubled(&file));
    problems.extend(lines.iter().filter_map(|(name, line)| {
        slip(name).map(|near| {
            Problem::warning(format!("{name} is not a name we know"))
                .in_line(&home.dotenv_file(), line.number)
                .help(format!("did you mean {near}?"))
        })
    }));
    for (path, holds_secrets) in [
        (home.config_file(), file.holds_secrets()),
        (home.dotenv_file(), !lines.is_empty()),
        (home.legacy_file(), legacy.holds_secrets()),
        (inputs.managed.clone(), managed.holds_secrets()),
    ] {
        problems.extend(exposure::of(&path, holds_secrets));
    }

    let sources = Sources {
        inputs,
        managed: &managed,
        file: &file,
        legacy: &legacy,
        dotenv: &lines,
    };
    let settled = sources.settle(&mut problems);
    problems.extend(settled.iter().filter_map(Setting::without_effect));
    let parts = settings::Parts::build(&settled, &variable, &mut problems);

    let (errors, warnings) = problems
        .into_iter()
        .partition(|problem| problem.severity() == Severity::Error);
    if let Some(problems) = Problems::of(errors) {
        return Err(problems);
    }
    let unused = [managed.unused, file.unused, legacy.unused]
        .into_iter()
        .flatten()
        .map(|(key, place)| Unused {
            key: wording::short_path(&key),
            file: place.source.path().to_owned(),
            line: place.line,
        })
        .collect();
    Ok(Config::new(home.clone(), parts, settled, warnings, unused))
}

fn source(path: &Path, problems: &mut Vec<Problem>) -> Option<Source> {
    Source::read(path).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}

fn check_file(
    source: &Source,
    strictness: Strictness,
    variable: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Checked {
    let (root, noted) = tree::parse(source);
    problems.extend(noted);
    let Some(root) = root else {
        return Checked::default();
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
