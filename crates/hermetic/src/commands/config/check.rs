//! `hermetic config check`.

use std::fmt::Write as _;

use hermetic_app as app;
use hermetic_config::{Config, Home, Problem, Problems, Resolved, resolve_gateway_backend};
use serde_json::json;

use crate::cli::Cli;
use crate::commands::inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exits with 78 if there is an error; warnings and unused keys are not errors."
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    let inputs = inputs(cli)?;
    let loaded = hermetic_config::load(&inputs);
    if args.json {
        return as_json(&loaded);
    }
    let config = loaded?;
    let resolved = resolve_gateway_backend(&config)?;
    let refusals = app::refusals(&config, &resolved);
    if refusals.is_empty() {
        output::print(&as_text(&inputs.home, &config, &resolved))?;
        return Ok(Exit::Ok);
    }
    for refusal in &refusals {
        output::failure(refusal);
    }
    Ok(Exit::BadConfig)
}

fn as_text(home: &Home, config: &Config, resolved: &Resolved) -> String {
    let mut text = String::new();
    for warning in config.warnings() {
        let _ = writeln!(text, "{}\n", output::painted(warning));
    }
    if !config.unused().is_empty() {
        let _ = writeln!(text, "Keys that have no effect here:");
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
    let file = home.config_file();
    let what = if file.exists() {
        format!("{} is right", file.display())
    } else {
        format!("there is no {}; the defaults hold", file.display())
    };
    let _ = writeln!(text, "{what}\n{}", resolved.note());
    for warning in resolved.warnings(app::boundary) {
        let _ = writeln!(text, "⚠ {warning}");
    }
    for notice in app::notices(config) {
        let _ = writeln!(text, "note: {notice}");
    }
    text
}

fn as_json(loaded: &Result<Config, Problems>) -> Result<Exit, Failure> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let mut unused = Vec::new();
    let mut backend = None;
    match loaded {
        Ok(config) => {
            warnings.extend(config.warnings().iter().map(described));
            unused.extend(
                config
                    .unused()
                    .iter()
                    .map(|key| json!({"key": key.key, "file": key.file, "line": key.line})),
            );
            match resolve_gateway_backend(config) {
                Ok(resolved) => {
                    warnings.extend(
                        resolved
                            .warnings(app::boundary)
                            .iter()
                            .map(|what| json!({"what": what})),
                    );
                    let notices = app::notices(config).into_iter();
                    warnings.extend(notices.map(|what| json!({"what": what})));
                    errors.extend(app::refusals(config, &resolved).iter().map(
                        |refusal| json!({"what": refusal.to_string(), "help": [refusal.remedy()]}),
                    ));
                    backend = Some(resolved.backend);
                }
                Err(doubt) => {
                    errors.push(json!({"what": doubt.to_string(), "help": [doubt.remedy()]}));
                }
            }
        }
        Err(problems) => errors.extend(problems.iter().map(described)),
    }
    let exit = if errors.is_empty() {
        Exit::Ok
    } else {
        Exit::BadConfig
    };
    output::print_json(&json!({
        "ok": errors.is_empty(),
        "errors": errors,
        "warnings": warnings,
        "unused": unused,
        "backend": backend,
    }))?;
    Ok(exit)
}

fn described(problem: &Problem) -> serde_json::Value {
    json!({
        "what": problem.what(),
        "key": problem.key(),
        "place": problem.place(),
        "help": problem.helps(),
    })
}
