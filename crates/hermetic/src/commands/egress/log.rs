//! `hermetic egress log`: what was reached and refused, past and as it happens.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use hermetic_app as app;
use hermetic_egress::{ConversationScope, EgressDecision, JournalEntry};

use super::super::load;
use crate::cli::CommandLine;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct EgressLogArgs {
    /// Keep printing new connections
    #[arg(long, short)]
    follow: bool,
    /// Show the last COUNT connections
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    last: usize,
    /// Show only refused connections
    #[arg(long)]
    refused: bool,
    /// Show only these conversations: a platform, or the start of a conversation's key
    #[arg(long = "for", value_name = "WHOM")]
    whom: Option<ConversationScope>,
    /// Print one JSON object on each line
    #[arg(long)]
    json: bool,
}

/// How often the file is looked at. A person reads this.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(cli: &CommandLine, args: &EgressLogArgs) -> Result<(), CommandFailure> {
    let config = load(cli)?;
    let journal = app::journal(&config);
    let failed = |error: std::io::Error| {
        if error.kind() == ErrorKind::PermissionDenied {
            return CommandFailure::new(
                format!("cannot read the record: {error}"),
                "run this as the user the gateway runs as",
            );
        }
        CommandFailure::caused(&error, "check the state folder")
    };
    // Opened before the past is read: nothing falls in between, and what is in both is told once.
    let mut tail = journal.tail().map_err(failed)?;
    let mut past = journal.past().map_err(failed)?;
    past.retain(|noted| args.wants(noted));
    let skip = past.len().saturating_sub(args.last);
    for noted in &past[skip..] {
        print(noted, args.json)?;
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        for noted in tail.more().map_err(failed)? {
            let told = past.contains(&noted);
            if args.wants(&noted) && !told {
                print(&noted, args.json)?;
            }
        }
        past.clear();
        thread::sleep(FOLLOW_INTERVAL);
    }
}

impl EgressLogArgs {
    fn wants(&self, noted: &JournalEntry) -> bool {
        let refused = matches!(noted.entry.verdict, EgressDecision::Refused { .. });
        let whose = self.whom.as_ref();
        (refused || !self.refused) && whose.is_none_or(|s| s.covers(&noted.entry.conversation))
    }
}

fn print(noted: &JournalEntry, json: bool) -> Result<(), CommandFailure> {
    if json {
        let line = serde_json::to_string(noted)
            .map_err(|error| CommandFailure::caused(&error, "report this as a bug"))?;
        return output::print(&format!("{line}\n"));
    }
    output::print(&line(noted))
}

/// Names come out of a sandbox: what could move a cursor is shown as what it is.
fn line(noted: &JournalEntry) -> String {
    let entry = &noted.entry;
    let at = noted.at;
    let verdict = match &entry.verdict {
        EgressDecision::Opened => format!("opened  by {}", entry.rule),
        EgressDecision::Closed { fault } => {
            let fault = fault.as_ref().map(|fault| format!(" ({fault})"));
            format!(
                "closed  {} up, {} down, {:.1} s{}",
                entry.bytes_up,
                entry.bytes_down,
                entry.duration.as_secs_f64(),
                fault.unwrap_or_default()
            )
        }
        EgressDecision::Refused { reason } => format!("refused {reason}"),
    };
    let text = format!(
        "{at:.0} {} {}:{} {verdict}",
        entry.conversation, entry.host, entry.port
    );
    let plain = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    plain.chain(['\n']).collect()
}
