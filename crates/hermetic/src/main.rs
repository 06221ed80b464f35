//! `hermetic`: a gateway between chats and an AI agent whose every command runs sealed.
//!
//! Arguments, then configuration, then one command, then an exit code. What a command does is in
//! the file of its name below `commands/`.

#![forbid(unsafe_code)]

mod by_hand;
mod cli;
mod commands;
mod exit;
mod failure;
mod folder_reader;
mod gateway_state;
mod log;
mod output;
mod ownership;
mod regular_file;
mod service;

use crate::cli::CommandLine;

fn main() -> std::process::ExitCode {
    let cli = CommandLine::of_process();
    let exit = match log::start(&cli).and_then(|()| commands::run(&cli)) {
        Ok(exit) => exit,
        Err(failure) => {
            output::failure(failure.why());
            failure.exit()
        }
    };
    exit.into()
}
