//! `hermetic config check`.

use std::fmt::Write as _;

use hermetic_app as app;
use hermetic_config::{
    Config, ConfigProblem, ConfigProblems, HomeFolder, ResolvedBackend, UnusedKey,
    resolve_gateway_backend,
};
use serde_json::json;

use crate::cli::CommandLine;
use crate::commands::inputs;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exits with 78 if there is an error; warnings and unused keys are not errors."
)]
pub(crate) struct ConfigCheckArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &ConfigCheckArgs) -> Result<ExitReason, CommandFailure> {
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
        return Ok(ExitReason::Ok);
    }
    for refusal in &refusals {
        output::failure(refusal);
    }
    Ok(ExitReason::BadConfig)
}

fn as_text(home: &HomeFolder, config: &Config, resolved: &ResolvedBackend) -> String {
    let mut text = String::new();
    for warning in config.warnings() {
        let _ = writeln!(text, "{}\n", output::painted(warning));
    }
    text.push_str(&without_effect(config));
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

/// What has no effect: first what somebody will miss, then the rest.
fn without_effect(config: &Config) -> String {
    let (missed, others): (Vec<_>, Vec<_>) =
        config.unused().iter().partition(|key| key.missed.is_some());
    let mut text = String::new();
    if !missed.is_empty() {
        text.push_str("Features that this configuration asks for and that are not here:\n");
        for key in missed {
            let (place, what) = (place(key), key.missed.unwrap_or_default());
            let _ = writeln!(text, "  {:<40} {place}\n    = {what}", key.key);
        }
        text.push('\n');
    }
    if !others.is_empty() {
        text.push_str("Other keys that have no effect here:\n");
        for key in others {
            let _ = writeln!(text, "  {:<40} {}", key.key, place(key));
        }
        text.push('\n');
    }
    text
}

fn place(key: &UnusedKey) -> String {
    format!("{}:{}", key.file.display(), key.line)
}

fn as_json(loaded: &Result<Config, ConfigProblems>) -> Result<ExitReason, CommandFailure> {
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
                    .map(|key| json!({"key": key.key, "file": key.file, "line": key.line, "missed": key.missed})),
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
        ExitReason::Ok
    } else {
        ExitReason::BadConfig
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

fn described(problem: &ConfigProblem) -> serde_json::Value {
    json!({
        "what": problem.what(),
        "key": problem.key(),
        "place": problem.place(),
        "help": problem.helps(),
    })
}
