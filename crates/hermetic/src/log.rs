//! Log lines on stderr: for people on a terminal, as JSON when asked.
//!
//! Every line of one process carries the same `run`, so that lines of two starts in one file can be
//! told apart. Fields are facts; secrets are of a type that prints as `[secret]`. What others put
//! into their words, such as an address with a token in it, is taken out of the finished line.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use hermetic_redact::Redactor;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::cli::{CommandLine, LogFormat};
use crate::failure::CommandFailure;

/// `HERMETIC_LOG` overrules `--verbose` with a filter such as `hermetic=debug`.
pub(crate) fn start(cli: &CommandLine) -> Result<(), CommandFailure> {
    let level = match (cli.global.verbose, cli.command.serves()) {
        (0, false) => LevelFilter::WARN,
        (0, true) | (1, false) => LevelFilter::INFO,
        (1, true) | (2, false) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .with_env_var("HERMETIC_LOG")
        .from_env()
        .map_err(|error| {
            CommandFailure::new(
                format!("HERMETIC_LOG is not a log filter: {error}"),
                "write a level such as `debug`, or `part=level` separated by commas",
            )
        })?;
    // Its log repeats whole messages: what tools were asked and what they answered.
    let filter = match "rmcp=warn".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let colours =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(|| RedactedStderr)
        .with_ansi(colours);
    match cli.global.log_format {
        LogFormat::Human => builder.with_target(false).compact().init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

static KNOWN: OnceLock<Redactor> = OnceLock::new();

/// From here on the log shows none of the secrets that this one knows.
pub(crate) fn hide(redactor: &Redactor) {
    let _ = KNOWN.set(redactor.clone());
}

/// Stderr, but for secrets. An event is handed over in one piece.
///
/// A line that cannot be written is lost: the log may stand on the disk that is full, and whoever is told of it
/// would print to the same place and panic.
struct RedactedStderr;

impl Write for RedactedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _lost = match KNOWN.get() {
            Some(redactor) => io::stderr().write_all(redactor.redact_bytes(line).get()),
            None => io::stderr().write_all(line),
        };
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _lost = io::stderr().flush();
        Ok(())
    }
}
