//! `hermetic man <folder>`.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hermetic man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder for the pages; created if missing
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    fs::create_dir_all(&args.folder)
        .map_err(|error| Failure::file("make", &args.folder, &error))?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .map_err(|error| Failure::file("write to", &args.folder, &error))?;
    output::print(&format!("manual pages are in {}\n", args.folder.display()))?;
    Ok(Exit::Ok)
}
