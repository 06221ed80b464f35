//! What came out, for the terminal and for `docs/performance.md`.

use super::image::OsRelease;
use super::stories::{StoryError, StoryResult};
use crate::failure::ChoreFailure;
use crate::say;

#[derive(Debug, Default)]
pub(crate) struct StoryTable {
    notes: Vec<String>,
    rows: Vec<StoryRow>,
}

#[derive(Debug)]
struct StoryRow {
    machine: &'static str,
    story: &'static str,
    outcome: &'static str,
    figures: String,
}

impl StoryTable {
    pub(crate) fn note(&mut self, release: OsRelease, text: &str) {
        let note = format!("{}: {text}", release.name());
        say::note(&note);
        self.notes.push(note);
    }

    pub(crate) fn add(&mut self, release: OsRelease, story: &'static str, result: StoryResult) {
        let (outcome, figures) = match result {
            Ok(figures) => ("passed", figures),
            Err(StoryError::Failed(why)) => ("FAILED", why),
            Err(StoryError::Skipped(why)) => ("skipped", why),
        };
        say::note(&format!("{outcome}: {figures}"));
        self.rows.push(StoryRow {
            machine: release.name(),
            story,
            outcome,
            figures: one_line(&figures),
        });
    }

    pub(crate) fn end(self) -> Result<(), ChoreFailure> {
        say::step("What real machines say");
        for note in &self.notes {
            say::plain(note);
        }
        say::plain(&self.text());
        let failed: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.outcome == "FAILED")
            .map(|row| format!("{} on {}", row.story, row.machine))
            .collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(ChoreFailure::Bad(failed))
        }
    }

    fn text(&self) -> String {
        let mut text = String::from("| machine | story | outcome | |\n| --- | --- | --- | --- |\n");
        for row in &self.rows {
            let StoryRow {
                machine,
                story,
                outcome,
                figures,
            } = row;
            text.push_str(&format!(
                "| {machine} | {story} | {outcome} | {figures} |\n"
            ));
        }
        text
    }
}

fn one_line(text: &str) -> String {
    let text = text.trim().replace('|', "/");
    let mut line = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    if let Some((end, _)) = line.char_indices().nth(600) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_story_makes_the_whole_fail() {
        let mut table = StoryTable::default();
        table.add(OsRelease::Debian12, "exec", Ok("0.6 s".to_owned()));
        table.add(
            OsRelease::Debian13,
            "login",
            Err(StoryError::Skipped("no systemd".to_owned())),
        );
        assert!(
            table
                .text()
                .contains("| debian-12 | exec | passed | 0.6 s |")
        );
        table.add(
            OsRelease::Debian13,
            "units",
            Err(StoryError::Failed("first | line\nsecond".to_owned())),
        );
        assert!(table.text().contains("| FAILED | first / line; second |"));
        let ended = table.end().map_err(|why| why.to_string());
        assert_eq!(ended, Err("units on debian-13".to_owned()));
    }
}
