//! `hermetic config …`.

mod check;
mod init;
mod show;

use clap::Subcommand;

use super::inputs;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Report every mistake and every unused key
    Check(check::ConfigCheckArgs),
    /// Print every value and where it came from
    Show(show::ConfigShowArgs),
    /// Print a JSON Schema that editors can use
    #[command(after_help = SCHEMA_EXAMPLE)]
    Schema,
    /// Print where the files are
    Path(PathArgs),
    /// Write a commented starter file; an existing one is never overwritten
    Init,
}

#[derive(Debug, clap::Args)]
struct PathArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const SCHEMA_EXAMPLE: &str = "\
Example:
  hermetic config schema > ~/.hermes/hermetic.schema.json
  and as the first line of config.yaml:
  # yaml-language-server: $schema=./hermetic.schema.json";

pub(crate) fn run(cli: &CommandLine, args: &ConfigArgs) -> Result<ExitReason, CommandFailure> {
    match &args.command {
        ConfigCommand::Check(args) => check::run(cli, args),
        ConfigCommand::Show(args) => show::run(cli, args),
        ConfigCommand::Schema => {
            output::print_json(&hermetic_config::json_schema())?;
            Ok(ExitReason::Ok)
        }
        ConfigCommand::Path(args) => path(cli, args),
        ConfigCommand::Init => init::run(cli),
    }
}

fn path(cli: &CommandLine, args: &PathArgs) -> Result<ExitReason, CommandFailure> {
    let inputs = inputs(cli)?;
    let home = &inputs.home;
    let files = [
        ("config", home.config_file()),
        ("dotenv", home.dotenv_file()),
        ("legacy", home.legacy_file()),
        ("managed", inputs.managed.clone()),
        ("state", home.state()),
    ];
    if args.json {
        let files: serde_json::Map<String, serde_json::Value> = files
            .into_iter()
            .map(|(name, path)| {
                let entry = serde_json::json!({"path": path, "exists": path.exists()});
                (name.to_owned(), entry)
            })
            .collect();
        output::print_json(&files)?;
        return Ok(ExitReason::Ok);
    }
    let mut text = String::new();
    for (name, path) in files {
        let missing = if path.exists() { "" } else { "  (not there)" };
        text.push_str(&format!("{name:8} {}{missing}\n", path.display()));
    }
    output::print(&text)?;
    Ok(ExitReason::Ok)
}
