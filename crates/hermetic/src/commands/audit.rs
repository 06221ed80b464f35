//! `hermetic audit …`: the record of what was decided and run.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_audit::{AuditPaths, AuditRecord, ChainHead, ChainReport, ProofStrength, walk_at};
use hermetic_config::Config;
use serde_json::{Value, json};

use super::{audit_witnesses, load};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Show the last records, oldest first
    #[command(visible_alias = "list")]
    Show {
        /// Show the last COUNT records
        #[arg(long, short = 'n', default_value_t = 50, value_name = "COUNT")]
        last: usize,
        /// Show only this kind: access, pairing, command, asked, answered, rule, egress
        #[arg(long)]
        kind: Option<String>,
        /// Show only this conversation
        #[arg(long, value_name = "KEY")]
        conversation: Option<String>,
        /// Print one JSON object on each line
        #[arg(long)]
        json: bool,
    },
    /// Print the head of the record, to be noted somewhere else
    Head,
    /// Check that no record was changed, removed, cut off or added
    #[command(after_help = "\
Each record is sealed with a key, and a separate file notes where the record ends. Somebody who can \
read the key and write all of these files could still forge them. So note the head that this command \
prints somewhere else, and check later that it is still there:
  hermetic audit verify --head 1042:9f86d0…

Gateways that share a store write down where each other's records stand. With copies of those records,
each with its key and note beside it, one that was cut or written anew shows:
  hermetic audit verify --also other-home/state/audit.jsonl")]
    Verify {
        /// Check that the record still holds this head, noted earlier
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<ChainHead>,
        /// Check this record of another gateway too, and what each says of the other
        #[arg(long, value_name = "FILE", conflicts_with = "head")]
        also: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(cli: &CommandLine, args: &AuditArgs) -> Result<ExitReason, CommandFailure> {
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
        AuditCommand::Head => head(&config),
        AuditCommand::Verify { head, also, json } if also.is_empty() => {
            verify(&config, *head, *json)
        }
        AuditCommand::Verify { also, json, .. } => audit_witnesses::verify(&config, also, *json),
    }
}

fn show(
    config: &Config,
    last: usize,
    kind: Option<&str>,
    conversation: Option<&str>,
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let places = app::audit_places(config);
    if !places.record().exists() {
        output::print(if as_json {
            ""
        } else {
            "nothing is recorded yet\n"
        })?;
        return Ok(ExitReason::Ok);
    }
    let wanted = |record: &AuditRecord| {
        let is = |field: &str, value: Option<&str>| {
            value.is_none_or(|value| record.event.get(field).and_then(Value::as_str) == Some(value))
        };
        is("kind", kind) && is("conversation", conversation)
    };
    let mut shown = VecDeque::new();
    let mut broken = None;
    for record in walk_at(&places)? {
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
    broken.map_or(Ok(ExitReason::Ok), |error| Err(error.into()))
}

fn head(config: &Config) -> Result<ExitReason, CommandFailure> {
    let places = app::audit_places(config);
    match walk_at(&places)?.finish()?.head {
        Some(head) => output::print(&format!("{head}\n"))?,
        None => output::print("nothing is recorded yet\n")?,
    }
    Ok(ExitReason::Ok)
}

fn verify(
    config: &Config,
    noted: Option<ChainHead>,
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let places = app::audit_places(config);
    let mut walk = walk_at(&places)?;
    let mut found = noted.is_none();
    while let Some(record) = walk.next() {
        record?;
        found |= noted.is_some() && noted == walk.report().head;
    }
    match noted.filter(|_| !found) {
        None => say(walk.report(), (config, &places), as_json),
        Some(noted) => Err(CommandFailure::new(
            format!(
                "record {} with that hash is not there: the end was cut off, or it is of another file",
                noted.seq
            ),
            "compare with a copy of the file; where it went on after a move, look into the file before",
        )),
    }
}

fn say(
    report: &ChainReport,
    (config, places): (&Config, &AuditPaths),
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let told = audit_witnesses::told(config, places);
    // A store that does not answer proves nothing, and the record is whole without it.
    let (told, unasked) = match told {
        Ok(told) => (told, None),
        Err(error) => (None, Some(error.to_string())),
    };
    if let Some(told) = &told {
        audit_witnesses::holds(told)?;
    }
    if as_json {
        let beside = json!({
            "key": places.key_is_beside(),
            "note": places.head_is_beside(),
        });
        output::print_json(
            &json!({"holds": true, "report": report, "beside": beside, "told": told, "not_asked": unasked}),
        )?;
        return Ok(ExitReason::Ok);
    }
    output::print(&chain_in_words(report, places))?;
    if let Some(told) = told.filter(|told| told.proven > 0) {
        output::print(&format!(
            "it goes as far as the gateway told the others ({} heads)\n",
            told.proven
        ))?;
    }
    if let Some(why) = unasked {
        output::print(&format!(
            "not proven: what the gateway told the others, in the store that they share ({why})\n"
        ))?;
    }
    Ok(ExitReason::Ok)
}

fn chain_in_words(report: &ChainReport, places: &AuditPaths) -> String {
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
    if let Some(unfinished) = report.unfinished {
        let _ = write!(
            text,
            ", records up to number {} were being written when it stopped: a crash cut them short, or somebody did",
            unfinished.seq
        );
    }
    if report.resumed > 0 {
        let _ = write!(
            text,
            ", {} times it went on behind an end that was not the noted one (look for \"resumed\")",
            report.resumed
        );
    }
    text.push('\n');
    if report.records > 0 {
        let _ = writeln!(text, "{}", proven(report));
        if let Some(first) = report.first.filter(|first| *first > 1) {
            let _ = writeln!(
                text,
                "not proven: the {} records before the first one here; verify the files that they were moved to",
                first - 1
            );
        }
        if let Some(doubt) = not_proven_by_place(places) {
            let _ = writeln!(text, "{doubt}");
        }
    }
    if let Some(head) = report.head {
        let _ = writeln!(text, "head {head}");
    }
    text
}

/// What the walk proves against somebody who may write the file, and what it does not.
fn proven(report: &ChainReport) -> String {
    match report.proof {
        ProofStrength::Whole => "proven by its key: every record, and that none was cut off".to_owned(),
        ProofStrength::OldBeginning => format!(
            "proven by its key: the last {} records, and that none was cut off; not proven: the first \
             {}, which are older than the key",
            report.sealed,
            report.records - report.sealed
        ),
        ProofStrength::Unsealed => {
            "not proven: no record carries a seal yet, so that one written anew as a \
             whole would look the same"
                .to_owned()
        }
        ProofStrength::NoKey => {
            "not proven: the key is not there (audit.key, or security.audit_key_file), so that a record written anew as \
             a whole, or cut, would look the same"
                .to_owned()
        }
        ProofStrength::NoNote => {
            "proven by its key: every record; not proven: that none was cut off, because \
             the note of where it ended is gone (audit.head, or security.audit_head_file)"
                .to_owned()
        }
    }
}

/// What no walk can prove because of where the key and the note lie.
fn not_proven_by_place(places: &AuditPaths) -> Option<&'static str> {
    match (places.key_is_beside(), places.head_is_beside()) {
        (true, true) => Some(
            "not proven: that the whole folder was not put back from an earlier day, nor anything against \
             whoever may read its key; security.audit_head_file and security.audit_key_file put the note \
             and the key elsewhere, and the gateway's log names the head at each start",
        ),
        (false, true) => Some(
            "not proven: that the whole folder was not put back from an earlier day; \
             security.audit_head_file puts the note elsewhere",
        ),
        (true, false) => Some(
            "not proven: anything against whoever may read the key beside the record and write the note; \
             security.audit_key_file puts the key elsewhere",
        ),
        (false, false) => None,
    }
}

fn in_json(record: &AuditRecord) -> String {
    json!({"seq": record.seq, "at": time(record), "event": record.event}).to_string()
}

fn in_words(record: &AuditRecord) -> String {
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

fn time(record: &AuditRecord) -> String {
    record.at.to_string()
}
