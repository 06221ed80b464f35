//! What one command may reach. Nothing, unless its flags say so.

use std::sync::Arc;

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_egress::{Egress, RulesText};
use hermetic_types::{BackendKind, Boundary};

use crate::failure::CommandFailure;

#[derive(Debug, clap::Args)]
pub(super) struct ExecEgressArgs {
    /// Let it reach this host: `host`, `host:port`, `*.suffix`; may be repeated
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Let it reach a named list of hosts; see `hermetic egress presets`
    #[arg(long, value_name = "NAME")]
    preset: Vec<String>,
    /// Let it reach what gateway.egress allows, with the credentials there
    #[arg(long, conflicts_with_all = ["allow", "preset"])]
    egress: bool,
}

impl ExecEgressArgs {
    pub(super) fn is_asked_for(&self) -> bool {
        self.egress || !self.allow.is_empty() || !self.preset.is_empty()
    }

    /// The way out, where one was asked for.
    pub(super) fn gate(
        &self,
        config: &Config,
        kind: BackendKind,
    ) -> Result<Option<Arc<Egress>>, CommandFailure> {
        if !self.is_asked_for() {
            return Ok(None);
        }
        if app::boundary(kind) == Boundary::Judged {
            return Err(CommandFailure::new(
                format!("the {kind} backend has no way out of its own: it has the machine's"),
                "leave --allow, --preset and --egress out, or use a sealed backend",
            ));
        }
        if app::is_closed(config, kind) {
            return Err(CommandFailure::new(
                "terminal.docker_network is false: containers have no way out",
                "leave --allow, --preset and --egress out, or docker_network",
            ));
        }
        if self.egress {
            return app::gate(config, None)?.map(Some).ok_or_else(|| {
                CommandFailure::new(
                    "gateway.egress.mode is closed",
                    "name hosts with --allow, or change the mode",
                )
            });
        }
        let rules = RulesText {
            presets: self.preset.clone(),
            ..RulesText::allowing(self.allow.iter().cloned())
        };
        Ok(Some(app::gate_for(config, rules)?))
    }
}
