//! `hermetic egress presets`.

use std::fmt::Write as _;

use hermetic_egress::RulePreset;
use serde_json::json;

use crate::failure::CommandFailure;
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
pub(super) struct EgressPresetsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &EgressPresetsArgs) -> Result<(), CommandFailure> {
    if args.json {
        let presets = RulePreset::all().iter().map(|preset| {
            json!({
                "name": preset.name(),
                "about": preset.about(),
                "hosts": preset.lines().collect::<Vec<_>>(),
            })
        });
        return output::print_json(&presets.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for preset in RulePreset::all() {
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  {}", preset.name(), preset.about());
        for line in preset.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    output::print(&text)
}
