//! The tools of one conversation, as the agent sees them, over the sandboxes that the session keeps.

use std::sync::OnceLock;

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{MessagePart, ToolInvocation, ToolResult, ToolSet, ToolSpec};
use hermetic_approvals::ApprovalWaits;
use hermetic_egress::EgressClient;
use hermetic_redact::Redacted;
use hermetic_session::{LeaseError, SandboxHolder, Sandboxes, SetAside};
use hermetic_tools::{CodeTool, ConversationTools, Held, NoSandbox, ToolWorkplace};
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::conversation::checkpoint::WorkspaceKeeper;
use crate::message::AcceptedMessage;
use crate::message::notices;

/// The one sandbox of a conversation, made at the first call that needs it.
#[derive(Debug)]
pub struct ConversationSandbox<'a> {
    sandboxes: &'a Sandboxes,
    conversation: ConversationKey,
    origin: Option<String>,
    set_aside: OnceLock<SetAside>,
    /// Whose sandbox it is counted as.
    holder: Option<SandboxHolder>,
}

impl<'a> ConversationSandbox<'a> {
    pub fn new(sandboxes: &'a Sandboxes, conversation: &ConversationKey) -> Self {
        Self {
            sandboxes,
            conversation: conversation.clone(),
            origin: None,
            set_aside: OnceLock::new(),
            holder: None,
        }
    }

    /// The same, for what may be told later to whoever said this.
    pub(crate) fn of(sandboxes: &'a Sandboxes, message: &AcceptedMessage) -> Self {
        Self {
            origin: notices::origin(message.said()),
            holder: Some(holder_of(message)),
            ..Self::new(sandboxes, message.conversation())
        }
    }

    /// What whoever is here is told if files had to stay behind in another sandbox.
    pub fn set_aside(&self) -> Option<String> {
        let set_aside = self.set_aside.get()?;
        Some(format!(
            "[This conversation has a new sandbox: {set_aside}.]\n\n"
        ))
    }
}

impl ConversationSandbox<'_> {
    /// What to say of a call that ended with its sandbox, if that was stopped for the disk's sake.
    pub(crate) fn why_stopped(&self) -> Option<&'static str> {
        self.sandboxes.why_stopped(&self.conversation)
    }
}

impl ToolWorkplace for ConversationSandbox<'_> {
    fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        async move {
            let leased = match &self.holder {
                Some(holder) => self.sandboxes.lease_for(&self.conversation, holder).await,
                None => self.sandboxes.lease(&self.conversation).await,
            };
            match leased {
                Ok(lease) => {
                    if let Some(set_aside) = lease.set_aside() {
                        // The first is what the person does not know of yet.
                        let _ = self.set_aside.set(set_aside.clone());
                    }
                    Ok(Box::new(lease) as Held)
                }
                Err(error) => {
                    tracing::error!(conversation = %self.conversation, %error, "no sandbox");
                    Err(for_model(&error))
                }
            }
        }
        .boxed()
    }

    fn egress(&self) -> BoxFuture<'_, Result<EgressClient, NoSandbox>> {
        async move {
            let Some(egress) = self.sandboxes.egress_of(&self.conversation) else {
                return Err(NoSandbox(NO_WAY_OUT));
            };
            // What a conversation has used of its budget is known once its sandbox is there.
            let _held = match egress.proxy().limits().budget {
                Some(_) => Some(self.sandbox().await?),
                None => None,
            };
            Ok(EgressClient::new(egress, &self.conversation))
        }
        .boxed()
    }

    fn origin(&self) -> Option<String> {
        self.origin.clone()
    }
}

const NO_WAY_OUT: &str = "sandboxes of this gateway have no way out (gateway.egress.mode is closed), so \
    nothing outside can be reached; only the operator can change that";

/// A toolbox behind the agent's seam.
#[derive(Debug)]
pub struct AgentTools<'a> {
    tools: ConversationTools<'a>,
    own: &'a ConversationSandbox<'a>,
    waits: ApprovalWaits,
    keeper: Option<&'a WorkspaceKeeper>,
}

impl<'a> AgentTools<'a> {
    pub fn new(tools: ConversationTools<'a>, own: &'a ConversationSandbox<'a>) -> Self {
        Self {
            tools,
            own,
            waits: ApprovalWaits::default(),
            keeper: None,
        }
    }

    /// With a copy of the workspace, made before a call that may change it.
    pub(crate) fn keeping(mut self, keeper: Option<&'a WorkspaceKeeper>) -> Self {
        self.keeper = keeper;
        self
    }

    /// Learns what tools there are besides our own. What comes back is for the person.
    pub async fn prepare(&self, stop: &CancellationToken) -> Vec<String> {
        self.tools.prepare(stop).await
    }

    /// With the time that people were waited for, which is none of a tool's.
    pub(crate) fn with_waits(mut self, waits: ApprovalWaits) -> Self {
        self.waits = waits;
        self
    }
}

impl ToolSet for AgentTools<'_> {
    fn specs(&self) -> Vec<ToolSpec> {
        let described = self.tools.described().into_iter();
        described
            .map(|tool| ToolSpec {
                name: tool.name.into_owned(),
                description: tool.description,
                schema: tool.schema,
            })
            .collect()
    }

    fn call<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            let name = invocation.name;
            if let Some(keeper) = self.keeper {
                keeper.before_call(name, self.own, &stop).await;
            }
            let answered = self.tools.call(name, invocation.arguments, &stop).await;
            if name == CodeTool::NAME {
                // A script goes on while one of its calls waits for an answer.
                self.waits.take();
            }
            match answered {
                Some(answered) => ToolResult {
                    parts: vec![MessagePart::text(match self.own.why_stopped() {
                        Some(why) => Redacted::constant(why)
                            .then(&Redacted::constant("\n"))
                            .then(&answered.json.to_text()),
                        None => answered.json.to_text(),
                    })],
                    failed: answered.failed,
                },
                None => ToolResult::failed("there is no such tool"),
            }
        }
        .boxed()
    }
}

/// The person whose sandboxes are counted together, in all their conversations.
pub(crate) fn holder_of(message: &AcceptedMessage) -> SandboxHolder {
    let said = message.said();
    SandboxHolder::named(format!("{}:{}", said.platform().name(), said.sender.id))
}

fn for_model(error: &LeaseError) -> NoSandbox {
    NoSandbox(match error {
        LeaseError::FullForHolder { .. } => {
            "this person has as many sandboxes at work as one person may have; nothing was run; it \
             works again when something in another of their conversations has ended"
        }
        LeaseError::Full { .. } => "all sandboxes are in use; nothing was run; try again later",
        LeaseError::NotBack { .. } => {
            "the sandbox with this conversation's files could not be started again, so nothing was run; \
             its files are kept, and the operator has been told; /destroy gives the files up and starts \
             anew"
        }
        LeaseError::DiskLow => {
            "the machine's disk is nearly full, so nothing new is run until there is room; nothing was \
             run; the operator has been told"
        }
        LeaseError::Stopping => "the gateway is stopping; nothing was run",
        _ => "the sandbox could not be started, so nothing was run; the operator has been told",
    })
}
