//! Everything this program prints that is not a log line.
//!
//! `anstream` takes the colours out where nobody sees them: no terminal, or `NO_COLOR`.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use hermetic_config::{ConfigProblem, ProblemSeverity};
use serde::Serialize;

use crate::failure::CommandFailure;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// A reader who has gone away (`| head`) is no failure of ours.
pub(crate) fn print(text: &str) -> Result<(), CommandFailure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandFailure::new(
            format!("cannot write the output: {error}"),
            "check where it goes",
        )),
        _ => Ok(()),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CommandFailure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        CommandFailure::new(
            format!("cannot write JSON: {error}"),
            "report this as a bug",
        )
    })?;
    print(&format!("{text}\n"))
}

/// What strangers wrote is shown on a person's terminal: no control character of theirs acts there.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Bytes as people say them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths >= 100 {
        true => format!("{} {}", tenths / 10, UNITS[unit]),
        false => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}

/// Where something stands, on a terminal in one line that is written over until it is done.
pub(crate) fn progress(text: &str, done: bool) {
    let mut err = anstream::stderr().lock();
    let end = if done { "\n" } else { "" };
    let over = if io::stderr().is_terminal() {
        "\r\u{1b}[K"
    } else {
        ""
    };
    let _ = write!(err, "{over}{}{end}", printable(text));
    let _ = err.flush();
}

/// The problem as it reads, with its first word coloured.
pub(crate) fn painted(problem: &ConfigProblem) -> String {
    let (word, style) = match problem.severity() {
        ProblemSeverity::Error => ("error", RED),
        ProblemSeverity::Warning => ("warning", YELLOW),
    };
    let text = problem.to_string();
    let rest = text.strip_prefix(word).unwrap_or(&text);
    format!("{style}{word}{style:#}{rest}")
}

pub(crate) fn failure(failure: &hermetic_app::AppFailure) {
    let mut err = anstream::stderr().lock();
    let _ = match failure {
        hermetic_app::AppFailure::Config(problems) => {
            let texts: Vec<String> = problems.iter().map(painted).collect();
            let (errors, them) = match problems.count() {
                1 => ("1 error".to_owned(), "it"),
                count => (format!("{count} errors"), "them"),
            };
            writeln!(
                err,
                "{}\n\n{errors}: mend {them} and run `hermetic config check`",
                texts.join("\n\n"),
            )
        }
        hermetic_app::AppFailure::Backend(_) | hermetic_app::AppFailure::Other { .. } => {
            writeln!(
                err,
                "{RED}error{RED:#}: {failure}\n  = {}",
                failure.remedy()
            )
        }
    };
}
