//! `hermetic memory …`: what is remembered of people and groups, for the operator.

use std::fmt::Write as _;
use std::io::Read as _;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_audit::{AuditEvent, AuditText, MemoryEvent, MemorySubject};
use hermetic_config::Config;
use hermetic_memory::{Memories, MemoryError, MemoryOwner, MemoryTarget};
use hermetic_types::{Clock as _, SystemClock};
use serde_json::json;

use super::load;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::ownership::refuse_root_for_another;
use crate::{log, output};

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// List whose memories there are, and what waits for review
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what is remembered of an owner
    Show {
        /// owner, person:<platform>:<id> or group:<conversation>, as list names it
        owner: String,
    },
    /// Replace the entries of an owner by what is on standard input
    Edit {
        owner: String,
        /// memory or user
        target: String,
    },
    /// Forget an owner's entry, or all that is remembered of them
    Remove {
        owner: String,
        /// A part of the one entry; everything if not given
        #[arg(long, value_name = "TEXT")]
        entry: Option<String>,
    },
    /// Take over a change that waits
    Approve { id: String },
    /// Drop a change that waits
    Reject { id: String },
    /// Print an owner's entries as Hermes keeps them
    Export {
        owner: String,
        /// memory or user
        target: String,
    },
}

pub(crate) fn run(cli: &CommandLine, args: &MemoryArgs) -> Result<ExitReason, CommandFailure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(act(cli, &args.command))
}

async fn act(cli: &CommandLine, command: &MemoryCommand) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let only_looks = matches!(
        command,
        MemoryCommand::List { .. } | MemoryCommand::Show { .. } | MemoryCommand::Export { .. }
    );
    if !only_looks {
        by_hand::or_refuse(&config)?;
    }
    refuse_root_for_another(config.home())?;
    app::installation(config.home())?;
    let store = app::store(&config).await?;
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let memories = app::memories(&config, &store, &redactor);
    let now = SystemClock.now();
    match command {
        MemoryCommand::List { json } => list(&memories, *json).await?,
        MemoryCommand::Show { owner } => show(&memories, &read_owner(owner)?).await?,
        MemoryCommand::Export { owner, target } => {
            let entries = memories
                .read(&read_owner(owner)?, read_target(target)?)
                .await;
            output::print(&entries.map_err(|error| broken(&error.into()))?.text())?;
        }
        MemoryCommand::Edit { owner, target } => {
            edit(&memories, &config, (owner, target)).await?;
        }
        MemoryCommand::Remove { owner, entry } => {
            let who = read_owner(owner)?;
            remove(&memories, &who, entry.as_deref()).await?;
            let what = entry.as_deref().unwrap_or("everything");
            note(&config, MemoryEvent::Removed, owner, what)?;
            output::print("Forgotten.\n")?;
        }
        MemoryCommand::Approve { id } => {
            let who = owner_of(&memories, id).await?;
            let done = memories.approve(&who, id, now).await;
            done.map_err(|error| broken(&error))?;
            note(&config, MemoryEvent::Approved, &who.to_string(), id)?;
            output::print("It is remembered.\n")?;
        }
        MemoryCommand::Reject { id } => {
            let who = owner_of(&memories, id).await?;
            memories
                .reject(&who, id)
                .await
                .map_err(|error| broken(&error))?;
            note(&config, MemoryEvent::Rejected, &who.to_string(), id)?;
            output::print("It is not remembered.\n")?;
        }
    }
    Ok(ExitReason::Ok)
}

/// Takes an owner's entries anew, as they are typed.
async fn edit(
    memories: &Memories,
    config: &Config,
    (owner, target): (&str, &str),
) -> Result<(), CommandFailure> {
    let (who, target) = (read_owner(owner)?, read_target(target)?);
    // The version of before the text is typed: what somebody changed meanwhile is not
    // written over.
    let versioned = memories.versioned(&who, target).await;
    let (_, version) = versioned.map_err(|error| broken(&error.into()))?;
    let text = typed()?;
    let written = memories
        .rewrite(&who, target, (&text, version), SystemClock.now())
        .await;
    written.map_err(|error| broken(&error))?;
    note(config, MemoryEvent::Edited, owner, target.name())?;
    output::print("Written. Conversations that are under way have it from their next turn on.\n")?;
    Ok(())
}

async fn list(memories: &Memories, as_json: bool) -> Result<(), CommandFailure> {
    let rows = memories.rows();
    let kept = rows.all().await.map_err(|error| broken(&error.into()))?;
    let waiting = rows
        .waiting()
        .await
        .map_err(|error| broken(&error.into()))?;
    if as_json {
        let kept = kept.iter().map(|row| {
            json!({"owner": row.owner, "target": row.target,
            "characters": row.entries.chars().count(), "changed_at": row.changed_at.to_string()})
        });
        let waiting: Vec<_> = waiting
            .iter()
            .map(|row| {
                json!({"id": row.id, "owner": row.owner,
            "target": row.target, "operations": row.operations})
            })
            .collect();
        return output::print_json(
            &json!({"memories": kept.collect::<Vec<_>>(), "waiting": waiting}),
        );
    }
    let mut text = String::new();
    for row in &kept {
        let _ = writeln!(
            text,
            "{:40} {:7} {} characters",
            row.owner,
            row.target,
            row.entries.chars().count()
        );
    }
    for row in &waiting {
        let _ = writeln!(
            text,
            "waits: {} {} {} {}",
            row.id, row.owner, row.target, row.operations
        );
    }
    if text.is_empty() {
        text.push_str("nothing was remembered yet\n");
    }
    output::print(&text)
}

async fn show(memories: &Memories, owner: &MemoryOwner) -> Result<(), CommandFailure> {
    let mut text = String::new();
    for target in MemoryTarget::ALL {
        let entries = memories.read(owner, target).await;
        let entries = entries.map_err(|error| broken(&error.into()))?;
        let limit = memories.of_target(target).char_limit;
        let _ = writeln!(
            text,
            "{} ({} of {limit} characters)",
            target.file(),
            entries.chars()
        );
        for entry in entries.iter() {
            let _ = writeln!(text, "- {}", entry.replace('\n', "\n  "));
        }
    }
    output::print(&text)
}

async fn remove(
    memories: &Memories,
    owner: &MemoryOwner,
    entry: Option<&str>,
) -> Result<(), CommandFailure> {
    let Some(entry) = entry else {
        let forgotten = memories.rows().forget(&owner.to_string()).await;
        return match forgotten.map_err(|error| broken(&error.into()))? {
            true => Ok(()),
            false => Err(CommandFailure::new(
                format!("nothing is kept here for {owner}"),
                "`hermetic memory list` names those there are; what Hermes wrote is in its own files",
            )),
        };
    };
    let now = SystemClock.now();
    let mut removed = memories
        .remove(owner, MemoryTarget::Memory, entry, now)
        .await;
    if matches!(removed, Err(MemoryError::Bad(_))) {
        removed = memories.remove(owner, MemoryTarget::User, entry, now).await;
    }
    removed.map_err(|error| broken(&error))
}

async fn owner_of(memories: &Memories, id: &str) -> Result<MemoryOwner, CommandFailure> {
    let waiting = memories.rows().waiting().await;
    let waiting = waiting.map_err(|error| broken(&error.into()))?;
    let found = waiting.into_iter().find(|row| row.id == id);
    found
        .and_then(|row| row.owner.parse().ok())
        .ok_or_else(|| broken(&MemoryError::NoSuchRequest))
}

fn read_owner(text: &str) -> Result<MemoryOwner, CommandFailure> {
    text.parse().map_err(|()| {
        CommandFailure::new(
            format!("{text:?} names nobody"),
            "an owner is `owner`, person:<platform>:<id> or group:<conversation>; `hermetic memory list` names them",
        )
    })
}

fn read_target(text: &str) -> Result<MemoryTarget, CommandFailure> {
    MemoryTarget::of_name(text).ok_or_else(|| {
        CommandFailure::new(format!("{text:?} is no target"), "write memory or user")
    })
}

/// What is on standard input, up to more than any memory may have.
fn typed() -> Result<String, CommandFailure> {
    let mut text = String::new();
    let read = std::io::stdin()
        .lock()
        .take(1 << 20)
        .read_to_string(&mut text);
    read.map_err(|error| {
        CommandFailure::caused(&error, "write the entries as text, with lines of § between")
    })?;
    Ok(text)
}

fn broken(error: &MemoryError) -> CommandFailure {
    CommandFailure::caused(error, "`hermetic memory list` shows what there is")
}

/// In the record of this home.
fn note(config: &Config, act: MemoryEvent, owner: &str, what: &str) -> Result<(), CommandFailure> {
    write_note(config, (MemorySubject::Memory, act), owner, what)
}

pub(super) fn write_note(
    config: &Config,
    (subject, act): (MemorySubject, MemoryEvent),
    owner: &str,
    what: &str,
) -> Result<(), CommandFailure> {
    let redactor = app::redactor(config);
    let event = AuditEvent::Memory {
        subject,
        act,
        owner: redactor.redact(owner).into(),
        what: redactor.redact(what).into(),
        by: AuditText::constant("the command line"),
    };
    app::audit(config)?.append(&event, SystemClock.now())?;
    Ok(())
}
