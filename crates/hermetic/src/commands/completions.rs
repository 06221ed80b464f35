//! `hermetic completions <shell>`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hermetic completions bash > ~/.local/share/bash-completion/completions/hermetic
  hermetic completions zsh  > ~/.zfunc/_hermetic
  hermetic completions fish > ~/.config/fish/completions/hermetic.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitReason, CommandFailure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut CommandLine::command(),
        "hermetic",
        &mut script,
    );
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitReason::Ok)
}
