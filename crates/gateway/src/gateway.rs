//! The parts, brought together.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermetic_access::Access;
use hermetic_acp::RunningAgents;
use hermetic_agent::{Agent, LanguageModel};
use hermetic_chat::Chat;
use hermetic_redact::Redactor;
use hermetic_session::{OutgoingDay, Sandboxes};
use hermetic_store::{BrowserChatRows, HistoryRows, InboxRows, ScheduledJobs, Store, ToolCalls};
use hermetic_tools::LiveOutputs;
use hermetic_types::{HealthReport, Platform, SharedClock, Timestamp};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::ApprovalService;
use crate::conversation::{Clarifications, ConversationRegistry, DestroyConfirmations, TurnLimits};
use crate::delivery::{OutboundFiles, Outbox, OutboxParts};
use crate::memory::MemoryParts;
use crate::message::{CommandAccess, EditOrder, ForgettingClock, VoiceNotes};
use crate::run::SharedServing;
use crate::spending::{ServicePrices, SpendingBook, SpendingLimits};
use crate::{
    AgentChoices, DashboardBuilder, DelegationSettings, GatewayMetrics, GatewayStage,
    MessageTraces, PersonalMemory, PlatformToolsets, ResetSettings, ScheduleSettings, ServingLease,
    StreamingSettings, TraceExport,
};

/// What a gateway is made of. The binary builds them from the configuration.
#[derive(Debug)]
pub struct GatewayParts {
    pub access: Access,
    pub chats: Vec<Arc<dyn Chat>>,
    /// Ports on which platforms call us, with what their adapters answer there.
    pub intakes: Vec<(TcpListener, axum::Router)>,
    pub store: Store,
    /// The right to serve, where several gateways share the store.
    pub lease: Option<ServingLease>,
    pub sandboxes: Sandboxes,
    pub agent: Agent,
    /// Others that may take the turns of a conversation, by the names of their models.
    pub models: BTreeMap<String, Agent>,
    /// Agents of others, and who answers where nobody chose.
    pub agents: AgentChoices,
    pub toolsets: PlatformToolsets,
    pub approvals: ApprovalService,
    /// What outlives a conversation.
    pub memory: PersonalMemory,
    pub redactor: Redactor,
    pub clock: SharedClock,
    pub metrics: GatewayMetrics,
    /// What is told about each stage of a message's life.
    pub traces: MessageTraces,
    /// Sends that away; none where nobody wants it.
    pub trace_export: Option<TraceExport>,
    /// Everything that any part counts, shown on `/metrics`.
    pub registry: Arc<Registry>,
    pub settings: GatewaySettings,
    /// What left today, where that is bounded.
    pub outgoing: Option<Arc<OutgoingDay>>,
    /// Who writes voice messages down.
    pub voice: VoiceNotes,
    /// The model that looks at pictures in the place of one that cannot.
    pub vision: Option<Arc<dyn LanguageModel>>,
    /// Pages beside `/health`; none where nobody wants them.
    pub dashboard: Option<DashboardBuilder>,
    /// The same pages for a process of ours that shows them elsewhere.
    pub dashboard_socket: Option<UnixListener>,
}

#[derive(Clone, Debug)]
pub struct GatewaySettings {
    pub busy: BusyMode,
    pub resets: ResetSettings,
    pub command_access: CommandAccess,
    /// How many conversations have a turn at work at once.
    pub max_concurrent_sessions: Option<usize>,
    /// How many of them may be one person's.
    pub max_turns_per_user: usize,
    /// How long a silent conversation is remembered.
    pub memory: Option<Duration>,
    /// How large a file may be that comes along.
    pub max_inbound_media_bytes: u64,
    /// `None`: an answer is sent when it is whole.
    pub streaming: Option<StreamingSettings>,
    /// Platforms on which it is not shown that an answer is coming.
    pub typing_off: Vec<Platform>,
    /// How often a message is begun before it is given up.
    pub attempts: u32,
    /// How long turns may go on when the gateway is asked to stop.
    pub grace: Duration,
    /// Whether `/destroy` asks first.
    pub confirm_destructive: bool,
    pub model: String,
    /// The same with its fallbacks, as `/model` tells it.
    pub models: String,
    /// Whether the model is shown images and PDFs that come along with a message.
    pub show_media: bool,
    /// Whether a workspace is kept before a turn changes it.
    pub checkpoints: bool,
    /// How long the agent waits for an answer to a question of its own.
    pub clarify_timeout: Duration,
    /// What a day may cost.
    pub spending: SpendingLimits,
    /// What services beside the model cost.
    pub prices: ServicePrices,
    pub schedules: ScheduleSettings,
    pub delegation: DelegationSettings,
    /// What everybody who looks at the state should read: that chats run on the host.
    pub warnings: Vec<String>,
}

/// What a message does while a turn is at work in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyMode {
    Interrupt,
    Queue,
    Steer,
}

#[derive(Debug)]
pub struct Gateway {
    pub(crate) access: Access,
    pub(crate) chats: Vec<Arc<dyn Chat>>,
    pub(crate) store: Store,
    /// The work that is shared with gateways that serve beside this one.
    pub(crate) sharing: Option<SharedServing>,
    /// Whether it is heard that this gateway lives, where others would take its place.
    pub(crate) lease_health: Option<HealthReport>,
    pub(crate) inbox: InboxRows,
    pub(crate) history: HistoryRows,
    /// What was said in the browser, which is forgotten like the rest.
    pub(crate) browser_chat: BrowserChatRows,
    pub(crate) tool_calls: ToolCalls,
    pub(crate) jobs: ScheduledJobs,
    /// Something changed that the schedules should be looked at for.
    pub(crate) schedule_wake: Notify,
    /// Whether jobs fail again and again.
    pub(crate) schedule_health: HealthReport,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) agent: Agent,
    pub(crate) models: BTreeMap<String, Agent>,
    pub(crate) agents: AgentChoices,
    pub(crate) running_agents: RunningAgents,
    pub(crate) toolsets: Arc<PlatformToolsets>,
    pub(crate) approvals: ApprovalService,
    pub(crate) memory: PersonalMemory,
    pub(crate) redactor: Redactor,
    pub(crate) settings: GatewaySettings,
    pub(crate) confirmations: DestroyConfirmations,
    pub(crate) clarifications: Arc<Clarifications>,
    pub(crate) voice: VoiceNotes,
    pub(crate) outgoing: Option<Arc<OutgoingDay>>,
    pub(crate) vision: Option<Arc<dyn LanguageModel>>,
    pub(crate) conversations: ConversationRegistry,
    pub(crate) edits: EditOrder,
    pub(crate) forgetting: ForgettingClock,
    pub(crate) outbox: Outbox,
    pub(crate) turn_limits: Arc<TurnLimits>,
    /// What running calls write, for people who look on.
    pub(crate) outputs: LiveOutputs,
    pub(crate) spending: SpendingBook,
    pub(crate) clock: SharedClock,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) traces: MessageTraces,
    pub(crate) registry: Arc<Registry>,
    pub(crate) stage: watch::Sender<GatewayStage>,
    /// Since when each part that is not well was seen so.
    pub(crate) troubles: Mutex<HashMap<String, Timestamp>>,
    /// How the last turns fared with the model.
    pub(crate) model_health: HealthReport,
    /// Everything that works on a message. `serve` waits for it.
    pub(crate) turns: TaskTracker,
    /// Ends all that works on messages.
    pub(crate) cut: CancellationToken,
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        let turns = TaskTracker::new();
        let cut = CancellationToken::new();
        let turn_limits = TurnLimits::new(
            parts.settings.max_concurrent_sessions,
            parts.settings.max_turns_per_user,
        );
        let spending = SpendingBook::new(
            parts.store.spending(),
            parts.settings.spending,
            Arc::clone(&parts.clock),
        );
        // Known to the counters before it is asked, so that a rate of failures is seen from the
        // first one on.
        parts.metrics.expect_model(&parts.settings.model);
        let toolsets = Arc::new(parts.toolsets);
        let outbox = Outbox::new(OutboxParts {
            chats: &parts.chats,
            store: &parts.store,
            files: Arc::new(OutboundFiles {
                sandboxes: parts.sandboxes.clone(),
                toolsets: Arc::clone(&toolsets),
                redactor: parts.redactor.clone(),
            }),
            redactor: parts.redactor.clone(),
            clock: Arc::clone(&parts.clock),
            tasks: turns.clone(),
            cut: cut.clone(),
            metrics: parts.metrics.clone(),
            traces: parts.traces.clone(),
        });
        Self {
            access: parts.access,
            chats: parts.chats,
            inbox: parts.store.inbox(),
            history: parts.store.history(),
            browser_chat: parts.store.browser_chat(),
            tool_calls: parts.store.tool_calls(),
            jobs: parts.store.scheduled_jobs(),
            schedule_wake: Notify::new(),
            schedule_health: HealthReport::default(),
            sandboxes: parts.sandboxes,
            agent: parts.agent,
            models: parts.models,
            agents: parts.agents,
            running_agents: RunningAgents::default(),
            toolsets,
            approvals: parts.approvals,
            outputs: LiveOutputs::new(parts.redactor.clone()),
            memory: parts.memory,
            redactor: parts.redactor,
            settings: parts.settings,
            confirmations: DestroyConfirmations::default(),
            clarifications: Arc::default(),
            voice: parts.voice,
            outgoing: parts.outgoing,
            vision: parts.vision,
            conversations: ConversationRegistry::default(),
            edits: EditOrder::default(),
            forgetting: ForgettingClock::new(&parts.store),
            outbox,
            turn_limits,
            spending,
            clock: parts.clock,
            metrics: parts.metrics,
            traces: parts.traces,
            registry: parts.registry,
            stage: watch::Sender::new(GatewayStage::Starting),
            troubles: Mutex::default(),
            model_health: HealthReport::default(),
            turns,
            cut,
            sharing: None,
            lease_health: None,
            store: parts.store,
        }
    }

    pub(crate) fn memory_parts(&self) -> MemoryParts<'_> {
        MemoryParts {
            memory: &self.memory,
            store: &self.store,
            redactor: &self.redactor,
            questions: &self.approvals.questions,
            clock: &self.clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
