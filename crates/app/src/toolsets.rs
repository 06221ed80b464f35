//! Where each platform's commands run, from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use hermetic_config::{Config, ResolvedBackend};
use hermetic_gateway::{PlatformTools, PlatformToolsets, ReachableSandboxes};
use hermetic_redact::Redactor;
use hermetic_sandbox::Backend;
use hermetic_session::{SandboxPlan, Sandboxes};
use hermetic_store::Store;
use hermetic_tools::TodoLists;
use hermetic_types::{BackendKind, InstallationId, Platform, SharedClock};

use super::facts::{facts, shares_workspace};
use super::{BackendCaller, kit};
use crate::AppFailure;

/// Platforms in use that have a backend of their own.
pub(super) struct BackendOverrides(BTreeMap<Platform, BackendKind>);

impl BackendOverrides {
    pub(super) fn read(config: &Config, resolved: &ResolvedBackend) -> Self {
        let enabled = config.platforms().enabled();
        let own = enabled.filter_map(|platform| {
            let backend = *resolved.platforms.get(platform.name)?;
            Some((platform.kind()?, backend))
        });
        Self(own.collect())
    }

    /// Every backend that is needed, or why one cannot be had: none stands in for another.
    pub(super) fn open(
        &self,
        config: &Config,
        installation: &InstallationId,
        usual: BackendKind,
        clock: &SharedClock,
    ) -> Result<Vec<Arc<dyn Backend>>, AppFailure> {
        let mut backends =
            super::backends::backends(config, installation, usual, BackendCaller::Chats, clock)?;
        for (platform, kind) in &self.0 {
            let own = super::backends::timed_backend(
                config,
                installation,
                *kind,
                BackendCaller::Chats,
                clock,
            );
            let own = own.map_err(|failure| {
                failure.during(format!("platforms.{platform}.terminal_backend is {kind}"))
            })?;
            // One that was only looked at before is now used.
            backends.retain(|open| open.kind() != *kind);
            backends.push(own);
        }
        Ok(backends)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (Platform, BackendKind)> {
        self.0.iter().map(|(platform, kind)| (*platform, *kind))
    }

    pub(super) fn plans(
        &self,
        plan: impl Fn(BackendKind) -> SandboxPlan,
    ) -> BTreeMap<Platform, SandboxPlan> {
        let own = self.0.iter();
        own.map(|(platform, kind)| (*platform, plan(*kind)))
            .collect()
    }
}

pub(super) fn toolsets(
    config: &Config,
    usual: &SandboxPlan,
    apart: &BTreeMap<Platform, SandboxPlan>,
    redactor: &Redactor,
    store: &Store,
    sandboxes: &Sandboxes,
    clock: &SharedClock,
) -> PlatformToolsets {
    let reach = Arc::new(ReachableSandboxes(sandboxes.clone()));
    let rows = Some(store.processes());
    let background = kit::background(config, redactor, rows, reach, clock);
    let site = |plan: &SandboxPlan| PlatformTools {
        shares_workspace: shares_workspace(config, plan),
        facts: facts(config, plan),
        kit: kit::kit(
            config,
            plan.backend,
            redactor,
            background.clone(),
            kit::mcp(
                config,
                plan.backend,
                redactor,
                Some(store.documents()),
                clock,
            ),
            Some(TodoLists::new(store.todo_lists())),
            clock,
        ),
    };
    let apart = apart.iter();
    PlatformToolsets::new(
        site(usual),
        apart
            .map(|(platform, plan)| (*platform, site(plan)))
            .collect(),
    )
}
