//! The arguments.

use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};

use crate::commands::Command;
use crate::exit;

/// A gateway between chats and an AI agent whose every command runs sealed.
#[derive(Debug, Parser)]
#[command(
    name = "hermetic",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP),
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Folder with config.yaml and .env, instead of $HERMES_HOME or ~/.hermes
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,

    /// Say more in the log; twice for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// How log lines look
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Human)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object a line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  hermetic config init          write a starter configuration
  hermetic config check         is it right?
  hermetic gateway run          serve the chats, in the foreground
  hermetic chat                 talk to the agent here
  hermetic status               what runs, and how sealed it is";
