//! The tools of one conversation, as the agent sees them, over the sandboxes that the session keeps.

use std::sync::OnceLock;

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{MediaPart, MessagePart, ToolInvocation, ToolResult, ToolSet, ToolSpec};
use hermetic_approvals::ApprovalWaits;
use hermetic_egress::EgressClient;
use hermetic_redact::Redacted;
use hermetic_sandbox::OutputListener;
use hermetic_session::{LeaseError, SandboxHolder, Sandboxes, SetAside};
use hermetic_store::{MessageRow, TodoRows};
use hermetic_tools::{
    ClarifyError, ClarifyQuestion, CodeTool, ConversationTools, Held, LiveOutputs, NoSandbox,
    ServiceCharge, ServiceUse, ToolAnswer, ToolMedia, ToolWorkplace,
};
use hermetic_types::ConversationKey;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::MessageTraces;
use crate::conversation::OwnTool;
use crate::conversation::checkpoint::WorkspaceKeeper;
use crate::conversation::clarify::PersonInChat;
use crate::conversation::vision::VisionModel;
use crate::memory::PersonalTools;
use crate::message::AcceptedMessage;
use crate::message::notices;
use crate::run::{MessageStage, SpanNote};
use crate::spending::ServiceMeter;

/// The one sandbox of a conversation, made at the first call that needs it.
#[derive(Debug)]
pub struct ConversationSandbox<'a> {
    sandboxes: &'a Sandboxes,
    conversation: ConversationKey,
    /// The conversation that this works for, where it works beside one.
    works_for: Option<ConversationKey>,
    origin: Option<String>,
    set_aside: OnceLock<SetAside>,
    /// Whose sandbox it is counted as.
    holder: Option<SandboxHolder>,
    /// Who can be asked.
    person: Option<PersonInChat>,
    /// Counts what services of others take.
    services: Option<ServiceMeter<'a>>,
}

impl<'a> ConversationSandbox<'a> {
    pub fn new(sandboxes: &'a Sandboxes, conversation: &ConversationKey) -> Self {
        Self {
            sandboxes,
            conversation: conversation.clone(),
            works_for: None,
            origin: None,
            set_aside: OnceLock::new(),
            holder: None,
            person: None,
            services: None,
        }
    }

    /// The same, for what may be told later to whoever said this. What a job leaves running is told to nobody: it
    /// would become a turn of the chat that the job was made in, which is not where the job speaks.
    pub(crate) fn of(sandboxes: &'a Sandboxes, message: &AcceptedMessage) -> Self {
        let origin = match message.is_scheduled() {
            true => None,
            false => notices::origin(message.said()),
        };
        Self {
            origin,
            holder: Some(holder_of(message)),
            ..Self::new(sandboxes, message.conversation())
        }
    }

    /// The same, which counts what services of others take.
    pub(crate) fn paying(mut self, services: ServiceMeter<'a>) -> Self {
        self.services = Some(services);
        self
    }

    /// The same with somebody who can be asked.
    pub(crate) fn asking(mut self, person: Option<PersonInChat>) -> Self {
        self.person = person;
        self
    }

    /// A sandbox of its own for something that works beside the conversation, counted as the same person's.
    pub(crate) fn beside(
        sandboxes: &'a Sandboxes,
        message: &AcceptedMessage,
        key: &ConversationKey,
    ) -> Self {
        Self {
            holder: Some(holder_of(message)),
            works_for: Some(message.conversation().clone()),
            ..Self::new(sandboxes, key)
        }
    }

    /// Nothing of it stays. What cannot be destroyed now is let go when it is idle.
    pub(crate) async fn destroy(&self) {
        if let Err(error) = self.sandboxes.reset(&self.conversation).await {
            tracing::warn!(conversation = %self.conversation, %error, "a sandbox is left for now");
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

    fn agreed_in(&self) -> &ConversationKey {
        self.works_for.as_ref().unwrap_or(&self.conversation)
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

    fn can_clarify(&self) -> bool {
        self.person.is_some()
    }

    fn clarify<'a>(
        &'a self,
        question: ClarifyQuestion,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, ClarifyError>> {
        async move {
            match &self.person {
                Some(person) => person.ask(question, stop).await,
                None => Err(ClarifyError::NobodyToAsk),
            }
        }
        .boxed()
    }

    fn charge(&self, used: ServiceUse) -> BoxFuture<'_, Result<ServiceCharge, String>> {
        async move {
            match &self.services {
                Some(services) => services.charge(used).await,
                None => Ok(ServiceCharge::default()),
            }
        }
        .boxed()
    }

    fn give_back(&self, charge: ServiceCharge) -> BoxFuture<'_, ()> {
        async move {
            if let Some(services) = &self.services {
                services.give_back(charge).await;
            }
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
    /// Keeps the list of tasks as it was before the turn of this row.
    tasks: Option<(TodoRows, MessageRow)>,
    vision: Option<VisionModel<'a>>,
    outputs: Option<&'a LiveOutputs>,
    /// The message's trace, by its row.
    traces: Option<(&'a MessageTraces, MessageRow)>,
    personal: Option<&'a PersonalTools<'a>>,
    own_tools: Vec<&'a dyn OwnTool>,
    /// Tools that are there and not for whoever holds these.
    withheld: &'static [&'static str],
}

impl<'a> AgentTools<'a> {
    pub fn new(tools: ConversationTools<'a>, own: &'a ConversationSandbox<'a>) -> Self {
        Self {
            tools,
            own,
            waits: ApprovalWaits::default(),
            keeper: None,
            tasks: None,
            vision: None,
            outputs: None,
            traces: None,
            personal: None,
            own_tools: Vec::new(),
            withheld: &[],
        }
    }

    /// With tools of the gateway itself.
    pub(crate) fn with_own_tools(
        mut self,
        tools: impl IntoIterator<Item = &'a dyn OwnTool>,
    ) -> Self {
        self.own_tools.extend(tools);
        self
    }

    /// With a copy of the workspace, made before a call that may change it.
    pub(crate) fn keeping(mut self, keeper: Option<&'a WorkspaceKeeper>) -> Self {
        self.keeper = keeper;
        self
    }

    /// With a copy of the list of tasks, made before a call that may change it.
    pub(crate) fn keeping_tasks(mut self, rows: TodoRows, turn: MessageRow) -> Self {
        self.tasks = Some((rows, turn));
        self
    }

    async fn keep_tasks(&self, name: &str) {
        if let Some((rows, turn)) = self.tasks.as_ref().filter(|_| name == TODO)
            && let Err(error) = rows.keep(self.tools.conversation(), *turn).await
        {
            tracing::warn!(%error, "a list of tasks was not kept for /undo");
        }
    }

    /// With people who look on while a call runs.
    pub(crate) fn shown_in(mut self, outputs: &'a LiveOutputs) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// With the tools that are about whoever speaks.
    pub fn with_personal(mut self, personal: &'a PersonalTools<'a>) -> Self {
        self.personal = Some(personal);
        self
    }

    /// Learns what tools there are besides our own. What comes back is for the person.
    pub async fn prepare(&self, stop: &CancellationToken) -> Vec<String> {
        self.tools.prepare(stop).await
    }

    /// With a model that looks at pictures in the place of the one that answers.
    pub(crate) fn seeing(mut self, vision: Option<VisionModel<'a>>) -> Self {
        self.vision = vision;
        self
    }

    /// What the model for pictures says of the one that was handed over; nothing where there is no such model.
    async fn look(
        &self,
        answered: &ToolAnswer,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Option<ToolResult> {
        let vision = self.vision.as_ref()?;
        let picture = answered.media.first().filter(|media| media.is_image())?;
        let question = arguments.get("question").and_then(Value::as_str)?;
        Some(vision.describe(picture, question, stop).await)
    }

    /// Without the tools of these names.
    pub(crate) fn without(mut self, withheld: &'static [&'static str]) -> Self {
        self.withheld = withheld;
        self
    }

    /// With the trace of a message, which is told about calls and about people who were waited for.
    pub(crate) fn traced_in(mut self, traces: &'a MessageTraces, row: MessageRow) -> Self {
        self.traces = Some((traces, row));
        self
    }

    fn trace(&self, name: &str, began: Instant, failed: bool) {
        let asked = self.waits.take_spells();
        let Some((traces, row)) = self.traces else {
            return;
        };
        for (since, took) in asked {
            traces.in_turn(row, || SpanNote::since("approval", since).lasting(took));
        }
        traces.in_turn(row, || {
            SpanNote::since(MessageStage::Tool.name(), began)
                .text("hermetic.tool", name)
                .failed(failed)
        });
    }

    /// With the time that people were waited for, which is none of a tool's.
    pub(crate) fn with_waits(mut self, waits: ApprovalWaits) -> Self {
        self.waits = waits;
        self
    }
}

impl ToolSet for AgentTools<'_> {
    fn specs(&self) -> Vec<ToolSpec> {
        let described = self.tools.offered().into_iter();
        let personal = self.personal.map(PersonalTools::specs);
        described
            .map(|tool| ToolSpec {
                name: tool.name,
                description: tool.description,
                schema: tool.schema,
            })
            .chain(personal.into_iter().flatten())
            .chain(self.own_tools.iter().map(|tool| tool.spec()))
            .filter(|tool| !self.withheld.contains(&&*tool.name))
            .collect()
    }

    /// Keeps the workspace, where the call may change it.
    fn make_ready<'a>(&'a self, tool: &'a str, stop: CancellationToken) -> BoxFuture<'a, ()> {
        async move {
            if let Some(keeper) = self.keeper {
                keeper.before_call(tool, self.own, &stop).await;
            }
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            let (name, began) = (invocation.name, Instant::now());
            // Here too, not only in what is offered: a model may call what it was not told of,
            // having seen it in the history.
            if self.withheld.contains(&name) {
                return ToolResult::failed("there is no such tool");
            }
            if let Some(personal) = self.personal
                && let Some(answered) = personal.call(name, invocation.arguments).await
            {
                return answered;
            }
            self.keep_tasks(name).await;
            let mut own_tools = self.own_tools.iter();
            if let Some(tool) = own_tools.find(|tool| tool.name() == name) {
                let answered = tool.call(invocation.arguments, stop).await;
                self.trace(name, began, answered.failed);
                return answered;
            }
            // The time of a person is none of a tool's.
            let waiting = (name == CLARIFY).then(|| self.waits.begin());
            let conversation = self.tools.conversation();
            let live = self.outputs.map(|outputs| outputs.begin(conversation));
            let listener = live.as_ref().map(|live| live as &dyn OutputListener);
            let tools = self.tools.heard_by(listener);
            let answered = tools.call(name, invocation.arguments, &stop).await;
            drop(live);
            drop(waiting);
            if name == CodeTool::NAME {
                // A script goes on while one of its calls waits for an answer.
                self.waits.take();
            }
            // A name that no tool has is the model's own words.
            let known = answered.as_ref().map_or("unknown", |_| name);
            let failed = answered.as_ref().is_none_or(|answered| answered.failed);
            self.trace(known, began, failed);
            match answered {
                Some(answered) => {
                    if name == VISION
                        && let Some(looked) =
                            self.look(&answered, invocation.arguments, &stop).await
                    {
                        return looked;
                    }
                    let text = answered.json.to_text();
                    let text = match self.own.why_stopped() {
                        Some(why) => Redacted::constant(why)
                            .then(&Redacted::constant("\n"))
                            .then(&text),
                        None => text,
                    };
                    let shown = answered.media.iter().filter_map(media_part);
                    ToolResult {
                        parts: std::iter::once(MessagePart::text(text))
                            .chain(shown)
                            .collect(),
                        failed: answered.failed,
                    }
                }
                None => ToolResult::failed("there is no such tool"),
            }
        }
        .boxed()
    }
}

/// A picture or a PDF file as the model is shown it.
fn media_part(media: &ToolMedia) -> Option<MessagePart> {
    let mut part = MediaPart::inline(media.media_type, &media.bytes).ok()?;
    part.name = Some(media.name.clone());
    Some(match media.is_image() {
        true => MessagePart::Image(part),
        false => MessagePart::File(part),
    })
}

/// The tool that writes the list of tasks.
const TODO: &str = "todo";

/// The tool whose picture another model may look at. Those of other tools come with words of their own.
const VISION: &str = "vision_analyze";

/// The tool that waits for a person.
const CLARIFY: &str = "clarify";

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
