//! `hermetic completions <shell>`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hermetic completions bash > ~/.local/share/bash-completion/completions/hermetic
  hermetic completions zsh  > ~/.zfunc/_hermetic
  hermetic completions fish > ~/.config/fish/completions/hermetic.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hermetic", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
