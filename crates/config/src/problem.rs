//! What is wrong with a configuration, in a form a person can act on.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::place::SourcePlace;
use crate::wording::short_path;

const MOST_SHOWN: usize = 100;

/// One thing to mend.
#[derive(Clone, Debug)]
pub struct ConfigProblem {
    severity: ProblemSeverity,
    what: String,
    /// Apart, as it is large and problems travel as errors.
    spot: Box<ProblemPlace>,
    key: Option<String>,
    help: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemSeverity {
    /// Nothing starts until this is mended.
    Error,
    /// Works, and somebody should know.
    Warning,
}

#[derive(Clone, Debug)]
enum ProblemPlace {
    Nowhere,
    Variable(String),
    File(PathBuf),
    /// A line whose text must not be shown.
    Line(PathBuf, usize, Option<usize>),
    Place(SourcePlace),
}

/// Every error of every file, found in one go.
#[derive(Clone, Debug)]
pub struct ConfigProblems(Vec<ConfigProblem>);

impl ConfigProblem {
    pub fn severity(&self) -> ProblemSeverity {
        self.severity
    }

    /// The headline, without the place.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The dotted name of the key this is about.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What to do about it, a sentence each.
    pub fn helps(&self) -> &[String] {
        &self.help
    }

    /// `file:line:column`, as far as it is known.
    pub fn place(&self) -> Option<String> {
        match &*self.spot {
            ProblemPlace::Nowhere => None,
            ProblemPlace::Variable(name) => Some(format!("the variable {name}")),
            ProblemPlace::File(path) => Some(path.display().to_string()),
            ProblemPlace::Line(path, line, None) => Some(format!("{}:{line}", path.display())),
            ProblemPlace::Line(path, line, Some(column)) => {
                Some(format!("{}:{line}:{column}", path.display()))
            }
            ProblemPlace::Place(place) => Some(format!(
                "{}:{}:{}",
                place.source.path().display(),
                place.line,
                place.column
            )),
        }
    }

    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::new(ProblemSeverity::Error, what.into())
    }

    pub(crate) fn warning(what: impl Into<String>) -> Self {
        Self::new(ProblemSeverity::Warning, what.into())
    }

    /// The same as something that does not stop a start.
    pub(crate) fn into_warning(mut self) -> Self {
        self.severity = ProblemSeverity::Warning;
        self
    }

    pub(crate) fn at(mut self, place: &SourcePlace) -> Self {
        self.spot = Box::new(ProblemPlace::Place(place.clone()));
        self
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.spot = Box::new(ProblemPlace::File(path.to_owned()));
        self
    }

    pub(crate) fn in_line(mut self, path: &Path, line: usize) -> Self {
        self.spot = Box::new(ProblemPlace::Line(path.to_owned(), line, None));
        self
    }

    pub(crate) fn in_file_at(mut self, path: &Path, line: usize, column: usize) -> Self {
        self.spot = Box::new(ProblemPlace::Line(path.to_owned(), line, Some(column)));
        self
    }

    pub(crate) fn in_variable(mut self, name: &str) -> Self {
        self.spot = Box::new(ProblemPlace::Variable(name.to_owned()));
        self
    }

    pub(crate) fn of_key(mut self, key: impl AsRef<str>) -> Self {
        self.key = Some(short_path(key.as_ref()));
        self
    }

    pub(crate) fn help(mut self, line: impl Into<String>) -> Self {
        self.help.push(line.into());
        self
    }

    fn new(severity: ProblemSeverity, what: String) -> Self {
        Self {
            severity,
            what,
            spot: Box::new(ProblemPlace::Nowhere),
            key: None,
            help: Vec::new(),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.what)?;
        if let Some(place) = self.place() {
            write!(f, "\n  --> {place}")?;
        }
        if let ProblemPlace::Place(place) = &*self.spot {
            write!(f, "\n{}", place.snippet())?;
        }
        if let Some(key) = &self.key {
            write!(f, "\n  = key: {key}")?;
        }
        for line in &self.help {
            write!(f, "\n  = {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ProblemSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl ConfigProblems {
    /// `None` where nothing is an error. Nobody reads thousands of them.
    pub(crate) fn of(mut problems: Vec<ConfigProblem>) -> Option<Self> {
        let more = problems.len().saturating_sub(MOST_SHOWN);
        if more > 0 {
            problems.truncate(MOST_SHOWN);
            problems.push(ConfigProblem::error(format!("and {more} more")));
        }
        (!problems.is_empty()).then_some(Self(problems))
    }

    pub fn iter(&self) -> impl Iterator<Item = &ConfigProblem> {
        self.0.iter()
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl From<ConfigProblem> for ConfigProblems {
    fn from(problem: ConfigProblem) -> Self {
        Self(vec![problem])
    }
}

impl std::error::Error for ConfigProblems {}
