//! `hermetic store …`: where the rows are that last.

use std::fmt::Write as _;
use std::io::BufRead as _;
use std::path::PathBuf;

use clap::Subcommand;
use hermetic_app::{self as app, StorePlace};
use hermetic_config::Config;
use hermetic_store::{MoveDirection, MovedTable, PostgresAddress, Store};
use hermetic_types::{GatewayId, SystemClock};
use serde_json::json;

use super::{load, on_this_thread};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::GatewayLock;
use crate::output;
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Copy every row to an empty database, while no gateway runs
    Migrate {
        /// postgres://user@host/database, sqlite:PATH, or - to read that from standard input
        #[arg(long, value_name = "WHERE")]
        to: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(cli: &CommandLine, args: &StoreArgs) -> Result<ExitReason, CommandFailure> {
    let StoreCommand::Migrate { to, json } = &args.command;
    let config = load(cli)?;
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    // Held until the end: a gateway that starts meanwhile would write rows that are not moved.
    let _alone = GatewayLock::take(config.home())?;
    on_this_thread(async {
        let from = StorePlace::of(&config)?;
        let to = target(to)?;
        let moved = migrate(&config, &from, &to).await?;
        report(&from, &to, &moved, *json)?;
        Ok(ExitReason::Ok)
    })
}

/// Every account of this machine can read what a program was called with.
fn target(to: &str) -> Result<StorePlace, CommandFailure> {
    if to != "-" {
        let place = place(to)?;
        return match &place {
            StorePlace::Postgres(address) if address.password().is_some() => {
                Err(CommandFailure::new(
                    "there is a password in --to, where every account of this machine can read it",
                    "write --to - and give the address on standard input, or leave the password to ~/.pgpass; and \
                     change that password",
                ))
            }
            _ => Ok(place),
        };
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| CommandFailure::caused(&error, "give the address on standard input"))?;
    place(line.trim())
}

fn place(to: &str) -> Result<StorePlace, CommandFailure> {
    if let Some(path) = to.strip_prefix("sqlite:") {
        return Ok(StorePlace::File(PathBuf::from(path)));
    }
    let address: Result<PostgresAddress, _> = to.parse();
    address.map(StorePlace::Postgres).map_err(|error| {
        CommandFailure::new(
            format!("the rows cannot be moved there: {error}"),
            "write postgres://user@host/database, or sqlite:PATH",
        )
    })
}

/// Opens both, which makes the tables of the empty one, and copies between them.
async fn migrate(
    config: &Config,
    from: &StorePlace,
    to: &StorePlace,
) -> Result<Vec<MovedTable>, CommandFailure> {
    let (path, address, direction) = match (from, to) {
        (StorePlace::File(path), StorePlace::Postgres(address)) => {
            (path, address, MoveDirection::ToPostgres)
        }
        (StorePlace::Postgres(address), StorePlace::File(path)) => {
            (path, address, MoveDirection::ToSqlite)
        }
        _ => {
            return Err(CommandFailure::new(
                format!("the rows are in {from} and would go to {to}: one has to be a file"),
                "copy a file by `hermetic backup`, and a PostgreSQL by its own pg_dump",
            ));
        }
    };
    // Opened once, which brings an old one up to date: the rows are copied between tables of one
    // version.
    drop(app::store(config).await?);
    let clock = SystemClock::shared();
    let opened = match to {
        StorePlace::File(path) => Store::open(path, clock).await,
        StorePlace::Postgres(address) => {
            Store::open_postgres(address, GatewayId::sole(), clock).await
        }
    };
    drop(opened.map_err(|error| CommandFailure::caused(&error, error.remedy()))?);
    let moved = Store::move_rows(path, address, direction).await;
    moved.map_err(|error| CommandFailure::caused(&error, error.remedy()))
}

fn report(
    from: &StorePlace,
    to: &StorePlace,
    moved: &[MovedTable],
    as_json: bool,
) -> Result<(), CommandFailure> {
    if as_json {
        let tables = moved
            .iter()
            .map(|table| (table.name.clone(), table.rows.into()));
        let tables: serde_json::Map<_, _> = tables.collect();
        output::print_json(&json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "rows": tables,
        }))?;
        return Ok(());
    }
    let mut text = String::new();
    for table in moved {
        let _ = writeln!(text, "{:>10}  {}", table.rows, table.name);
    }
    let rows: u64 = moved.iter().map(|table| table.rows).sum();
    let next = match to {
        StorePlace::File(path) => {
            format!(
                "take gateway.store out; the file belongs at {}",
                path.display()
            )
        }
        StorePlace::Postgres(_) => "write the address as gateway.store".to_owned(),
    };
    let _ = writeln!(
        text,
        "{rows} rows copied from {from} to {to}, and counted there. Next: {next}. What was in the old place is \
         still there, and no longer used."
    );
    output::print(&text)?;
    Ok(())
}
