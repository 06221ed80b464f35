//! `hermetic config show`.

use std::fmt::Write as _;

use hermetic_config::{EffectiveSetting, SettingValue};
use serde_json::json;

use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, DIM};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hermetic config show                    everything
  hermetic config show --written          only what somebody wrote
  hermetic config show terminal gateway   only these sections

Secrets are shown as [secret].")]
pub(crate) struct ConfigShowArgs {
    /// Show only these sections or keys
    sections: Vec<String>,

    /// Leave out defaults
    #[arg(long)]
    written: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &ConfigShowArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let shown: Vec<&EffectiveSetting> = config
        .settings()
        .iter()
        .filter(|setting| args.wants(setting))
        .collect();
    if shown.is_empty() && !args.sections.is_empty() && !args.written {
        return Err(CommandFailure::new(
            format!("no key or section is called {}", args.sections.join(" or ")),
            "`hermetic config show` without a name lists them all",
        ));
    }
    if args.json {
        let shown: Vec<serde_json::Value> = shown.into_iter().map(described).collect();
        output::print_json(&shown)?;
        return Ok(ExitReason::Ok);
    }
    let width = shown
        .iter()
        .map(|s| s.name().len())
        .max()
        .unwrap_or(0)
        .min(48);
    let mut text = String::new();
    for setting in shown {
        let value = setting
            .value()
            .map_or_else(|| "(not set)".to_owned(), SettingValue::shown);
        let idle = setting.idle_because();
        let idle = idle.map_or_else(String::new, |why| format!("; no effect yet: {why}"));
        let _ = writeln!(
            text,
            "{:width$} = {value}  {DIM}# {}{idle}{DIM:#}",
            setting.name(),
            setting.origin(),
        );
    }
    output::print(&text)?;
    Ok(ExitReason::Ok)
}

impl ConfigShowArgs {
    fn wants(&self, setting: &EffectiveSetting) -> bool {
        // `telegram` means `platforms.telegram`, as it does in the file.
        let short = setting.name().trim_start_matches("platforms.");
        let below = |name: &str, section: &str| {
            name.strip_prefix(section)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let named = self.sections.is_empty()
            || self
                .sections
                .iter()
                .any(|section| below(setting.name(), section) || below(short, section));
        named && (!self.written || setting.origin().is_written())
    }
}

fn described(setting: &EffectiveSetting) -> serde_json::Value {
    json!({
        "key": setting.name(),
        "value": setting.value().map(SettingValue::to_json),
        "origin": setting.origin().to_string(),
        "variable": setting.variable(),
        "about": setting.about(),
        "no_effect": setting.idle_because(),
    })
}
