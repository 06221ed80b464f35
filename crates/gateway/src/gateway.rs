//! The parts, brought together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermetic_access::Access;
use hermetic_agent::Agent;
use hermetic_chat::Chat;
use hermetic_redact::Redactor;
use hermetic_session::Sandboxes;
use hermetic_store::{History, Inbox, Store, ToolCalls};
use hermetic_types::{HealthReport, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::asking::Asking;
use crate::destroy::Confirmations;
use crate::files::Outbound;
use crate::lanes::Lanes;
use crate::post::Post;
use crate::seats::Seats;
use crate::{Gates, Resets, Stage, Streaming, Worksites};

/// What a gateway is made of. The binary builds them from the configuration.
#[derive(Debug)]
pub struct Parts {
    pub access: Access,
    pub chats: Vec<Arc<dyn Chat>>,
    /// Where platforms that call us are heard.
    pub doors: Vec<(TcpListener, axum::Router)>,
    pub store: Store,
    pub sandboxes: Sandboxes,
    pub agent: Agent,
    pub worksites: Worksites,
    pub asking: Asking,
    pub redactor: Redactor,
    pub settings: Settings,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub busy: Busy,
    pub resets: Resets,
    pub gates: Gates,
    /// How many conversations have a turn at work at once.
    pub most_at_work: Option<usize>,
    /// How many of them may be one person's.
    pub most_at_work_each: usize,
    /// How long a silent conversation is remembered.
    pub memory: Option<Duration>,
    /// How large a file may be that comes along.
    pub inbound_bytes: u64,
    /// `None`: an answer is sent when it is whole.
    pub streaming: Option<Streaming>,
    pub typing: bool,
    /// How often typing is shown again.
    pub typing_every: Duration,
    /// How often a message is begun before it is given up.
    pub attempts: u32,
    /// How long turns may go on when the gateway is asked to stop.
    pub grace: Duration,
    /// Whether `/destroy` asks first.
    pub confirm_destructive: bool,
    pub model: String,
    /// What everybody who looks at the state should read: that chats run on the host.
    pub warnings: Vec<String>,
}

/// What a message does while a turn is at work in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    Interrupt,
    Queue,
    Steer,
}

#[derive(Debug)]
pub struct Gateway {
    pub(crate) access: Access,
    pub(crate) chats: Vec<Arc<dyn Chat>>,
    pub(crate) store: Store,
    pub(crate) inbox: Inbox,
    pub(crate) history: History,
    pub(crate) tool_calls: ToolCalls,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) agent: Agent,
    pub(crate) worksites: Arc<Worksites>,
    pub(crate) asking: Asking,
    pub(crate) redactor: Redactor,
    pub(crate) settings: Settings,
    pub(crate) confirmations: Confirmations,
    pub(crate) lanes: Lanes,
    pub(crate) post: Post,
    /// A turn takes one; those who find none wait.
    pub(crate) seats: Arc<Seats>,
    pub(crate) stage: watch::Sender<Stage>,
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
    pub fn new(parts: Parts) -> Self {
        let turns = TaskTracker::new();
        let cut = CancellationToken::new();
        let seats = Seats::new(
            parts.settings.most_at_work,
            parts.settings.most_at_work_each,
        );
        let worksites = Arc::new(parts.worksites);
        let post = Post::new(
            parts.chats.iter().cloned(),
            &parts.store,
            Arc::new(Outbound {
                sandboxes: parts.sandboxes.clone(),
                worksites: Arc::clone(&worksites),
                redactor: parts.redactor.clone(),
            }),
            parts.redactor.clone(),
            turns.clone(),
            cut.clone(),
        );
        Self {
            access: parts.access,
            chats: parts.chats,
            inbox: parts.store.inbox(),
            history: parts.store.history(),
            tool_calls: parts.store.tool_calls(),
            sandboxes: parts.sandboxes,
            agent: parts.agent,
            worksites,
            asking: parts.asking,
            redactor: parts.redactor,
            settings: parts.settings,
            confirmations: Confirmations::default(),
            lanes: Lanes::new(cut.clone()),
            post,
            seats,
            stage: watch::Sender::new(Stage::Starting),
            troubles: Mutex::default(),
            model_health: HealthReport::default(),
            turns,
            cut,
            store: parts.store,
        }
    }
}
