//! `hermetic skills …`: what the agent knows how to do, and what it wants to be taught.

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_audit::{MemoryEvent, MemorySubject};
use hermetic_memory::{DraftError, DraftedFile, SkillCatalog, SkillDraft, SkillDrafts};
use serde_json::json;

use super::load;
use super::memory::write_note;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::ownership::refuse_root_for_another;
use crate::{log, output};

#[derive(Debug, clap::Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
enum SkillsCommand {
    /// List the skills there are, and those that wait for review
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a skill that waits, whole
    Review { id: String },
    /// Make a skill of exactly the text that review showed
    Approve { id: String },
    /// Drop a skill that waits
    Reject { id: String },
    /// Remove a skill that was approved here
    Remove { name: String },
}

pub(crate) fn run(cli: &CommandLine, args: &SkillsArgs) -> Result<ExitReason, CommandFailure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(act(cli, &args.command))
}

async fn act(cli: &CommandLine, command: &SkillsCommand) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    if !matches!(
        command,
        SkillsCommand::List { .. } | SkillsCommand::Review { .. }
    ) {
        by_hand::or_refuse(&config)?;
    }
    refuse_root_for_another(config.home())?;
    app::installation(config.home())?;
    let store = app::store(&config).await?;
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let (catalog, drafts) = app::skills(&config, &store, &redactor);
    let note = |act, whose: &str, what: &str| {
        write_note(&config, (MemorySubject::Skill, act), whose, what)
    };
    match command {
        SkillsCommand::List { json } => list(&catalog, &drafts, *json).await?,
        SkillsCommand::Review { id } => {
            let (row, draft) = drafts.find(id).await.map_err(|error| broken(&error))?;
            output::print(&reviewed(&row.owner, &row.digest, &draft))?;
        }
        SkillsCommand::Approve { id } => {
            let (row, _) = drafts.find(id).await.map_err(|error| broken(&error))?;
            // Written down before it is used.
            note(
                MemoryEvent::Approved,
                &row.owner,
                &format!("{} {id}", row.name),
            )?;
            let draft = drafts.approve(id).await.map_err(|error| broken(&error))?;
            output::print(&format!(
                "{} is used from the next conversation on.\n",
                draft.name
            ))?;
        }
        SkillsCommand::Reject { id } => {
            let (row, _) = drafts.find(id).await.map_err(|error| broken(&error))?;
            drafts.reject(id).await.map_err(|error| broken(&error))?;
            note(
                MemoryEvent::Rejected,
                &row.owner,
                &format!("{} {id}", row.name),
            )?;
            output::print("Dropped.\n")?;
        }
        SkillsCommand::Remove { name } => {
            remove(&catalog, name)?;
            note(MemoryEvent::Removed, "", name)?;
            output::print(&format!("{name} is removed.\n"))?;
        }
    }
    Ok(ExitReason::Ok)
}

async fn list(
    catalog: &SkillCatalog,
    drafts: &SkillDrafts,
    as_json: bool,
) -> Result<(), CommandFailure> {
    let waiting = drafts
        .waiting()
        .await
        .map_err(|error| broken(&error.into()))?;
    let all = catalog.all();
    if as_json {
        let skills = all.iter().map(|skill| {
            json!({"name": skill.name, "description": skill.description, "category": skill.category,
                "approved_here": skill.is_own})
        });
        let waiting = waiting
            .iter()
            .map(|(row, _)| json!({"id": row.digest, "name": row.name, "by": row.owner}));
        return output::print_json(
            &json!({"skills": skills.collect::<Vec<_>>(), "waiting": waiting.collect::<Vec<_>>()}),
        );
    }
    let mut text = String::new();
    for skill in &all {
        let about: String = skill.description.chars().take(80).collect();
        let whose = if skill.is_own { "approved" } else { "read" };
        let _ = writeln!(text, "{whose:9} {:30} {about}", skill.name);
    }
    for (row, draft) in &waiting {
        let what = if draft.deleted {
            "wants it removed"
        } else {
            "waits for review"
        };
        let _ = writeln!(text, "{what}: {} {} by {}", row.digest, row.name, row.owner);
    }
    if text.is_empty() {
        text.push_str("there are no skills\n");
    }
    output::print(&text)
}

/// The whole text, with what a terminal would act on made visible.
fn reviewed(owner: &str, digest: &str, draft: &SkillDraft) -> String {
    let mut text = format!("{} by {owner}\n", draft.name);
    if draft.deleted {
        text.push_str("The skill is to be removed.\n");
    }
    for (path, file) in &draft.files {
        match file {
            DraftedFile::Removed => {
                let _ = writeln!(text, "\n--- {path} is removed");
            }
            DraftedFile::Written(content) => {
                let _ = writeln!(text, "\n--- {path}");
                for line in content.lines() {
                    let plain: String = line
                        .chars()
                        .map(|c| {
                            if c.is_control() && c != '\t' {
                                '\u{fffd}'
                            } else {
                                c
                            }
                        })
                        .collect();
                    let _ = writeln!(text, "  {plain}");
                }
            }
        }
    }
    let _ = writeln!(text, "\nhermetic skills approve {digest}");
    text
}

fn remove(catalog: &SkillCatalog, name: &str) -> Result<(), CommandFailure> {
    let none =
        |what: &str, remedy: &str| Err(CommandFailure::new(format!("{name}: {what}"), remedy));
    match catalog.find(name) {
        Some(skill) if skill.is_own => std::fs::remove_dir_all(&skill.folder)
            .map_err(|error| CommandFailure::caused(&error, "remove its folder by hand")),
        Some(skill) => none(
            "it was not approved here",
            &format!(
                "remove {} by hand, or name it in skills.disabled",
                skill.folder.display()
            ),
        ),
        None => none(
            "there is no such skill",
            "`hermetic skills list` names those there are",
        ),
    }
}

fn broken(error: &DraftError) -> CommandFailure {
    CommandFailure::caused(error, "`hermetic skills list` names what waits")
}
