//! Each part's settings in types that cannot be wrong.

mod agent;
mod approvals;
mod budgets;
mod egress;
mod gateway;
mod mcp;
mod mcp_login;
mod model;
mod pick;
mod platforms;
mod proxy;
mod session;
mod terminal;

pub use agent::{
    AgentConfig, BusyInput, CodeExecution, CompressionConfig, ImageInput, StreamingConfig,
    ToolOutput, ToolProgressConfig, WorkingDirectory,
};
pub use approvals::{ApprovalMode, ApprovalsConfig, SecurityConfig, UnattendedAnswer};
pub use budgets::{BudgetsConfig, DayBudget};
pub use egress::{
    CredentialSource, EgressAddition, EgressConfig, EgressCredential, EgressMode, UpstreamNames,
};
pub use gateway::{DashboardConfig, GatewayConfig};
pub use mcp::{McpServerConfig, McpServerKind};
pub use model::{ModelConfig, ModelRef, ProviderConfig};
pub use platforms::{
    DiscordAccount, DiscordBackfill, DiscordPlatform, MatrixAccount, MatrixCredentials,
    MatrixEncryption, MatrixPlatform, PlatformConfig, PlatformConfigs, SignalAccount,
    SignalPlatform, SlackAccountConfig, SlackIntake, SlackPlatform, StrangerPolicy,
    TelegramAccount, TelegramPlatform, TelegramWebhook, WebhookPlatform, WhatsApp,
    WhatsAppCloudPlatform, WhatsAppNumber,
};
pub use session::{ResetMode, SessionsConfig};
pub use terminal::{DockerTerminal, NativeMount, NativeTerminal, SshTerminal, TerminalConfig};

use crate::effective::EffectiveSetting;
use crate::problem::ConfigProblem;
use pick::SettingPicker;
pub(crate) use pick::words;

/// Everything that is handed out.
#[derive(Clone, Debug)]
pub(crate) struct ConfigSections {
    pub(crate) terminal: TerminalConfig,
    pub(crate) gateway: GatewayConfig,
    pub(crate) egress: EgressConfig,
    pub(crate) approvals: ApprovalsConfig,
    pub(crate) security: SecurityConfig,
    pub(crate) agent: AgentConfig,
    pub(crate) sessions: SessionsConfig,
    pub(crate) model: ModelConfig,
    pub(crate) budgets: BudgetsConfig,
    pub(crate) mcp_servers: Vec<McpServerConfig>,
    pub(crate) platforms: PlatformConfigs,
}

impl ConfigSections {
    pub(crate) fn build(
        settings: &[EffectiveSetting],
        variable: &dyn Fn(&str) -> Option<String>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Self {
        let pick = SettingPicker::new(settings, variable);
        let gateway = GatewayConfig::build(&pick, problems);
        let egress = EgressConfig::build(&pick, gateway.proxy.as_ref(), problems);
        Self {
            mcp_servers: mcp::servers(&pick, &egress, problems),
            terminal: TerminalConfig::build(&pick, problems),
            gateway,
            egress,
            approvals: ApprovalsConfig::build(&pick),
            security: SecurityConfig::build(&pick),
            agent: AgentConfig::build(&pick),
            sessions: SessionsConfig::build(&pick),
            model: ModelConfig::build(&pick, problems),
            budgets: BudgetsConfig::build(&pick),
            platforms: PlatformConfigs::build(&pick, problems),
        }
    }
}
