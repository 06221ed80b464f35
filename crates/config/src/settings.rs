//! Each part's settings in types that cannot be wrong.

mod acp;
mod agent;
mod approvals;
mod budgets;
mod egress;
mod gateway;
mod mcp;
mod mcp_login;
mod memory;
mod model;
mod pick;
mod platforms;
mod proxy;
mod schedules;
mod session;
mod terminal;
mod traces;
mod web;

pub use acp::{AcpAgentConfig, AcpAgentSettings};
pub use agent::{
    AgentConfig, BusyInput, CodeExecution, CompressionConfig, ImageInput, StreamingConfig,
    ToolOutput, ToolProgressConfig, WorkingDirectory,
};
pub use approvals::{ApprovalMode, ApprovalsConfig, SecurityConfig, UnattendedAnswer};
pub use budgets::{BudgetsConfig, DayBudget, ServicePriceConfig};
pub use egress::{
    CredentialSource, EgressAddition, EgressConfig, EgressCredential, EgressMode, UpstreamNames,
};
pub use gateway::{DashboardConfig, GatewayConfig, TraceConfig};
pub use mcp::{McpServerConfig, McpServerKind};
pub use memory::MemoryConfig;
pub use model::{ModelConfig, ModelRef, ProviderConfig};
pub use platforms::{
    DiscordAccount, DiscordBackfill, DiscordPlatform, MatrixAccount, MatrixCredentials,
    MatrixEncryption, MatrixPlatform, PlatformConfig, PlatformConfigs, SignalAccount,
    SignalPlatform, SlackAccountConfig, SlackIntake, SlackPlatform, StrangerPolicy,
    TelegramAccount, TelegramPlatform, TelegramWebhook, WebhookPlatform, WhatsApp,
    WhatsAppCloudPlatform, WhatsAppNumber,
};
pub use schedules::{DelegationConfig, SchedulesConfig};
pub use session::{ResetMode, SessionsConfig};
pub use terminal::{DockerTerminal, NativeMount, NativeTerminal, SshTerminal, TerminalConfig};
pub use web::{
    ImagesConfig, SearchBackend, SearchConfig, SpeechConfig, SpeechEndpoint, SpokenConfig,
    WebConfig,
};

use std::collections::BTreeMap;

use hermetic_types::Secret;

use crate::effective::EffectiveSetting;
use crate::problem::ConfigProblem;
use crate::providers::key_variables;
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
    pub(crate) schedules: SchedulesConfig,
    pub(crate) delegation: DelegationConfig,
    pub(crate) sessions: SessionsConfig,
    pub(crate) model: ModelConfig,
    pub(crate) budgets: BudgetsConfig,
    pub(crate) mcp_servers: Vec<McpServerConfig>,
    pub(crate) web: WebConfig,
    pub(crate) speech: SpeechConfig,
    pub(crate) images: Option<ImagesConfig>,
    pub(crate) spoken: Option<SpokenConfig>,
    pub(crate) acp_agents: Vec<AcpAgentConfig>,
    pub(crate) memory: MemoryConfig,
    pub(crate) platforms: PlatformConfigs,
    /// By the variable that each is in.
    pub(crate) provider_keys: BTreeMap<String, Secret>,
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
            acp_agents: acp::agents(&pick, &egress, problems),
            terminal: TerminalConfig::build(&pick, problems),
            gateway,
            egress,
            approvals: ApprovalsConfig::build(&pick),
            security: SecurityConfig::build(&pick),
            agent: AgentConfig::build(&pick),
            schedules: SchedulesConfig::build(&pick),
            delegation: DelegationConfig::build(&pick),
            sessions: SessionsConfig::build(&pick),
            model: ModelConfig::build(&pick, problems),
            budgets: BudgetsConfig::build(&pick),
            web: WebConfig::build(&pick, problems),
            speech: SpeechConfig::build(&pick, problems),
            images: ImagesConfig::build(&pick, problems),
            spoken: SpokenConfig::build(&pick, problems),
            memory: MemoryConfig::build(&pick),
            platforms: PlatformConfigs::build(&pick, problems),
            provider_keys: key_variables()
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), Secret::new(pick.variable(name)?))))
                .collect(),
        }
    }
}
