//! The world that a gateway is built into.

use std::sync::Arc;

use hermetic_acp::AgentPrograms;
use hermetic_agent::LanguageModel;
use hermetic_chat::Chat;
use hermetic_sandbox::Backend;
use hermetic_types::{SharedClock, SystemClock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Everything outside that a gateway speaks to, and the time.
///
/// By default it is the real world, as the configuration describes it. A test puts a fake chat, a backend
/// without a kernel, a scripted model or a clock that it moves in the place of any of them; the
/// configuration still decides about everything else.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The platforms that people write on; `None` stands for those that are configured.
    pub chats: Option<Vec<Arc<dyn Chat>>>,
    /// Where sandboxes come from; `None` stands for what this host has.
    pub backends: Option<Vec<Arc<dyn Backend>>>,
    /// Whoever answers, and looks at commands before a person does; `None` stands for the endpoints that
    /// are configured.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// The agents of others that are known by name; `None` stands for those of this installation.
    pub agents: Option<Arc<dyn AgentPrograms>>,
    pub clock: SharedClock,
    /// Ends a wait for another gateway's place.
    pub stop: CancellationToken,
    /// Whether this gateway stands by, for whoever tells others so.
    pub standing_by: watch::Sender<bool>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            chats: None,
            backends: None,
            model: None,
            agents: None,
            clock: SystemClock::shared(),
            stop: CancellationToken::new(),
            standing_by: watch::Sender::default(),
        }
    }
}
