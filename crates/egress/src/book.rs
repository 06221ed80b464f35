//! The rules that people add while a gateway runs: one line each, in a file they can read and edit.
//!
//! ```text
//! allow api.example.com
//! deny tracker.example.com
//! allow pypi.org for telegram:dm:42
//! ```
//!
//! The file is read again when it has changed. One that cannot be understood closes the way out for
//! everybody it could speak of: a rule that was meant to forbid must not be lost in a typing error.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::rules::{HostRule, InvalidRule, RuleText, RulesText};
use crate::scope::{ConversationScope, InvalidScope};

/// The file of rules that people add while a gateway runs.
#[derive(Clone, Debug)]
pub struct RuleBook {
    path: PathBuf,
}

/// One rule of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRule {
    pub list: RuleEffect,
    /// As `HostRule::parse` takes it.
    pub rule: String,
    /// Everybody where absent.
    pub scope: Option<ConversationScope>,
}

/// What a rule does to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    Allow,
    Deny,
}

/// The error of a rule book that cannot be read or changed.
#[derive(Debug, Error)]
pub enum BookError {
    #[error("cannot {act} {}", path.display())]
    File {
        act: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is larger than {MOST_BOOK_BYTES} bytes", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        problem: LineProblem,
    },
}

/// The reason why a line of the book is no rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineProblem {
    #[error("expected `allow HOST` or `deny HOST`")]
    Word,
    #[error(transparent)]
    Rule(#[from] InvalidRule),
    #[error(transparent)]
    Scope(#[from] InvalidScope),
}

/// Identifies a version of the file: it changes when the file does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileStamp(Option<(u64, u64, i64, i64)>);

/// It is read whole; what a person writes in it is some kilobytes.
const MOST_BOOK_BYTES: u64 = 1 << 20;

const HEAD: &str = "\
# Rules added with `hermetic egress allow` and `hermetic egress deny`, on top of gateway.egress.
# Edit as you like; a running gateway reads this again.
";

impl RuleBook {
    /// A file that is not there is an empty book.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> Result<Vec<WrittenRule>, BookError> {
        self.parse(&self.text()?)
    }

    /// Adds a rule; one that says the opposite of the same host goes. `false` if it was there already.
    pub fn add(&self, new: &WrittenRule) -> Result<bool, BookError> {
        self.change(|lines| {
            let speaks_of_it = |old: &WrittenRule| old.rule == new.rule && old.scope == new.scope;
            let there = lines.iter().any(|line| line.rule.as_ref() == Some(new));
            let before = lines.len();
            lines.retain(|line| {
                line.rule
                    .as_ref()
                    .is_none_or(|old| old == new || !speaks_of_it(old))
            });
            if !there {
                lines.push(BookLine {
                    text: new.to_string(),
                    rule: Some(new.clone()),
                });
            }
            !there || lines.len() < before
        })
    }

    /// Adds a rule with a reason for whoever reads the file, and takes nothing out: what a person allowed is
    /// there again when this is forgotten.
    pub(crate) fn add_because(&self, new: &WrittenRule, why: &str) -> Result<bool, BookError> {
        self.change(|lines| {
            let there = lines.iter().any(|line| line.rule.as_ref() == Some(new));
            if !there {
                lines.push(BookLine {
                    text: format!("{new} # {why}"),
                    rule: Some(new.clone()),
                });
            }
            !there
        })
    }

    /// Takes a rule out, whichever way it decided; of two that disagree, the one that forbids. `false` if there
    /// was none.
    pub fn forget(&self, rule: &str, scope: Option<&ConversationScope>) -> Result<bool, BookError> {
        self.change(|lines| {
            let before = lines.len();
            let named = |old: &WrittenRule| old.rule == rule && old.scope.as_ref() == scope;
            let forbids = |old: &WrittenRule| named(old) && old.list == RuleEffect::Deny;
            let is_forbidden = lines
                .iter()
                .any(|line| line.rule.as_ref().is_some_and(forbids));
            lines.retain(|line| {
                !line
                    .rule
                    .as_ref()
                    .is_some_and(|old| named(old) && (!is_forbidden || forbids(old)))
            });
            lines.len() < before
        })
    }

    pub(crate) fn stamp(&self) -> FileStamp {
        FileStamp(
            fs::metadata(&self.path)
                .ok()
                .map(|found| (found.ino(), found.len(), found.mtime(), found.mtime_nsec())),
        )
    }

    /// Comments and order stay. Of two changes at once both count: the second waits.
    fn change(&self, edit: impl FnOnce(&mut Vec<BookLine>) -> bool) -> Result<bool, BookError> {
        // Held from before the reading to after the writing, or one of two changes at once would be
        // written over.
        let _held = self.hold()?;
        let text = self.text()?;
        // Everything must be understood before anything is changed.
        self.parse(&text)?;
        let text = if text.is_empty() { HEAD } else { &text };
        let mut lines: Vec<BookLine> = text
            .lines()
            .map(|text| BookLine {
                text: text.to_owned(),
                rule: WrittenRule::parse_line(text).ok().flatten(),
            })
            .collect();
        let changed = edit(&mut lines);
        if changed {
            let text: String = lines
                .iter()
                .map(|line| format!("{}\n", line.text))
                .collect();
            self.replace(&text)?;
        }
        Ok(changed)
    }

    fn hold(&self) -> Result<File, BookError> {
        // A file beside it: the book itself is replaced by every change, and a lock on what was
        // replaced keeps nobody out.
        let path = self.path.with_extension("lock");
        let locked = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| self.failed("lock", source))
    }

    fn replace(&self, text: &str) -> Result<(), BookError> {
        let aside = self
            .path
            .with_extension(format!("new-{}", std::process::id()));
        let written = (|| {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&aside)?;
            file.write_all(text.as_bytes())?;
            // On the disk before it gets the name: after a power cut a book that is empty would
            // deny nothing.
            file.sync_all()?;
            fs::rename(&aside, &self.path)
        })();
        written.map_err(|source| self.failed("write", source))
    }

    fn text(&self) -> Result<String, BookError> {
        let mut text = String::new();
        let read = match File::open(&self.path) {
            Ok(file) => file.take(MOST_BOOK_BYTES + 1).read_to_string(&mut text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        };
        read.map_err(|source| self.failed("read", source))?;
        if text.len() as u64 > MOST_BOOK_BYTES {
            return Err(BookError::TooLarge {
                path: self.path.clone(),
            });
        }
        Ok(text)
    }

    fn parse(&self, text: &str) -> Result<Vec<WrittenRule>, BookError> {
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            match WrittenRule::parse_line(line) {
                Ok(rule) => rules.extend(rule),
                Err(problem) => {
                    return Err(BookError::Line {
                        path: self.path.clone(),
                        line: number + 1,
                        problem,
                    });
                }
            }
        }
        Ok(rules)
    }

    fn failed(&self, act: &'static str, source: io::Error) -> BookError {
        BookError::File {
            act,
            path: self.path.clone(),
            source,
        }
    }
}

/// One line of the file, with the rule in it if it holds one.
struct BookLine {
    text: String,
    rule: Option<WrittenRule>,
}

impl WrittenRule {
    pub fn new(
        list: RuleEffect,
        rule: &str,
        scope: Option<ConversationScope>,
    ) -> Result<Self, InvalidRule> {
        // A line ends at its end; `HostRule` refuses control characters in names, but not around them.
        let rule = rule.split_whitespace().collect::<Vec<_>>().join(" ");
        HostRule::parse(&rule)?;
        Ok(Self { list, rule, scope })
    }

    /// Reads a line of the file. Nothing where it holds no rule.
    pub fn parse_line(line: &str) -> Result<Option<Self>, LineProblem> {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return Ok(None);
        }
        let (word, rest) = line
            .split_once(char::is_whitespace)
            .ok_or(LineProblem::Word)?;
        let list = match word {
            "allow" => RuleEffect::Allow,
            "deny" => RuleEffect::Deny,
            _ => return Err(LineProblem::Word),
        };
        let (rule, scope) = match rest.split_once(" for ") {
            Some((rule, scope)) => (rule, Some(scope.trim().parse()?)),
            None => (rest, None),
        };
        Ok(Some(Self::new(list, rule, scope)?))
    }

    /// As a set of rules of its own.
    pub fn as_text(&self) -> RulesText {
        let rule = vec![RuleText::Line(self.rule.clone())];
        match self.list {
            RuleEffect::Allow => RulesText {
                allow: rule,
                ..RulesText::default()
            },
            RuleEffect::Deny => RulesText {
                deny: rule,
                ..RulesText::default()
            },
        }
    }
}

impl fmt::Display for WrittenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.list {
            RuleEffect::Allow => "allow",
            RuleEffect::Deny => "deny",
        };
        write!(f, "{word} {}", self.rule)?;
        match &self.scope {
            Some(scope) => write!(f, " for {scope}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> (tempfile::TempDir, RuleBook) {
        let folder = tempfile::tempdir().unwrap();
        let book = RuleBook::at(folder.path().join("egress.rules"));
        (folder, book)
    }

    fn rule(list: RuleEffect, text: &str, scope: Option<&str>) -> WrittenRule {
        WrittenRule::new(list, text, scope.map(|scope| scope.parse().unwrap())).unwrap()
    }

    #[test]
    fn what_a_person_wrote_around_the_rules_stays() {
        let (_folder, book) = book();
        fs::write(book.path(), "# mine\nallow a.test # why\n\ndeny b.test\n").unwrap();
        assert!(
            book.add(&rule(RuleEffect::Allow, "c.test:80", Some("telegram")))
                .unwrap()
        );
        assert!(!book.add(&rule(RuleEffect::Allow, "a.test", None)).unwrap());
        assert!(book.add(&rule(RuleEffect::Allow, "b.test", None)).unwrap());
        assert!(book.forget("a.test", None).unwrap());
        assert!(!book.forget("a.test", None).unwrap());
        assert_eq!(
            fs::read_to_string(book.path()).unwrap(),
            "# mine\n\nallow c.test:80 for telegram\nallow b.test\n"
        );
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named_and_nothing_is_changed() {
        let (_folder, book) = book();
        for text in [
            "alow a.test",
            "allow",
            "allow *",
            "deny a.test for ",
            "allow a b",
        ] {
            fs::write(book.path(), format!("\n{text}\n")).unwrap();
            let error = book
                .add(&rule(RuleEffect::Deny, "x.test", None))
                .unwrap_err();
            assert!(
                matches!(error, BookError::Line { line: 2, .. }),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_was_lost_and_given_back_is_allowed_as_before() {
        let (_folder, book) = book();
        let scope: ConversationScope = "telegram:dm:42".parse().unwrap();
        let allowed = rule(RuleEffect::Allow, "a.test", Some("telegram:dm:42"));
        let lost = rule(RuleEffect::Deny, "a.test", Some("telegram:dm:42"));
        book.add(&allowed).unwrap();
        assert!(book.add_because(&lost, "a guess").unwrap());
        assert!(!book.add_because(&lost, "a guess").unwrap());
        assert_eq!(book.read().unwrap(), [allowed.clone(), lost.clone()]);
        assert!(book.forget("a.test", Some(&scope)).unwrap());
        assert_eq!(book.read().unwrap(), std::slice::from_ref(&allowed));
        book.add_because(&lost, "a guess").unwrap();
        assert!(
            book.add(&allowed).unwrap(),
            "whoever allows it takes the loss out"
        );
        assert_eq!(book.read().unwrap(), [allowed]);
        assert!(book.forget("a.test", Some(&scope)).unwrap());
        assert_eq!(book.read().unwrap(), []);
    }

    #[test]
    fn a_rule_cannot_smuggle_a_second_line() {
        assert!(WrittenRule::new(RuleEffect::Allow, "a.test\ndeny b.test", None).is_err());
        let (_folder, book) = book();
        book.add(&rule(RuleEffect::Allow, "a.test  in\n10.0.0.0/8", None))
            .unwrap();
        assert_eq!(book.read().unwrap().len(), 1);
    }

    #[test]
    fn changes_at_once_all_count() {
        let (_folder, book) = book();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let book = &book;
                scope.spawn(move || {
                    let text = format!("h{number}.test");
                    book.add(&rule(RuleEffect::Allow, &text, None)).unwrap();
                });
            }
        });
        assert_eq!(book.read().unwrap().len(), 8);
    }
}
