//! `hermetic audit …`: the record of what was decided and run.

use std::collections::VecDeque;
use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_audit::{Head, Record, Report, WalkError, walk};
use hermetic_config::Config;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::load;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD, printable};
use crate::wiring;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// The last records, oldest first
    #[command(visible_alias = "list")]
    Show {
        /// How many
        #[arg(long, short = 'n', default_value_t = 50, value_name = "COUNT")]
        last: usize,
        /// Of this kind only: access, pairing, command, asked, answered, rule, egress
        #[arg(long)]
        kind: Option<String>,
        /// Of this conversation only
        #[arg(long, value_name = "KEY")]
        conversation: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Whether nothing in it was changed, removed or put in
    #[command(after_help = "\
A chain cannot show by itself that its end was cut off. Note the head that this prints somewhere
else, and later ask whether it is still there:
  hermetic audit verify --head 1042:9f86d0…")]
    Verify {
        /// A head that was noted earlier, and has to be there still
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<Head>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    let config = load(cli)?;
    match &args.command {
        AuditCommand::Show {
            last,
            kind,
            conversation,
            json,
        } => show(
            &config,
            *last,
            kind.as_deref(),
            conversation.as_deref(),
            *json,
        ),
        AuditCommand::Verify { head, json } => verify(&config, *head, *json),
    }
}

fn show(
    config: &Config,
    last: usize,
    kind: Option<&str>,
    conversation: Option<&str>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let path = wiring::audit_file(config);
    if !path.exists() {
        output::print(if as_json {
            ""
        } else {
            "nothing is recorded yet\n"
        })?;
        return Ok(Exit::Ok);
    }
    let wanted = |record: &Record| {
        let is = |field: &str, value: Option<&str>| {
            value.is_none_or(|value| record.event.get(field).and_then(Value::as_str) == Some(value))
        };
        is("kind", kind) && is("conversation", conversation)
    };
    let mut shown = VecDeque::new();
    let mut broken = None;
    for record in walk(&path)? {
        match record {
            Ok(record) if wanted(&record) => shown.push_back(record),
            Ok(_) => {}
            // What came before it is worth seeing all the same.
            Err(error) => broken = Some(error),
        }
        if shown.len() > last {
            shown.pop_front();
        }
    }
    let mut text = String::new();
    for record in &shown {
        let line = if as_json {
            in_json(record)
        } else {
            in_words(record)
        };
        let _ = writeln!(text, "{line}");
    }
    output::print(&text)?;
    broken.map_or(Ok(Exit::Ok), |error| Err(error.into()))
}

fn verify(config: &Config, noted: Option<Head>, as_json: bool) -> Result<Exit, Failure> {
    let path = wiring::audit_file(config);
    if !path.exists() && noted.is_none() {
        return say(&Report::default(), as_json);
    }
    let mut walk = walk(&path)?;
    let mut found = noted.is_none();
    while let Some(record) = walk.next() {
        record?;
        found |= noted.is_some() && noted == walk.report().head;
    }
    match noted.filter(|_| !found) {
        None => say(walk.report(), as_json),
        Some(noted) => Err(Failure::new(
            format!(
                "record {} with that hash is not there: the end was cut off, or it is of another file",
                noted.seq
            ),
            "compare with a copy of the file; where it went on after a move, look into the file before",
        )),
    }
}

fn say(report: &Report, as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        output::print_json(&json!({"holds": true, "report": report}))?;
        return Ok(Exit::Ok);
    }
    let mut text = format!("the chain holds: {} records", report.records);
    if let Some(first) = report.first.filter(|first| *first > 1) {
        let _ = write!(text, ", from number {first} on");
    }
    if report.mended > 0 {
        let _ = write!(text, ", {} writes were cut by a crash", report.mended);
    }
    if report.torn > 0 {
        let _ = write!(
            text,
            ", the last write was cut by a crash ({} bytes)",
            report.torn
        );
    }
    text.push('\n');
    if let Some(head) = report.head {
        let _ = writeln!(text, "head {head}");
    }
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn in_json(record: &Record) -> String {
    json!({"seq": record.seq, "at": time(record), "event": record.event}).to_string()
}

fn in_words(record: &Record) -> String {
    let mut line = format!("{:>6}  {}", record.seq, time(record));
    let kind = record.event.get("kind").and_then(Value::as_str);
    let _ = write!(line, "  {BOLD}{}{BOLD:#}", printable(kind.unwrap_or("?")));
    for (name, value) in &record.event {
        let value = match value {
            _ if name == "kind" => continue,
            Value::Null => continue,
            Value::String(text) if text.is_empty() => continue,
            Value::String(text) => printable(text),
            other => printable(&other.to_string()),
        };
        let _ = write!(line, "  {}={value}", printable(name));
    }
    line
}

fn time(record: &Record) -> String {
    Timestamp::from_millisecond(record.at.millis())
        .map_or_else(|_| record.at.millis().to_string(), |at| at.to_string())
}

impl From<WalkError> for Failure {
    fn from(error: WalkError) -> Self {
        let remedy = match &error {
            WalkError::Io { .. } => "check the path and its permissions",
            WalkError::Tampered { .. } => {
                "keep a copy; compare with a backup; move it aside and a new file goes on"
            }
        };
        Self::caused(&error, remedy)
    }
}
