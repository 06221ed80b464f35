//! The seam to a running gateway.

use std::collections::HashMap;
use std::fmt;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_policy::VerdictExplanation;
use hermetic_redact::Redacted;
use hermetic_sandbox::{LiveUse, SandboxProcess};
use hermetic_store::LedgerEntry;
use hermetic_types::{BackendKind, ConversationKey, PartHealth, SandboxId};
use serde::Serialize;
use thiserror::Error;
use tokio::sync::watch;

/// Tells what only a running gateway knows, and does in it what an operator asks for.
///
/// What an implementer promises: nothing that is told holds a secret; the methods that return a value at
/// once do not wait for anything outside this machine; an act has been done when its future ends well, and
/// may be asked for twice.
pub trait GatewayView: Send + Sync + fmt::Debug {
    /// How the gateway and its parts are at this moment.
    fn condition(&self) -> ConditionReport;

    /// How well commands are sealed. May take its time: some backends ask a daemon.
    fn seal(&self) -> BoxFuture<'_, SealReport>;

    /// The configuration as it is used, and what the files say differently by now.
    fn settings(&self) -> SettingsReport;

    /// The people whom the configuration names.
    fn listed_people(&self) -> Vec<ListedPerson>;

    /// What may be spent on a day.
    fn budgets(&self) -> Vec<BudgetRow>;

    /// How a command of this conversation is read and judged. Nothing where it cannot be said.
    fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>>;

    /// How much disk these sandboxes use, for those whose backend counts it. May take its time.
    fn sandbox_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, SandboxUse>>;

    /// What these sandboxes use at this moment, for those whose backend tells. Asked every few seconds while
    /// somebody looks.
    fn live_use(
        &self,
        _sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, LiveUse>> {
        future::ready(HashMap::new()).boxed()
    }

    /// What runs in a sandbox. `None` where its backend cannot tell.
    fn processes(
        &self,
        _backend: BackendKind,
        _sandbox: SandboxId,
        _most: usize,
    ) -> BoxFuture<'_, Option<Vec<SandboxProcess>>> {
        future::ready(None).boxed()
    }

    /// What the tool call that runs in a conversation has written so far; nothing where none runs or it wrote
    /// nothing.
    fn running_output(&self, _conversation: &ConversationKey) -> Option<RunningOutput> {
        None
    }

    /// Counts up with whatever running calls write.
    fn output_changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// Interrupts what runs in a conversation, and drops what waits there.
    fn stop<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>>;

    /// Starts afresh: what was said is kept as a session, what was allowed is forgotten, files stay.
    fn reset<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>>;

    /// Destroys a conversation's sandbox with its files, and forgets what was said.
    fn destroy<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>>;

    /// Ends every process of a conversation's sandbox. Files stay where sandboxes are kept.
    fn stop_sandbox<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>>;

    /// Destroys one sandbox of a conversation with its files, in use or set aside. What was said stays.
    fn destroy_sandbox<'a>(
        &'a self,
        sandbox: &'a LedgerEntry,
    ) -> BoxFuture<'a, Result<(), ActFailed>>;
}

/// An act that did not come to its end. The log has learnt why; this is for whoever asked.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub struct ActFailed(pub String);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConditionReport {
    /// `starting`, `serving` or `draining`.
    pub stage: String,
    pub version: String,
    /// Conversations with something going on.
    pub active: usize,
    pub parts: Vec<PartRow>,
    pub platforms: Vec<PlatformRow>,
}

/// One part of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartRow {
    pub name: String,
    #[serde(flatten)]
    pub health: PartHealth,
}

/// One chat account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlatformRow {
    pub account: String,
    /// `starting`, `connected`, `retrying` or `stopped`.
    pub state: String,
    /// Why it is not connected.
    pub why: Option<String>,
    pub backend: String,
    pub is_sealed: bool,
}

/// The truth about the seal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SealReport {
    pub places: Vec<SealedPlace>,
    /// `closed`, `allowlist` or `open`.
    pub egress_mode: String,
    /// What can be reached, in words.
    pub egress: String,
    /// Whether people are asked about hosts that no rule names.
    pub asks: bool,
    pub warnings: Vec<String>,
}

/// One backend that conversations run on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SealedPlace {
    pub backend: String,
    pub is_sealed: bool,
    /// Whether the backend was asked for its layers and answered. Nothing is known of them otherwise, and what
    /// stands there is what it said before.
    pub is_known: bool,
    /// The platforms that run here; empty for all that have none of their own.
    pub platforms: Vec<String>,
    pub layers: Vec<LayerRow>,
}

/// One layer of a seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerRow {
    pub name: String,
    /// `active`, `weaker`, `missing` or `required`.
    pub state: String,
    pub detail: String,
    pub remedy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SettingsReport {
    pub settings: Vec<SettingRow>,
    /// Why the files cannot be read as they are now.
    pub unreadable: Option<String>,
}

/// One key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingRow {
    pub key: String,
    /// As it may be shown; absent where nothing is written and there is no default.
    pub value: Option<String>,
    pub origin: String,
    pub is_written: bool,
    pub about: String,
    /// What the files say now, where that differs. Takes effect with the next start.
    pub changed_to: Option<String>,
    pub no_effect: Option<String>,
}

/// Somebody whom the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedPerson {
    pub platform: String,
    pub user: String,
    /// `operator` for who may approve, `user` for who may write.
    pub role: String,
}

/// The bounds of one day for one kind of scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BudgetRow {
    /// `person`, `conversation` or `all`.
    pub scope: String,
    pub nanodollars: Option<i64>,
    pub tokens: Option<u64>,
    pub tool_seconds: Option<u64>,
}

/// What a sandbox uses now, as far as its backend tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SandboxUse {
    pub disk_bytes: Option<u64>,
}

/// The end of what a running tool call has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningOutput {
    pub text: Redacted<String>,
    /// All that was written, shown or not.
    pub bytes: u64,
    /// Whether there was more before it.
    pub is_cut: bool,
}
