//! What a gateway that runs tells besides, and what it is asked to do.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use hermetic_dashboard::{
    ActFailed, BudgetRow, ConditionReport, GatewayView, ListedPerson, PartRow, PlatformRow,
    RunningOutput, SandboxUse, SealReport, SettingsReport,
};
use hermetic_gateway::{ConversationActFailed, GatewayHandle, GatewayStage, chat_state_words};
use hermetic_policy::VerdictExplanation;
use hermetic_sandbox::{Backend, LiveUse, SandboxProcess};
use hermetic_store::LedgerEntry;
use hermetic_types::{BackendKind, Boundary, ConversationKey, SandboxId};
use tokio::sync::watch;
use tokio::time::timeout;

use super::ConfiguredView;
use crate::{boundary, notices};

/// A backend is not waited for longer to say what a sandbox uses.
const LOOK_TIMEOUT: Duration = Duration::from_millis(1500);

/// Nor longer to count what lies on its disk.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// The same with a gateway that runs.
#[derive(Debug)]
pub(super) struct RunningView {
    pub(super) configured: ConfiguredView,
    pub(super) gateway: GatewayHandle,
}

impl GatewayView for RunningView {
    fn condition(&self) -> ConditionReport {
        let condition = self.gateway.condition();
        let parts = condition.parts.into_iter().map(|part| PartRow {
            name: part.name,
            health: part.health,
        });
        let platforms = condition.accounts.iter().map(|(account, state)| {
            let (backend, boundary) = self.gateway.backend_of(account.platform());
            let (words, why) = chat_state_words(state);
            PlatformRow {
                account: account.to_string(),
                state: words.to_owned(),
                why: why.map(str::to_owned),
                backend: backend.to_string(),
                is_sealed: boundary == Boundary::Sealed,
            }
        });
        ConditionReport {
            stage: match condition.stage {
                GatewayStage::Starting => "starting",
                GatewayStage::Serving => "serving",
                GatewayStage::Draining => "draining",
            }
            .to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active: condition.active,
            platforms: platforms.collect(),
            parts: parts.collect(),
        }
    }

    fn seal(&self) -> BoxFuture<'_, SealReport> {
        async move {
            let configured = &self.configured;
            let places = configured.kinds().into_values();
            let places = places.map(|(kind, platforms)| configured.place(kind, platforms));
            let mut warnings = configured.resolved.warnings(boundary);
            warnings.extend(notices(&configured.config));
            SealReport {
                places: join_all(places).await,
                egress_mode: configured.config.egress().mode.name().to_owned(),
                egress: configured.reach(),
                asks: configured.config.egress().ask,
                warnings,
            }
        }
        .boxed()
    }

    fn settings(&self) -> SettingsReport {
        self.configured.settings()
    }

    fn listed_people(&self) -> Vec<ListedPerson> {
        self.configured.listed_people()
    }

    fn budgets(&self) -> Vec<BudgetRow> {
        self.configured.budgets()
    }

    fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>> {
        self.configured.explain(conversation, command)
    }

    fn sandbox_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, SandboxUse>> {
        async move {
            let count: AskBackend<u64> = |backend, ids| backend.disk_use(ids);
            let counted = self.asked(sandboxes, COUNT_TIMEOUT, count).await;
            let uses = counted.into_iter().map(|(id, bytes)| {
                let disk_bytes = Some(bytes);
                (id, SandboxUse { disk_bytes })
            });
            uses.collect()
        }
        .boxed()
    }

    fn live_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, LiveUse>> {
        let look: AskBackend<LiveUse> = |backend, ids| backend.live_use(ids);
        self.asked(sandboxes, LOOK_TIMEOUT, look).boxed()
    }

    fn processes(
        &self,
        backend: BackendKind,
        sandbox: SandboxId,
        most: usize,
    ) -> BoxFuture<'_, Option<Vec<SandboxProcess>>> {
        async move {
            let mut backends = self.configured.backends.iter();
            let backend = backends.find(|open| open.kind() == backend)?;
            let looked = timeout(LOOK_TIMEOUT, backend.processes(&sandbox, most));
            looked.await.ok().flatten()
        }
        .boxed()
    }

    fn running_output(&self, conversation: &ConversationKey) -> Option<RunningOutput> {
        let output = self.gateway.outputs().of(conversation)?;
        Some(RunningOutput {
            text: output.text,
            bytes: output.bytes,
            is_cut: output.is_cut,
        })
    }

    fn output_changes(&self) -> watch::Receiver<u64> {
        self.gateway.outputs().changes()
    }

    fn stop<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        done(self.gateway.stop(conversation))
    }

    fn reset<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        done(self.gateway.reset(conversation))
    }

    fn destroy<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        done(self.gateway.destroy(conversation))
    }

    fn stop_sandbox<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        done(self.gateway.stop_sandbox(conversation))
    }

    fn destroy_sandbox<'a>(
        &'a self,
        sandbox: &'a LedgerEntry,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        let (conversation, in_use) = (&sandbox.conversation, sandbox.set_aside_at.is_none());
        done(
            self.gateway
                .destroy_sandbox(conversation, &sandbox.id, in_use),
        )
    }
}

/// What each backend is asked about its own sandboxes.
type AskBackend<T> =
    for<'a> fn(&'a dyn Backend, &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, T>>;

impl RunningView {
    async fn asked<T: Send>(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
        patience: Duration,
        ask: AskBackend<T>,
    ) -> HashMap<SandboxId, T> {
        // Beside each other: one that lets us wait holds up no other.
        let looks = self.configured.backends.iter().map(|backend| {
            let own = sandboxes.iter().filter(|(kind, _)| *kind == backend.kind());
            let ids: Vec<SandboxId> = own.map(|(_, id)| id.clone()).collect();
            async move {
                match ids.is_empty() {
                    true => HashMap::new(),
                    false => timeout(patience, ask(backend.as_ref(), &ids))
                        .await
                        .unwrap_or_default(),
                }
            }
        });
        join_all(looks).await.into_iter().flatten().collect()
    }
}

fn done<'a>(
    act: impl Future<Output = Result<(), ConversationActFailed>> + Send + 'a,
) -> BoxFuture<'a, Result<(), ActFailed>> {
    act.map(|done| done.map_err(|error| ActFailed(error.to_string())))
        .boxed()
}
