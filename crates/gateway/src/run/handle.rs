//! A handle on a running gateway, for whoever shows it to people and acts in their name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hermetic_chat::ChatState;
use hermetic_session::SandboxLease;
use hermetic_tools::LiveOutputs;
use hermetic_types::{BackendKind, Boundary, ConversationKey, Platform, SandboxId};
use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::GatewayCondition;
use crate::Gateway;
use crate::conversation::CommandError;

/// What can be seen of a running gateway and done in it, from outside of any chat.
#[derive(Clone, Debug)]
pub struct GatewayHandle(Arc<Gateway>);

/// Makes the pages that are answered beside `/health`, once there is a gateway to show.
pub struct DashboardBuilder(Box<BuildPages>);

type BuildPages = dyn FnOnce(GatewayHandle, DashboardTerms) -> Router + Send + Sync;

/// What pages have to keep to.
#[derive(Clone, Debug)]
pub struct DashboardTerms {
    /// Ends whatever is still being answered.
    pub stop: CancellationToken,
    /// Connections that may be held for long. Others have to find room beside them.
    pub most_streams: usize,
}

/// An act that did not come to its end. The log has learnt why.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub struct ConversationActFailed(&'static str);

/// How long an act waits for the end of what it interrupted.
const INTERRUPTION_TIMEOUT: Duration = Duration::from_secs(5);
const INTERRUPTION_POLL: Duration = Duration::from_millis(50);

/// How long a person waits for a sandbox that does not answer.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);

impl DashboardBuilder {
    pub fn new(
        build: impl FnOnce(GatewayHandle, DashboardTerms) -> Router + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(build))
    }

    pub(super) fn build(self, gateway: &Arc<Gateway>, terms: DashboardTerms) -> Router {
        (self.0)(GatewayHandle(Arc::clone(gateway)), terms)
    }
}

impl fmt::Debug for DashboardBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DashboardBuilder")
    }
}

impl GatewayHandle {
    pub fn condition(&self) -> GatewayCondition {
        self.0.condition()
    }

    /// Where a platform's commands run, and whether that is a boundary.
    pub fn backend_of(&self, platform: Platform) -> (BackendKind, Boundary) {
        let facts = &self.0.toolsets.of(platform).facts;
        (facts.backend, facts.boundary)
    }

    /// What running calls write.
    pub fn outputs(&self) -> &LiveOutputs {
        &self.0.outputs
    }

    /// Interrupts what runs in a conversation and drops what waits there, as `/stop` does.
    pub async fn stop(&self, conversation: &ConversationKey) -> Result<(), ConversationActFailed> {
        let (this, conversation) = (self.clone(), conversation.clone());
        self.to_the_end(async move { this.stop_now(&conversation).await })
            .await
    }

    /// Runs this as a task of its own: whoever asked may hang up, and half an act leaves what was said without
    /// its sandbox, or an old yes without what it was said to.
    async fn to_the_end(
        &self,
        act: impl Future<Output = Result<(), ConversationActFailed>> + Send + 'static,
    ) -> Result<(), ConversationActFailed> {
        let act = self.0.turns.spawn(act);
        let broke_off = "This broke off before its end. The log says why.";
        act.await.unwrap_or(Err(ConversationActFailed(broke_off)))
    }

    async fn stop_now(&self, conversation: &ConversationKey) -> Result<(), ConversationActFailed> {
        let gateway = &self.0;
        let stopped = gateway.conversations.stop(conversation).await;
        let note = "dropped by an operator";
        gateway.drop_waiting(stopped.dropped, note).await;
        let dropped = gateway.outbox.drop_late_files(conversation).await;
        dropped.map(drop).map_err(|error| failed(&error.into()))
    }

    /// Starts afresh there, as `/new` does: what was said is kept as a session, what was allowed is forgotten, files
    /// stay.
    pub async fn reset(&self, conversation: &ConversationKey) -> Result<(), ConversationActFailed> {
        let (this, conversation) = (self.clone(), conversation.clone());
        self.to_the_end(async move {
            // A turn that still runs would write its last words into the conversation that begins.
            this.interrupt(&conversation).await?;
            let forgotten = this.0.begin_anew(&conversation).await;
            forgotten.map_err(|error| failed(&error.into()))
        })
        .await
    }

    /// Destroys the sandbox there with its files, and forgets what was said, as `/destroy` does.
    pub async fn destroy(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(), ConversationActFailed> {
        let (this, conversation) = (self.clone(), conversation.clone());
        self.to_the_end(async move {
            this.interrupt(&conversation).await?;
            let erased = this.0.erase(&conversation).await;
            erased.map_err(|error| failed(&error))
        })
        .await
    }

    /// Ends every process of the sandbox there; its files stay where sandboxes are kept.
    pub async fn stop_sandbox(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(), ConversationActFailed> {
        let (this, conversation) = (self.clone(), conversation.clone());
        self.to_the_end(async move {
            this.interrupt(&conversation).await?;
            // One that waits for its next turn is closed by us, and is not taken for one that broke off.
            this.0.running_agents.end(&conversation);
            let ended = this.0.sandboxes.end_tenancy(&conversation).await;
            ended.map_err(|error| failed(&error.into()))
        })
        .await
    }

    /// Destroys one sandbox of a conversation with its files: the one in use, or one that was set aside. What was
    /// said stays; what was allowed in the one in use is forgotten.
    pub async fn destroy_sandbox(
        &self,
        conversation: &ConversationKey,
        sandbox: &SandboxId,
        in_use: bool,
    ) -> Result<(), ConversationActFailed> {
        let (this, conversation, sandbox) = (self.clone(), conversation.clone(), sandbox.clone());
        self.to_the_end(async move {
            if in_use {
                this.interrupt(&conversation).await?;
            }
            let gone = this.0.destroy_one(&conversation, &sandbox, in_use).await;
            gone.map_err(|error| failed(&error))
        })
        .await
    }

    /// The sandbox of this id, if the conversation still uses it and it answers. None is made or brought back.
    pub async fn lease_living(
        &self,
        conversation: &ConversationKey,
        sandbox: &SandboxId,
    ) -> Option<SandboxLease> {
        let leased = self.0.sandboxes.lease_living(conversation, sandbox);
        // One that is out of reach would be waited for; who asks is a person.
        let leased = tokio::time::timeout(REACH_TIMEOUT, leased).await;
        leased.ok().flatten()
    }

    /// Stops what runs and waits for its end, so that its last words come before what is done next.
    async fn interrupt(&self, conversation: &ConversationKey) -> Result<(), ConversationActFailed> {
        self.stop_now(conversation).await?;
        let ended = async {
            while self.0.conversations.activity(conversation).await.at_work {
                sleep(INTERRUPTION_POLL).await;
            }
        };
        // What does not end in time is cut by what comes next: the sandbox goes under it.
        let _ = tokio::time::timeout(INTERRUPTION_TIMEOUT, ended).await;
        Ok(())
    }
}

fn failed(error: &CommandError) -> ConversationActFailed {
    tracing::error!(error = %crate::life::in_full(error), "an operator's act failed");
    ConversationActFailed(match error {
        CommandError::Store(_) => "The store does not answer, so this is not done.",
        CommandError::LetGo(_) => {
            "Not everything could be ended yet. It is tried again; the log says why."
        }
    })
}

/// A platform's state in words, and why it is not connected.
pub fn chat_state_words(state: &ChatState) -> (&'static str, Option<&str>) {
    match state {
        ChatState::Starting => ("starting", None),
        ChatState::Connected => ("connected", None),
        ChatState::Retrying { why } => ("retrying", Some(why)),
        ChatState::Stopped { why } => ("stopped", Some(why)),
    }
}
