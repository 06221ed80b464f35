//! `hermetic config check`.

use std::fmt::Write as _;

use hermetic_config::{Problem, resolve_gateway_backend};
use serde_json::json;

use crate::cli::Cli;
use crate::commands::inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends with 78 if there is an error; warnings and unused keys are no errors."
)]
pub(crate) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    let inputs = inputs(cli)?;
    let loaded = hermetic_config::load(&inputs);
    if args.json {
        let (errors, warnings, unused) = match &loaded {
            Ok(config) => (
                Vec::new(),
                config.warnings().iter().map(described).collect(),
                config
                    .unused()
                    .iter()
                    .map(|key| json!({"key": key.key, "file": key.file, "line": key.line}))
                    .collect(),
            ),
            Err(problems) => (
                problems.iter().map(described).collect(),
                Vec::new(),
                Vec::new(),
            ),
        };
        let ok = errors.is_empty();
        output::print_json(&json!({
            "ok": ok, "errors": errors, "warnings": warnings, "unused": unused,
        }))?;
        return Ok(if ok { Exit::Ok } else { Exit::BadConfig });
    }

    let config = loaded?;
    let resolved = resolve_gateway_backend(&config)?;
    let mut text = String::new();
    for warning in config.warnings() {
        let _ = writeln!(text, "{}\n", output::painted(warning));
    }
    if !config.unused().is_empty() {
        let _ = writeln!(text, "Keys that have no meaning here (harmless):");
        for key in config.unused() {
            let _ = writeln!(
                text,
                "  {:<40} {}:{}",
                key.key,
                key.file.display(),
                key.line
            );
        }
        text.push('\n');
    }
    let file = inputs.home.config_file();
    let what = if file.exists() {
        format!("{} is right", file.display())
    } else {
        format!("there is no {}; the defaults hold", file.display())
    };
    let _ = writeln!(text, "{what}\n{}", resolved.note());
    for warning in resolved.warnings() {
        let _ = writeln!(text, "⚠ {warning}");
    }
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn described(problem: &Problem) -> serde_json::Value {
    json!({
        "what": problem.what(),
        "key": problem.key(),
        "place": problem.place(),
        "help": problem.helps(),
    })
}
