//! Labelled commands: what one is, how a file of them is read, and how the judge did on it.
//!
//! A `.txt` batch has a `# category` line before its commands, each after `!` (refused always),
//! `-` (asked about) or `+` (runs), with `⏎` for a newline. A `.jsonl` file has an object a line:
//! `cmd`, `label`, `category`, `tier`.

use std::collections::BTreeMap;

use hermetic_policy::{JudgementContext, LineLabel, judge_line};
use hermetic_types::{BackendDescription, BackendKind};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) cmd: String,
    pub(crate) label: LineLabel,
    #[serde(default)]
    pub(crate) category: String,
    #[serde(default)]
    pub(crate) tier: String,
}

pub(crate) fn read(name: &str, text: &str) -> Result<Vec<Line>, String> {
    if name.ends_with(".jsonl") {
        return text
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}")))
            .collect();
    }
    let mut category = String::new();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (mark, rest) = line.split_at_checked(2).ok_or(line)?;
        let label = match mark {
            "# " => {
                rest.clone_into(&mut category);
                continue;
            }
            "! " => LineLabel::Hardline,
            "- " => LineLabel::Dangerous,
            "+ " => LineLabel::Safe,
            _ => return Err(format!("no label on {line:?}")),
        };
        lines.push(Line {
            cmd: rest.replace('⏎', "\n"),
            label,
            category: category.clone(),
            tier: String::new(),
        });
    }
    Ok(lines)
}

/// As the `local` backend of a project of the tests' own would judge.
pub(crate) fn context() -> JudgementContext {
    JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    )
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) hits: usize,
    pub(crate) all: usize,
}

impl Share {
    pub(crate) fn add(&mut self, hit: bool) {
        self.all += 1;
        self.hits += usize::from(hit);
    }

    pub(crate) fn percent(self) -> f64 {
        100.0 * self.hits as f64 / self.all.max(1) as f64
    }

    fn at_least(self, percent: f64) -> bool {
        self.all == 0 || self.percent() >= percent
    }
}

/// How the judge did, and the lines it got wrong.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) recall: Share,
    pub(crate) recall_by_category: BTreeMap<String, Share>,
    pub(crate) hardline_named: Share,
    pub(crate) alarms_by_category: BTreeMap<String, Share>,
    pub(crate) safe_called_hardline: Share,
    pub(crate) wrong: Vec<String>,
}

impl Report {
    pub(crate) fn on<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Self {
        let context = context();
        let mut report = Self::default();
        for line in lines {
            let found = judge_line(&line.cmd, &context);
            report.add(line, found.verdict);
            let right = match line.label {
                // Worse than thought is not wrong here.
                LineLabel::Dangerous => found.verdict != LineLabel::Safe,
                label => found.verdict == label,
            };
            if !right {
                report.wrong.push(format!(
                    "{}: {:?} judged {:?}: {:?} ({})",
                    line.category, line.label, found.verdict, line.cmd, found.why
                ));
            }
        }
        report
    }

    fn add(&mut self, line: &Line, verdict: LineLabel) {
        let alarmed = verdict != LineLabel::Safe;
        let category = line.category.clone();
        if line.label == LineLabel::Safe {
            let alarms = self.alarms_by_category.entry(category).or_default();
            alarms.add(alarmed);
            self.safe_called_hardline
                .add(verdict == LineLabel::Hardline);
            return;
        }
        self.recall.add(alarmed);
        let recall = self.recall_by_category.entry(category).or_default();
        recall.add(alarmed);
        if line.label == LineLabel::Hardline {
            self.hardline_named.add(verdict == LineLabel::Hardline);
        }
    }

    /// The bounds a set nobody tuned to is held to, and which of them are broken.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut hold = |held: bool, what: String| {
            if !held {
                broken.push(what);
            }
        };
        hold(self.recall.at_least(96.0), "recall under 96 %".to_owned());
        hold(
            self.hardline_named.at_least(95.0),
            "hardline named under 95 %".to_owned(),
        );
        for (category, share) in &self.recall_by_category {
            hold(
                share.at_least(70.0),
                format!("recall on {category} under 70 %"),
            );
        }
        for (category, share) in &self.alarms_by_category {
            let bound = if category == "everyday" { 0.7 } else { 4.0 };
            hold(
                share.percent() <= bound,
                format!("false alarms on {category} over {bound} %"),
            );
        }
        broken
    }
}
