//! `hermetic man <folder>`.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;

use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hermetic man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for the pages; created if missing
    folder: PathBuf,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitReason, CommandFailure> {
    fs::create_dir_all(&args.folder)
        .map_err(|error| CommandFailure::file("make", &args.folder, &error))?;
    clap_mangen::generate_to(CommandLine::command(), &args.folder)
        .map_err(|error| CommandFailure::file("write to", &args.folder, &error))?;
    output::print(&format!("manual pages are in {}\n", args.folder.display()))?;
    Ok(ExitReason::Ok)
}
