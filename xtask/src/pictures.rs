//! `cargo xtask pictures`: terminals for the documentation, drawn from what the program really says.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::{leftovers, machine, program, say};

/// The name of each picture, and the words that make it.
const PICTURES: [(&str, &[&str]); 2] = [
    ("demo", &["demo"]),
    ("doctor-attack", &["doctor", "--attack"]),
];

const COLUMNS: usize = 122;
/// A picture that is longer is scrolled past and not looked at.
const MOST_LINES: usize = 90;
const LINE_HEIGHT: usize = 19;
/// Of a letter, in hundredths: SVG lets no text say it, so columns are held by `textLength`.
const LETTER_WIDTH: usize = 840;
const MARGIN: usize = 18;
const BAR: usize = 34;

pub(crate) fn run(named: Option<&str>) -> Result<(), ChoreFailure> {
    let hermetic = match named {
        Some(named) => {
            std::path::absolute(named).map_err(ChoreFailure::file("find the program"))?
        }
        None => {
            say::step("The program");
            program::show(machine::cargo().args(["build", "--locked", "--package", "hermetic"]))?;
            machine::target().join("debug/hermetic")
        }
    };
    let folder = machine::root().join("docs/pictures");
    fs::create_dir_all(&folder)
        .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
    for (name, words) in PICTURES {
        say::step(&format!("hermetic {}", words.join(" ")));
        let text = said(&hermetic, words)?;
        let file = folder.join(format!("{name}.svg"));
        let line = format!("$ hermetic {}", words.join(" "));
        fs::write(&file, drawn(&line, &text))
            .map_err(ChoreFailure::file(format!("write {}", file.display())))?;
        say::note(&format!("wrote {}", file.display()));
    }
    Ok(())
}

/// With colours, and with nothing of whoever draws it.
fn said(hermetic: &Path, words: &[&str]) -> Result<String, ChoreFailure> {
    let home = leftovers::folder("picture");
    fs::create_dir(&home).map_err(ChoreFailure::file("make a home"))?;
    let mut command = Command::new(hermetic);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
        .env("HOME", &home)
        .env("CLICOLOR_FORCE", "1")
        .env("COLUMNS", COLUMNS.to_string());
    command.current_dir(&home).args(words);
    let said = program::listen(&mut command);
    let _ = fs::remove_dir_all(&home);
    let said = said?;
    if !said.status.success() {
        say::plain(&String::from_utf8_lossy(&said.stderr));
        return Err(ChoreFailure::Ended {
            line: program::line(&command),
            status: said.status,
        });
    }
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(text.replace(&home.display().to_string(), "~"))
}

/// How letters look, as far as the program's own colours go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TextLook {
    bold: bool,
    dim: bool,
    colour: Option<u8>,
}

impl TextLook {
    /// After the numbers of one escape sequence.
    fn after(mut self, numbers: &str) -> Self {
        for number in numbers.split(';') {
            match number.parse().unwrap_or(0) {
                0 => self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                22 => (self.bold, self.dim) = (false, false),
                colour @ 30..=37 => self.colour = Some(colour - 30),
                colour @ 90..=97 => self.colour = Some(colour - 90),
                39 => self.colour = None,
                _ => {}
            }
        }
        self
    }

    fn attributes(self) -> String {
        let fill = match (self.colour, self.dim) {
            (Some(1), _) => "#ff7b72",
            (Some(2), _) => "#7ee787",
            (Some(3), _) => "#e3b341",
            (Some(4), _) => "#79c0ff",
            (Some(5), _) => "#d2a8ff",
            (Some(6), _) => "#76e3ea",
            (_, true) => "#8b949e",
            _ => "#e6edf3",
        };
        let weight = if self.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        format!("fill=\"{fill}\"{weight}")
    }
}

/// Letters that look alike and stand together.
type TextPiece = (TextLook, String);

/// The terminal as an SVG.
fn drawn(line: &str, text: &str) -> String {
    let lines = shown_lines(line, text);
    let width = COLUMNS * LETTER_WIDTH / 100 + 2 * MARGIN;
    let height = lines.len() * LINE_HEIGHT + 2 * MARGIN + BAR;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (place, colour) in [(20, "#ff5f57"), (40, "#febc2e"), (60, "#28c840")] {
        let _ = writeln!(
            svg,
            "<circle cx=\"{place}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>"
        );
    }
    for (row, pieces) in lines.iter().enumerate() {
        let y = BAR + MARGIN + row * LINE_HEIGHT + 10;
        let mut column = 0;
        for (look, text) in pieces {
            let letters = text.chars().count();
            // Blanks at the ends have no ink, and some viewers take them away with their width.
            let blank = letters - text.trim_start().chars().count();
            let shown = text.trim();
            if !shown.is_empty() {
                let x = MARGIN + (column + blank) * LETTER_WIDTH / 100;
                let length = shown.chars().count() * LETTER_WIDTH / 100;
                let _ = writeln!(
                    svg,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" xml:space=\"preserve\" {}>{}</text>",
                    look.attributes(),
                    escaped(shown)
                );
            }
            column += letters;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The command and what it wrote, with the middle left out where it is too long for a picture.
fn shown_lines(line: &str, text: &str) -> Vec<Vec<TextPiece>> {
    let mut lines = vec![vec![(
        TextLook {
            bold: true,
            ..TextLook::default()
        },
        line.to_owned(),
    )]];
    lines.extend(read(text).into_iter().flat_map(wrapped));
    while lines
        .last()
        .is_some_and(|line| line.iter().all(|(_, text)| text.trim().is_empty()))
    {
        lines.pop();
    }
    if lines.len() > MOST_LINES {
        // The beginning says what happens and the end what came of it.
        let end = lines.split_off(lines.len() - MOST_LINES / 4);
        lines.truncate(MOST_LINES - MOST_LINES / 4 - 1);
        lines.push(vec![(
            TextLook {
                dim: true,
                ..TextLook::default()
            },
            "  …".to_owned(),
        )]);
        lines.extend(end);
    }
    lines
}

/// Lines of pieces, by the escape sequences that colour them. All others are left out.
fn read(text: &str) -> Vec<Vec<TextPiece>> {
    let mut look = TextLook::default();
    let mut lines = Vec::new();
    for line in text.lines() {
        // What was written over is not seen.
        let line = line.rsplit('\r').next().unwrap_or(line);
        let mut pieces: Vec<TextPiece> = Vec::new();
        let mut parts = line.split('\u{1b}');
        pieces.push((look, parts.next().unwrap_or_default().to_owned()));
        for part in parts {
            let body = part.strip_prefix('[').unwrap_or(part);
            let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let (numbers, rest) = body.split_at(end);
            let mut rest = rest.chars();
            if rest.next() == Some('m') {
                look = look.after(numbers);
            }
            pieces.push((look, rest.filter(|c| !c.is_control()).collect()));
        }
        pieces.retain(|(_, text)| !text.is_empty());
        lines.push(pieces);
    }
    lines
}

/// As a terminal does it: at its edge.
fn wrapped(pieces: Vec<TextPiece>) -> Vec<Vec<TextPiece>> {
    let mut lines = vec![Vec::new()];
    let mut column = 0;
    for (look, text) in pieces {
        let mut piece = String::new();
        for c in text.chars() {
            if column == COLUMNS {
                lines
                    .last_mut()
                    .expect("there is one")
                    .push((look, std::mem::take(&mut piece)));
                lines.push(Vec::new());
                column = 0;
            }
            piece.push(c);
            column += 1;
        }
        lines.last_mut().expect("there is one").push((look, piece));
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_nothing_else_is_drawn() {
        let lines = read("a\u{1b}[1;32mheld\u{1b}[0m b\u{1b}[K\nover\rseen\n");
        let bold = TextLook {
            bold: true,
            dim: false,
            colour: Some(2),
        };
        let plain = TextLook::default();
        assert_eq!(
            lines[0],
            [
                (plain, "a".to_owned()),
                (bold, "held".to_owned()),
                (plain, " b".to_owned()),
            ]
        );
        assert_eq!(lines[1], [(plain, "seen".to_owned())]);
    }

    #[test]
    fn a_picture_is_well_formed_whatever_was_said() {
        let long = "x".repeat(COLUMNS + 5);
        let svg = drawn("$ a", &format!("<script>&\u{1b}[31m\u{7}\n{long}\n\n\n"));
        assert!(
            svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script"),
            "{svg}"
        );
        assert!(!svg.contains('\u{1b}') && !svg.contains('\u{7}'), "{svg}");
        // The command, the line, and the long one at the edge; empty ones at the end are not drawn.
        assert_eq!(svg.matches("<text ").count(), 4, "{svg}");
    }

    #[test]
    fn what_is_too_long_keeps_its_beginning_and_its_end() {
        let text: String = (0..500).map(|line| format!("line {line}\n")).collect();
        let svg = drawn("$ a", &text);
        assert_eq!(svg.matches("<text ").count(), MOST_LINES);
        for line in ["line 0<", "…", "line 499<"] {
            assert!(svg.contains(line), "{line}");
        }
    }
}
