//! Where a text that is not there nearly is, and what is different.

use std::fmt;

/// The closest place, or none worth naming.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NearestMatch(Option<NearLines>);

#[derive(Debug, PartialEq, Eq)]
struct NearLines {
    /// With their numbers.
    lines: Vec<(usize, String)>,
    /// The first line that is not as wanted: its number, what is there, what was wanted.
    differs: Option<(usize, String, String)>,
}

/// A model's file is looked through; a dump is not.
const MOST_COMPARED_LINES: usize = 50_000;
const SHOWN: usize = 12;
const LINE_CHARS: usize = 200;
/// A line that is less like it is another line: shown as the nearest it would lead astray.
const ALIKE: f64 = 0.6;

pub(super) fn to(wanted: &str, text: &str) -> NearestMatch {
    let wanted: Vec<&str> = wanted.trim_matches('\n').split('\n').collect();
    let lines: Vec<&str> = text.split('\n').take(MOST_COMPARED_LINES).collect();
    // A line that says something: the first one is often a lone brace.
    let Some((anchor_at, anchor)) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(at, line)| (line.trim().len().min(40), usize::MAX - at))
    else {
        return NearestMatch(None);
    };
    let best = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (likeness(anchor, line), at))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let Some((_, at)) = best else {
        return NearestMatch(None);
    };
    let first = at.saturating_sub(anchor_at);
    let there = &lines[first..(first + wanted.len()).min(lines.len())];
    let differs = (0..wanted.len()).find(|step| there.get(*step) != Some(&wanted[*step]));
    NearestMatch(Some(NearLines {
        lines: (first + 1..)
            .zip(there.iter().take(SHOWN).map(|line| cut(line)))
            .collect(),
        differs: differs.map(|step| {
            let line = there.get(step).map_or("", |line| line);
            (first + step + 1, cut(line), cut(wanted[step]))
        }),
    }))
}

fn likeness(wanted: &str, line: &str) -> f64 {
    let (wanted, line) = (wanted.trim(), line.trim());
    if wanted.is_empty() || line.is_empty() {
        return 0.0;
    }
    if wanted == line {
        return 1.0;
    }
    let (short, long) = (wanted.len().min(line.len()), wanted.len().max(line.len()));
    // Lengths this different cannot be alike, and long lines are dear to compare.
    if long > 400 || short * 2 < long {
        return 0.0;
    }
    strsim::normalized_levenshtein(wanted, line)
}

fn cut(line: &str) -> String {
    super::super::legible::shortened(line, LINE_CHARS)
}

impl fmt::Display for NearestMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(found) = &self.0 else {
            return f.write_str(
                "Nothing in the file is like it; read the file to see what it holds now.",
            );
        };
        writeln!(f, "Did you mean this place?")?;
        for (number, line) in &found.lines {
            writeln!(f, "{number}|{line}")?;
        }
        let Some((number, there, wanted)) = &found.differs else {
            return f.write_str("It differs only in what comes before or after these lines.");
        };
        let what = if there.trim() == wanted.trim() {
            " (indentation or spaces only)"
        } else {
            ""
        };
        write!(
            f,
            "The first difference is in line {number}{what}: the file has {there:?}, you gave {wanted:?}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_found_by_its_most_telling_line() {
        let text = "{\n  a\n}\n{\n  let total = price * 3;\n}\n";
        let nearest = to("{\n  let total = price * 2;\n}", text).to_string();
        assert!(
            nearest.contains("4|{\n5|  let total = price * 3;"),
            "{nearest}"
        );
        assert!(nearest.contains("line 5"), "{nearest}");
    }

    #[test]
    fn nothing_alike_is_said() {
        let nearest = to("entirely different words", "abc\ndef\n").to_string();
        assert!(nearest.starts_with("Nothing"), "{nearest}");
        assert!(to("", "").to_string().starts_with("Nothing"));
    }
}
