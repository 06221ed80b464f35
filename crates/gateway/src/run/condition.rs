//! How a running gateway is, for those who look on.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hermetic_chat::ChatState;
use hermetic_types::{AccountId, HealthReport, PartHealth};
use serde::Serialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Gateway;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayCondition {
    pub stage: GatewayStage,
    /// Conversations with something going on.
    pub active: usize,
    pub accounts: Vec<(AccountId, ChatState)>,
    pub parts: Vec<GatewayPart>,
}

/// One of those whose trouble the operator should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayPart {
    /// `store`, `lease`, `record`, `disk`, `model`, `platform:telegram`, `backend:native`.
    pub name: String,
    #[serde(flatten)]
    pub health: PartHealth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayStage {
    /// The backend is tried out and what was left open is read.
    Starting,
    /// Messages are taken.
    Serving,
    /// No more messages are taken; turns come to their end.
    Draining,
}

/// Hears each change.
pub type Report = Box<dyn Fn(&GatewayCondition) + Send + Sync>;

/// Platforms do not say when they change, so they are looked at.
const CONDITION_INTERVAL: Duration = Duration::from_secs(1);

impl Gateway {
    pub(crate) fn condition(&self) -> GatewayCondition {
        GatewayCondition {
            stage: *self.stage.borrow(),
            active: self.conversations.count(),
            accounts: self
                .chats
                .iter()
                .map(|chat| (chat.account().clone(), chat.state()))
                .collect(),
            parts: self.parts(),
        }
    }

    /// Each part, also those that are well.
    pub(crate) fn parts(&self) -> Vec<GatewayPart> {
        let part = |name: &str, report: HealthReport| (name.to_owned(), report.health());
        let mut parts = vec![
            part("store", self.store.health()),
            part("disk", self.sandboxes.disk_health()),
            part("model", self.model_health.clone()),
            part("schedules", self.schedule_health.clone()),
        ];
        let record = match self.approvals.registry().record_trouble() {
            None => PartHealth::Ok,
            Some(why) => PartHealth::Degraded {
                why: format!("the disk may not have all of the record: {why}"),
                since: self.now(),
            },
        };
        parts.push(("record".to_owned(), record));
        let lease = self.lease_health.clone();
        parts.extend(lease.map(|health| part("lease", health)));
        let backends = self.sandboxes.backends_health().into_iter();
        parts.extend(backends.map(|(kind, health)| (format!("backend:{kind}"), health)));
        let now = self.now();
        let is_draining = *self.stage.borrow() == GatewayStage::Draining;
        parts.extend(self.chats.iter().map(|chat| {
            let health = match chat.state() {
                ChatState::Starting | ChatState::Connected => PartHealth::Ok,
                // It was asked to, with everything else.
                ChatState::Stopped { .. } if is_draining => PartHealth::Ok,
                ChatState::Retrying { why } | ChatState::Stopped { why } => {
                    PartHealth::Degraded { why, since: now }
                }
            };
            (format!("platform:{}", chat.account()), health)
        }));
        let parts = parts.into_iter().map(|(name, health)| {
            let health = self.first_seen(&name, health);
            GatewayPart { name, health }
        });
        parts.collect()
    }

    /// In words that may be shown, and since when it was seen so.
    fn first_seen(&self, name: &str, health: PartHealth) -> PartHealth {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let PartHealth::Degraded { why, since } = health else {
            if troubles.remove(name).is_some() {
                tracing::info!(part = name, "well again");
            }
            return health;
        };
        let why = self.redactor.redact(why).into_inner();
        let trouble = troubles.entry(name.to_owned()).or_insert_with(|| {
            tracing::warn!(part = name, why, "degraded");
            since
        });
        PartHealth::Degraded {
            why,
            since: *trouble,
        }
    }

    /// Reports each change until `until`; a change of stage at once.
    pub(crate) async fn report(self: Arc<Self>, report: Report, until: CancellationToken) {
        let mut stage = self.stage.subscribe();
        let mut last = None;
        loop {
            let now = self.condition();
            if last.as_ref() != Some(&now) {
                report(&now);
                self.metrics.condition(last.as_ref(), &now);
                last = Some(now);
            }
            tokio::select! {
                // The last change comes together with the end, and is told before it.
                biased;
                _ = stage.changed() => {}
                () = until.cancelled() => return,
                () = sleep(CONDITION_INTERVAL) => {}
            }
        }
    }
}
