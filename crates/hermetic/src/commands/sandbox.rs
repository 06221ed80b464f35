//! `hermetic sandbox …`: what lives, and seeing it out by hand.

mod copy;
mod exec;
pub(super) mod rows;

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_config::HomeFolder;
use hermetic_sandbox::Sandbox;
use hermetic_store::{LedgerState, SandboxLedger};
use hermetic_types::{Clock as _, RunId, SystemClock};
use hermetic_warden::client::RunEvent;
use serde_json::json;

use self::rows::{ListedSandbox, RowState};
use super::{load, on_this_thread};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{LockError, NoGateway};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A sandbox is named by its id, by as much of its beginning as no other has, by the name of a session, or by \
the end of its conversation's key.

Examples:
  hermetic sandbox list
  hermetic sandbox inspect 3f9
  hermetic sandbox stop work
  hermetic sandbox exec work -- ls
  hermetic sandbox cp work:report.csv .
  hermetic sandbox destroy telegram:dm:42")]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
enum SandboxCommand {
    /// List every sandbox of this home, alive or not
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one sandbox: its settings, processes and state
    Inspect {
        #[arg(value_name = "SANDBOX")]
        id: String,
        /// Print JSON (this is the default)
        #[arg(long)]
        json: bool,
    },
    /// Show what ran in it lately; with the id of a run, its output so far
    Logs {
        #[arg(value_name = "SANDBOX")]
        id: String,
        run: Option<RunId>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one command in a sandbox that lives
    Exec(exec::SandboxExecArgs),
    /// Copy files into a sandbox that lives, or out of it
    Cp(copy::SandboxCopyArgs),
    /// End its processes; a kept sandbox keeps its files
    Stop {
        #[arg(value_name = "SANDBOX")]
        id: String,
    },
    /// End it and remove all of its files
    #[command(visible_alias = "rm")]
    Destroy {
        #[arg(required = true, value_name = "SANDBOX")]
        ids: Vec<String>,
    },
    /// Destroy sandboxes that are broken or that no conversation uses any more
    Prune {
        /// Also destroy stopped sandboxes with kept files
        #[arg(long)]
        stopped: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(cli: &CommandLine, args: &SandboxArgs) -> Result<ExitReason, CommandFailure> {
    on_this_thread(act(cli, &args.command))
}

async fn act(cli: &CommandLine, command: &SandboxCommand) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let installation = app::installation(config.home())?;
    let backends = app::all_backends(&config, &installation);
    let store = app::store(&config).await?;
    if matches!(command, SandboxCommand::Prune { .. }) {
        // Their locks are in other homes.
        app::refuse_beside_shared_work(&config, &store).await?;
    }
    let ledger = store.ledger();
    // Before what there is is looked at, and until it is done.
    let _no_gateway = match command {
        SandboxCommand::Prune { .. } => Some(without_gateway(config.home())?),
        _ => None,
    };
    let rows = rows::gather(&backends, &ledger).await?;
    match command {
        SandboxCommand::List { json } => {
            let rows = rows::with_sizes(rows).await;
            match json {
                true => output::print_json(&rows)?,
                false => output::print(&rows::table(&rows, SystemClock.now()))?,
            }
        }
        SandboxCommand::Inspect { id, .. } => inspect(rows::find(&rows, id)?).await?,
        SandboxCommand::Logs { id, run, json } => {
            logs(rows::find(&rows, id)?, run.as_ref(), *json).await?;
        }
        SandboxCommand::Exec(args) => {
            return exec::run(&config, &rows, args).await;
        }
        SandboxCommand::Cp(args) => copy::run(&rows, args).await?,
        SandboxCommand::Stop { id } => {
            let row = rows::find(&rows, id)?;
            row.backend()?.stop(&row.id).await?;
            ledger.mark(&row.id, LedgerState::Stopped).await?;
        }
        SandboxCommand::Destroy { ids } => destroy(&rows, &ledger, ids).await?,
        SandboxCommand::Prune { stopped, json } => {
            prune(&rows, &ledger, *stopped, *json).await?;
        }
    }
    Ok(ExitReason::Ok)
}

async fn inspect(row: &ListedSandbox) -> Result<(), CommandFailure> {
    let info = match row.state {
        RowState::Running => Some(reach(row).await?.warden().info().await?),
        _ => None,
    };
    output::print_json(&json!({
        "sandbox": row,
        "warden": info.map(|info| json!({
            "pid_inside": info.pid,
            "memory_bytes": info.rss_bytes,
            "seconds_up": info.uptime.as_secs(),
            "clients": info.clients,
            "runs": info.runs,
            "shells": info.shells,
        })),
    }))?;
    Ok(())
}

async fn destroy(
    rows: &[ListedSandbox],
    ledger: &SandboxLedger,
    ids: &[String],
) -> Result<(), CommandFailure> {
    // All of them are found before the first is destroyed.
    let meant = ids.iter().map(|id| rows::find(rows, id));
    for row in meant.collect::<Result<Vec<_>, _>>()? {
        // The row goes last: without it nobody would know of one that could not be
        // destroyed.
        row.backend()?.destroy(&row.id).await?;
        ledger.forget(&row.id).await?;
    }
    Ok(())
}

async fn prune(
    rows: &[ListedSandbox],
    ledger: &SandboxLedger,
    stopped: bool,
    json: bool,
) -> Result<(), CommandFailure> {
    let mut gone = Vec::new();
    for row in rows.iter().filter(|row| row.is_rubbish(stopped)) {
        row.backend()?.destroy(&row.id).await?;
        ledger.forget(&row.id).await?;
        gone.push(row.id.clone());
    }
    match json {
        true => output::print_json(&gone)?,
        false => output::print(&format!("{} removed\n", gone.len()))?,
    }
    Ok(())
}

/// A gateway that began meanwhile would have sandboxes destroyed that it has just taken up.
fn without_gateway(home: &HomeFolder) -> Result<NoGateway, CommandFailure> {
    NoGateway::hold(home).map_err(|error| match error {
        LockError::Taken { .. } => CommandFailure::new(
            "the gateway is running and removes such sandboxes itself",
            "stop it first, or destroy a sandbox by its id",
        ),
        error @ LockError::Io { .. } => {
            CommandFailure::caused(&error, "run it as the user whose home this is")
        }
    })
}

async fn logs(row: &ListedSandbox, run: Option<&RunId>, json: bool) -> Result<(), CommandFailure> {
    if row.state != RowState::Running {
        return Err(CommandFailure::new(
            format!("sandbox {} is {}", row.id, row.state.name()),
            "a sandbox keeps what its commands wrote only while it lives",
        ));
    }
    let sandbox = reach(row).await?;
    let Some(run) = run else {
        let runs = sandbox.warden().runs().await?;
        let mut text = String::new();
        let mut values = Vec::new();
        for run in runs {
            let words: Vec<_> = run
                .argv
                .iter()
                .map(|word| String::from_utf8_lossy(&word.0).into_owned())
                .collect();
            let state = match &run.ended {
                None => "running".to_owned(),
                Some(ended) => format!("{:?}", ended.status).to_lowercase(),
            };
            let line = words.join(" ");
            let short: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
            let _ = writeln!(text, "{}  {state:14} {:>9} B  {short}", run.id, run.output);
            values.push(json!({
                "id": run.id, "command": words, "state": state, "output_bytes": run.output,
            }));
        }
        return if json {
            output::print_json(&values)
        } else {
            output::print(&text)
        };
    };
    // Looked at and not picked up: that would take the run from the gateway, and end it with us.
    let mut told = Vec::new();
    for event in sandbox.warden().look(run.clone(), 0).await? {
        match event {
            RunEvent::Out(bytes) | RunEvent::Err(bytes) => told.extend_from_slice(&bytes),
            RunEvent::Skipped(lost) => {
                told.extend_from_slice(format!("\n[{lost} bytes not kept]\n").as_bytes());
            }
            RunEvent::Started { .. } | RunEvent::Ended(_) => {}
        }
    }
    // A sandbox's bytes go to a person's terminal: no escape sequence of its may act there.
    let text: String = String::from_utf8_lossy(&told)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    output::print(&text)
}

/// Nobody but its own conversation brings one back.
fn living(row: &ListedSandbox) -> Result<&ListedSandbox, CommandFailure> {
    match row.state {
        RowState::Running => Ok(row),
        state => Err(CommandFailure::new(
            format!("sandbox {} is {}", row.id, state.name()),
            "the next message of its conversation brings a stopped one back; one of a session, \
             `hermetic exec --session NAME -- true`",
        )),
    }
}

pub(super) async fn reach(row: &ListedSandbox) -> Result<Sandbox, CommandFailure> {
    let backend = row.backend()?;
    let link = backend.connect(&row.id).await?;
    const LOST: &str = "destroy it: a sandbox that does not answer is lost";
    let sandbox = Sandbox::greet(&row.id, backend.description(), link)
        .await
        .map_err(|error| CommandFailure::caused(&error, LOST))?;
    // Beside the gateway that has it, whichever that is.
    sandbox
        .visit()
        .await
        .map_err(|error| CommandFailure::caused(&error, LOST))?;
    Ok(sandbox)
}
