//! Each part's settings in types that cannot be wrong.

mod agent;
mod approvals;
mod egress;
mod gateway;
mod model;
mod pick;
mod platforms;
mod session;
mod terminal;

pub use agent::{Agent, BusyInput, CodeExecution, Streaming, ToolOutput, WorkingDirectory};
pub use approvals::{ApprovalMode, Approvals, Security, UnattendedAnswer};
pub use egress::{CredentialSource, Egress, EgressAddition, EgressCredential, EgressMode};
pub use gateway::{Dashboard, Gateway};
pub use model::{Model, ModelRef, Provider};
pub use platforms::{
    Discord, DiscordAccount, DiscordBackfill, Platform, Platforms, Signal, SignalAccount, Slack,
    SlackAccount, SlackIntake, Stranger, Telegram, TelegramAccount, TelegramWebhook, Webhook,
    WhatsApp, WhatsAppCloud,
};
pub use session::{ResetMode, Sessions};
pub use terminal::{Docker, Native, NativeMount, Ssh, Terminal};

use crate::effective::Setting;
use crate::problem::Problem;
use pick::Pick;

/// Everything that is handed out.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) terminal: Terminal,
    pub(crate) gateway: Gateway,
    pub(crate) egress: Egress,
    pub(crate) approvals: Approvals,
    pub(crate) security: Security,
    pub(crate) agent: Agent,
    pub(crate) sessions: Sessions,
    pub(crate) model: Model,
    pub(crate) platforms: Platforms,
}

impl Parts {
    pub(crate) fn build(
        settings: &[Setting],
        variable: &dyn Fn(&str) -> Option<String>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let pick = Pick::new(settings, variable);
        Self {
            terminal: Terminal::build(&pick, problems),
            gateway: Gateway::build(&pick),
            egress: Egress::build(&pick, problems),
            approvals: Approvals::build(&pick),
            security: Security::build(&pick),
            agent: Agent::build(&pick),
            sessions: Sessions::build(&pick),
            model: Model::build(&pick, problems),
            platforms: Platforms::build(&pick, problems),
        }
    }
}
