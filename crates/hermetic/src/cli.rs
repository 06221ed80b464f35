//! The arguments.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use crate::commands::{ExecArgs, TopCommand};
use crate::exit;

/// A gateway between chats and an AI agent whose every command runs sealed.
#[derive(Debug, Parser)]
#[command(
    name = "hermetic",
    version,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP),
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: TopCommand,
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
}

/// Options of every command. Their places in its help are behind its own, however many commands there are.
#[derive(Debug, clap::Args)]
pub(crate) struct GlobalOptions {
    /// Use this folder with config.yaml and .env, instead of $HERMES_HOME or ~/.hermes
    #[arg(long, global = true, value_name = "FOLDER", display_order = 100)]
    pub(crate) home: Option<PathBuf>,

    /// Log more; give it twice to log everything
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 101)]
    pub(crate) verbose: u8,

    /// Choose the form of log lines
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Human, display_order = 102)]
    pub(crate) log_format: LogFormat,
}

impl CommandLine {
    /// Reads the arguments of this process, or says what is wrong with them and ends it.
    ///
    /// For `exec`, which is to start at once, nothing is made of the hundred options of the other commands.
    pub(crate) fn of_process() -> Self {
        let word = std::env::args_os().nth(1);
        if word.is_none_or(|word| word != "exec") {
            return Self::parse();
        }
        let ExecCli { command, global } = ExecCli::parse();
        let OnlyExec::Exec(args) = command;
        Self {
            command: TopCommand::Exec(args),
            global,
        }
    }
}

/// The same arguments where the command is known to be `exec`.
#[derive(Debug, Parser)]
#[command(name = "hermetic", version, disable_help_subcommand = true)]
struct ExecCli {
    #[command(subcommand)]
    command: OnlyExec,
    #[command(flatten)]
    global: GlobalOptions,
}

#[derive(Debug, Subcommand)]
enum OnlyExec {
    /// Run one command in a sandbox
    Exec(ExecArgs),
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
  hermetic demo                 watch a sealed bot be attacked; needs nothing
  hermetic setup                from nothing to a bot, question by question
  hermetic migrate              come from Hermes Agent
  hermetic config check         report what is wrong with the configuration
  hermetic gateway run          serve the chats, in the foreground
  hermetic chat                 talk to the agent in this terminal
  hermetic status               show what runs and how well it is sealed";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn exec_alone_reads_as_it_does_among_all_commands() {
        let help = |mut all: clap::Command| {
            all.build();
            let exec = all.find_subcommand_mut("exec").unwrap();
            exec.render_long_help().to_string()
        };
        assert_eq!(help(ExecCli::command()), help(CommandLine::command()));
    }
}
