//! What was read, as a whole.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hermetic_types::Secret;

use crate::effective::EffectiveSetting;
use crate::home::HomeFolder;
use crate::origin::SettingOrigin;
use crate::problem::ConfigProblem;
use crate::settings::{
    AcpAgentConfig, AgentConfig, ApprovalsConfig, BudgetsConfig, ConfigSections, DelegationConfig,
    EgressConfig, GatewayConfig, ImagesConfig, McpServerConfig, MemoryConfig, ModelConfig,
    PlatformConfigs, SchedulesConfig, SecurityConfig, SessionsConfig, SpeechConfig, SpokenConfig,
    TerminalConfig, WebConfig,
};

/// One configuration, read once and never changed: what is used, shown and warned about is the
/// same.
#[derive(Clone, Debug)]
pub struct Config {
    home: HomeFolder,
    parts: ConfigSections,
    settings: Vec<EffectiveSetting>,
    warnings: Vec<ConfigProblem>,
    unused: Vec<UnusedKey>,
}

/// A key in a file that has no meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedKey {
    pub key: String,
    pub file: PathBuf,
    pub line: usize,
    /// What is missed here by whoever wrote it. Nothing where it is empty or switched off, and where it is
    /// about how the original system works inside.
    pub missed: Option<&'static str>,
    /// The names directly below it, such as those of MCP servers.
    pub names: Vec<String>,
}

impl Config {
    pub(crate) fn new(
        home: HomeFolder,
        parts: ConfigSections,
        settings: Vec<EffectiveSetting>,
        warnings: Vec<ConfigProblem>,
        unused: Vec<UnusedKey>,
    ) -> Self {
        Self {
            home,
            parts,
            settings,
            warnings,
            unused,
        }
    }

    pub fn home(&self) -> &HomeFolder {
        &self.home
    }

    pub fn terminal(&self) -> &TerminalConfig {
        &self.parts.terminal
    }

    pub fn gateway(&self) -> &GatewayConfig {
        &self.parts.gateway
    }

    pub fn egress(&self) -> &EgressConfig {
        &self.parts.egress
    }

    pub fn approvals(&self) -> &ApprovalsConfig {
        &self.parts.approvals
    }

    pub fn security(&self) -> &SecurityConfig {
        &self.parts.security
    }

    pub fn agent(&self) -> &AgentConfig {
        &self.parts.agent
    }

    /// What outlives a conversation.
    pub fn memory(&self) -> &MemoryConfig {
        &self.parts.memory
    }

    pub fn schedules(&self) -> &SchedulesConfig {
        &self.parts.schedules
    }

    pub fn delegation(&self) -> &DelegationConfig {
        &self.parts.delegation
    }

    pub fn budgets(&self) -> &BudgetsConfig {
        &self.parts.budgets
    }

    /// The MCP servers that are switched on.
    pub fn mcp_servers(&self) -> &[McpServerConfig] {
        &self.parts.mcp_servers
    }

    pub fn web(&self) -> &WebConfig {
        &self.parts.web
    }

    pub fn speech(&self) -> &SpeechConfig {
        &self.parts.speech
    }

    /// `None` where nobody makes pictures.
    pub fn spoken(&self) -> Option<&SpokenConfig> {
        self.parts.spoken.as_ref()
    }

    pub fn images(&self) -> Option<&ImagesConfig> {
        self.parts.images.as_ref()
    }

    /// The agents of others that are written down; the first answers where nothing else is said.
    pub fn acp_agents(&self) -> &[AcpAgentConfig] {
        &self.parts.acp_agents
    }

    pub fn sessions(&self) -> &SessionsConfig {
        &self.parts.sessions
    }

    pub fn model(&self) -> &ModelConfig {
        &self.parts.model
    }

    /// The keys of providers that are set, by the variable that each is in.
    pub fn provider_keys(&self) -> &BTreeMap<String, Secret> {
        &self.parts.provider_keys
    }

    pub fn platforms(&self) -> &PlatformConfigs {
        &self.parts.platforms
    }

    /// Every key in the order of the schema, with its value and origin.
    pub fn settings(&self) -> &[EffectiveSetting] {
        &self.settings
    }

    pub fn warnings(&self) -> &[ConfigProblem] {
        &self.warnings
    }

    pub fn unused(&self) -> &[UnusedKey] {
        &self.unused
    }

    /// Where the value of a key came from; `None` for a name that is no key.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.settings
            .iter()
            .find(|setting| setting.name() == key)
            .map(EffectiveSetting::origin)
    }
}
