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

    /// Use this folder with config.yaml and .env, instead of $HERMES_HOME or ~/.hermes
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) home: Option<PathBuf>,

    /// Log more; give it twice to log everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Choose the form of log lines
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Human)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object on each line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  hermetic config init          write a starter configuration
  hermetic config check         report what is wrong with it
  hermetic gateway run          serve the chats, in the foreground
  hermetic chat                 talk to the agent in this terminal
  hermetic status               show what runs and how well it is sealed";
