//! `hermetic matrix verify`: the fingerprint by which somebody knows that it is this bot they talk to.

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_app::{self as app, MatrixDevice};

use super::{load, on_this_thread};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct MatrixArgs {
    #[command(subcommand)]
    command: MatrixCommand,
}

#[derive(Debug, Subcommand)]
enum MatrixCommand {
    /// Print each account's device and fingerprint, to be compared with what an app shows
    Verify,
}

pub(crate) fn run(cli: &CommandLine, args: &MatrixArgs) -> Result<ExitReason, CommandFailure> {
    let MatrixCommand::Verify = args.command;
    on_this_thread(verify(cli))
}

async fn verify(cli: &CommandLine) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    // Makes the state folder where there is none yet.
    app::installation(config.home())?;
    let store = app::store(&config).await?;
    let (is_spoken, devices) = app::matrix_devices(&config, &store).await?;
    if !is_spoken {
        return Err(CommandFailure::new(
            "this build does not speak end-to-end encrypted rooms",
            "build it with `--features matrix-e2ee` and write MATRIX_E2EE_MODE=optional",
        ));
    }
    if devices.is_empty() {
        return Err(CommandFailure::new(
            "there is no Matrix account",
            "set one up: hermetic gateway setup matrix",
        ));
    }
    let text: String = devices.iter().map(describe).collect();
    output::print(&text)?;
    Ok(ExitReason::Ok)
}

fn describe(device: &MatrixDevice) -> String {
    let MatrixDevice { account, device } = device;
    let Some(device) = device else {
        return format!(
            "{account}: no device yet; write MATRIX_E2EE_MODE=optional and start the gateway once\n"
        );
    };
    let mut text = format!("{account}\n  device       {}\n", printable(&device.device));
    let _ = writeln!(text, "  fingerprint  {}", in_fours(&device.fingerprint));
    text.push_str(
        "Compare both with what your app shows of this bot's session, then confirm it there.\n",
    );
    text
}

/// As apps show it.
fn in_fours(fingerprint: &str) -> String {
    let signs: Vec<_> = fingerprint.chars().collect();
    let fours = signs.chunks(4).map(|four| four.iter().collect::<String>());
    fours.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_shown_as_in_apps() {
        assert_eq!(in_fours("abcdefghij"), "abcd efgh ij");
    }
}
