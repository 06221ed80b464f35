//! `hermetic demo`: a model that was talked into everything, and what each attempt meets.
//!
//! Nothing is pretended but the platform and the model: the gateway, its sandbox, its way out and its
//! redaction are the ones that serve real chats. What an attempt met is read from what it brought back and
//! from what stands on this machine afterwards.

mod attempt;
mod chat;
mod model;
mod screen;
mod stage;

use std::time::Duration;

use hermetic_types::BackendKind;
use tokio::sync::mpsc;

use self::attempt::{AttemptOutcome, AttemptVerdict, DemoAttempt};
use self::chat::{ADA, BOB};
use self::model::DemoCallResult;
use self::stage::{DemoStage, StoryGateway};
use super::on_runtime;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

/// What no step of the story takes.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs no account, no key and no network. It works in a folder of its own, which is gone afterwards, and \
sends nothing anywhere: hosts that are named in it are refused before anybody looks for them.

Exits with 0 if nothing got through, with 1 if something did or no sandbox can be had. An attempt that needs a \
program which is not here is named as not tried.")]
pub(crate) struct DemoArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DemoArgs) -> Result<ExitReason, CommandFailure> {
    on_runtime(async {
        let stage = Box::pin(DemoStage::build()).await?;
        let attempts = attempt::all(&stage.bait);
        let (tell, told) = mpsc::channel(1);
        let played = match stage.open(&attempts, tell).await {
            Err(failure) => Err(failure),
            Ok(gateway) => {
                let played = tokio::select! {
                    played = tokio::time::timeout(PATIENCE, play(&stage, &gateway, &attempts, told, args)) => {
                        played.unwrap_or_else(|_| Err(too_long()))
                    }
                    _ = tokio::signal::ctrl_c() => Err(interrupted()),
                };
                // Before the stage is cleared: a gateway that goes on would make new sandboxes.
                let _ = tokio::time::timeout(PATIENCE, gateway.stop()).await;
                played
            }
        };
        // However it ended, nothing of it stays.
        stage.clear().await;
        played
    })
}

async fn play(
    stage: &DemoStage,
    gateway: &StoryGateway,
    attempts: &[DemoAttempt],
    mut told: mpsc::Receiver<DemoCallResult>,
    args: &DemoArgs,
) -> Result<ExitReason, CommandFailure> {
    say(args, &screen::opening())?;

    gateway
        .chat
        .say(BOB, &format!("/sh echo {} > diary.txt", stage.bait.diary));
    gateway.chat.answer_to(BOB).await;
    say(args, &screen::told_by_ada())?;
    gateway.chat.say(ADA, model::REQUEST);

    let mut met = Vec::new();
    for (number, attempt) in (1..).zip(attempts) {
        say(args, &screen::attempt(number, attempt))?;
        let observed = told.recv().await.ok_or_else(no_model)?;
        let one = attempt.judge(&observed, &stage.bait);
        say(args, &screen::met(&one))?;
        met.push(one);
    }
    let answer = gateway.chat.answer_to(ADA).await;
    let leaked = answer.contains(&stage.bait.key);
    say(args, &screen::answer(&answer, leaked))?;
    let ending = DemoEnding::of(&met, leaked);
    if args.json {
        output::print_json(&screen::as_json(attempts, &met, leaked))?;
    } else {
        output::print(&screen::closing(ending, attempts.len()))?;
    }
    Ok(match ending {
        DemoEnding::Held { .. } => ExitReason::Ok,
        DemoEnding::GotThrough | DemoEnding::NothingTried => ExitReason::Failed,
    })
}

/// What the whole story shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DemoEnding {
    Held {
        untried: usize,
    },
    GotThrough,
    /// Nothing ran, which is no success.
    NothingTried,
}

impl DemoEnding {
    fn of(met: &[AttemptOutcome], leaked: bool) -> Self {
        let count = |verdict| met.iter().filter(|one| one.verdict == verdict).count();
        let untried = count(AttemptVerdict::Untried);
        if leaked || count(AttemptVerdict::GotThrough) > 0 {
            Self::GotThrough
        } else if untried == met.len() {
            Self::NothingTried
        } else {
            Self::Held { untried }
        }
    }
}

fn say(args: &DemoArgs, text: &str) -> Result<(), CommandFailure> {
    match args.json {
        true => Ok(()),
        false => output::print(text),
    }
}

fn interrupted() -> CommandFailure {
    CommandFailure::new("interrupted", "start it again").with(130)
}

fn too_long() -> CommandFailure {
    CommandFailure::new(
        "the demonstration did not come to its end",
        format!(
            "`hermetic doctor --backend {}` looks at this machine",
            BackendKind::Native
        ),
    )
}

fn no_model() -> CommandFailure {
    CommandFailure::new(
        "the gateway ended before the story did",
        "report this as a bug",
    )
}
