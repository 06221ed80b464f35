//! Agents of others, from the configuration.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use hermetic_acp::{AgentBounds, AgentListing, AgentProgram, AgentPrograms, AgentUnavailable};
use hermetic_config::{AcpAgentConfig, AcpAgentSettings, Config};
use hermetic_egress::{Credential, CredentialGrant, EgressRules, RulesText};
use hermetic_gateway::AgentChoices;
use hermetic_sandbox::{HostMount, MountMode};
use hermetic_session::InstalledMounts;
use hermetic_types::{BackendKind, Secret};

use crate::AppFailure;
use crate::installed_agents::{agent_programs, can_show};

/// Commands of the operator's, and whatever else can be chosen by name.
#[derive(Debug)]
struct ConfiguredAgents {
    own: Vec<AgentProgram>,
    /// What the operator wrote about those that are known by their names.
    settings: BTreeMap<String, AcpAgentSettings>,
    known: Arc<dyn AgentPrograms>,
}

/// Every agent that can be chosen. `known` are those besides the commands of the configuration.
pub(crate) fn programs(config: &Config, known: Arc<dyn AgentPrograms>) -> Arc<dyn AgentPrograms> {
    let own = config.acp_agents().iter().filter_map(own_program);
    let named = config.acp_agents().iter();
    let named = named.filter(|agent| agent.command.is_none());
    Arc::new(ConfiguredAgents {
        own: own.collect(),
        settings: named
            .map(|agent| (agent.name.clone(), agent.settings.clone()))
            .collect(),
        known,
    })
}

/// The agents that this installation knows by name.
pub(crate) fn known(config: &Config) -> Arc<dyn AgentPrograms> {
    Arc::new(agent_programs(config))
}

/// Who answers where.
pub(crate) fn choices(config: &Config, programs: Arc<dyn AgentPrograms>) -> AgentChoices {
    let platforms = config.platforms().all().into_iter().filter_map(|platform| {
        let agent = platform.agent.clone()?;
        Some((platform.kind()?, agent))
    });
    AgentChoices {
        programs,
        usual: usual(config),
        platforms: platforms.collect::<BTreeMap<_, _>>(),
        bounds: AgentBounds::default(),
        shows_thoughts: config.agent().show_reasoning,
    }
}

/// Who answers where nothing else is said.
pub(crate) fn usual(config: &Config) -> Option<String> {
    config.acp_agents().first().map(|agent| agent.name.clone())
}

/// What is the matter with an agent that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStanding {
    pub name: String,
    /// The key that names it: `agent.acp`, `platforms.slack.agent`.
    pub key: String,
    pub wrong: Option<AgentUnavailable>,
}

/// The agents of others that answer by this configuration, and whether each can. Nothing is started.
pub fn agent_standings(config: &Config) -> Vec<AgentStanding> {
    let programs = programs(config, known(config));
    let everywhere = config.acp_agents().iter();
    let everywhere = everywhere.map(|agent| (agent.name.clone(), "agent.acp".to_owned()));
    let platforms = config.platforms().all().into_iter();
    let platforms = platforms.filter_map(|platform| {
        let key = format!("platforms.{}.agent", platform.name);
        Some((platform.agent.clone()?, key))
    });
    let named = everywhere.chain(platforms);
    let others = named.filter(|(name, _)| name != hermetic_gateway::OWN_AGENT);
    others
        .map(|(name, key)| AgentStanding {
            // Whether it is there and has its key. What a backend cannot do is told by the backend.
            wrong: programs.program(&name, BackendKind::Native).err(),
            name,
            key,
        })
        .collect()
}

/// Names that nobody has: each message would be refused.
pub(crate) fn refusals(config: &Config) -> Vec<AppFailure> {
    let wrong = agent_standings(config).into_iter().filter_map(|standing| {
        let wrong = standing.wrong?;
        let remedy = format!(
            "write one of these for {}, or a `command:` beside a name of your own",
            standing.key
        );
        matches!(wrong, AgentUnavailable::Unknown { .. })
            .then(|| AppFailure::new(format!("{}: {wrong}", standing.key), remedy))
    });
    wrong.collect()
}

/// Agents that are known and cannot answer yet.
pub(crate) fn notices(config: &Config) -> Vec<String> {
    let wrong = agent_standings(config).into_iter().filter_map(|standing| {
        let wrong = standing.wrong?;
        matches!(wrong, AgentUnavailable::Missing { .. })
            .then(|| format!("{}: {wrong}", standing.key))
    });
    wrong.collect()
}

/// Shows new sandboxes the folders of the agents that are installed at that moment.
#[derive(Debug)]
pub(crate) struct AgentMounts(pub(crate) Arc<dyn AgentPrograms>);

impl InstalledMounts for AgentMounts {
    fn mounts(&self, backend: BackendKind) -> Vec<HostMount> {
        if !can_show(backend) {
            return Vec::new();
        }
        let listed = self.0.list(backend).into_iter();
        let usable = listed.filter_map(|agent| self.0.program(&agent.name, backend).ok());
        mounts(&usable.collect::<Vec<_>>())
    }
}

/// What conversations may reach in which one of these answers.
pub(crate) fn add_rules(
    agents: &[AgentProgram],
    rules: &mut EgressRules,
) -> Result<(), AppFailure> {
    for agent in agents {
        let hosts = RulesText::allowing(agent.hosts.iter().cloned());
        rules.agents.insert(agent.name.clone(), hosts);
        for entry in &agent.credentials {
            let variable = entry.variable.to_ascii_lowercase();
            let placeholder = format!("hermetic-placeholder-{variable}");
            let (host, secret) = (entry.host.as_str(), entry.secret.clone());
            let credential =
                Credential::new(host, &entry.header, &entry.scheme, secret, placeholder)
                    .and_then(|credential| credential.limited_to(&entry.paths));
            let credential = credential.map_err(|error| {
                let name = &agent.name;
                AppFailure::caused(&error, format!("choose another agent than {name}, or none"))
            })?;
            rules.credentials.push(CredentialGrant {
                credential,
                scope: None,
                variable: Some(entry.variable.clone()),
                agent: Some(agent.name.clone()),
            });
        }
    }
    Ok(())
}

/// What their programs need of the host, read-only, each folder once.
fn mounts(agents: &[AgentProgram]) -> Vec<HostMount> {
    let mut seen = HashSet::new();
    let all = agents.iter().flat_map(|agent| &agent.mounts);
    let fresh = all.filter(|mount| seen.insert(mount.inside.clone()));
    fresh
        .map(|mount| HostMount {
            source: mount.outside.clone(),
            target: mount.inside.clone(),
            mode: MountMode::ReadOnly,
        })
        .collect()
}

/// Every value that must never be shown.
pub(crate) fn secrets(config: &Config) -> Vec<Secret> {
    // Whatever the backend is: a key is a key.
    let agents = programs(config, known(config)).foreseen(&[BackendKind::Native]);
    let credentials = agents.into_iter().flat_map(|agent| agent.credentials);
    credentials.map(|credential| credential.secret).collect()
}

fn own_program(agent: &AcpAgentConfig) -> Option<AgentProgram> {
    let program = AgentProgram {
        name: agent.name.clone(),
        command: agent.command.clone()?,
        ..AgentProgram::default()
    };
    Some(tuned(program, &agent.settings))
}

/// The program with what the operator wrote on top of what is known of it.
fn tuned(mut program: AgentProgram, settings: &AcpAgentSettings) -> AgentProgram {
    for (name, value) in &settings.env {
        // A stand-in for a key stays: in its place a value would be no key, and a key would be inside.
        let mut keys = program.credentials.iter();
        if !keys.any(|key| key.variable == *name) {
            program.environment.insert(name.clone(), value.clone());
        }
    }
    program.hosts.extend(settings.hosts.iter().cloned());
    let over = |wanted: &Option<String>, usual: Option<String>| wanted.clone().or(usual);
    program.session_mode = over(&settings.mode, program.session_mode);
    program.session_model = over(&settings.model, program.session_model);
    program.authenticate = over(&settings.authenticate, program.authenticate);
    program
}

impl ConfiguredAgents {
    fn tuned(&self, program: AgentProgram) -> AgentProgram {
        match self.settings.get(&program.name) {
            Some(settings) => tuned(program, settings),
            None => program,
        }
    }
}

impl AgentPrograms for ConfiguredAgents {
    fn list(&self, backend: BackendKind) -> Vec<AgentListing> {
        let own = self.own.iter().map(|program| AgentListing {
            name: program.name.clone(),
            about: "a command of the operator's".to_owned(),
            missing: None,
        });
        let is_own = |agent: &AgentListing| self.own.iter().any(|own| own.name == agent.name);
        let known = self.known.list(backend).into_iter();
        own.chain(known.filter(|agent| !is_own(agent))).collect()
    }

    fn foreseen(&self, backends: &[BackendKind]) -> Vec<AgentProgram> {
        let is_own = |name: &str| self.own.iter().any(|own| own.name == name);
        let known = self.known.foreseen(backends).into_iter();
        let known = known.filter(|agent| !is_own(&agent.name));
        let known = known.map(|agent| self.tuned(agent));
        self.own.iter().cloned().chain(known).collect()
    }

    fn program(&self, name: &str, backend: BackendKind) -> Result<AgentProgram, AgentUnavailable> {
        if let Some(own) = self.own.iter().find(|own| own.name == name) {
            return Ok(own.clone());
        }
        let found = self.known.program(name, backend);
        let found = found.map(|program| self.tuned(program));
        found.map_err(|error| match error {
            AgentUnavailable::Unknown { name, .. } => {
                let names = self.list(backend).into_iter().map(|agent| agent.name);
                let mut names: Vec<_> = names.collect();
                names.push(hermetic_gateway::OWN_AGENT.to_owned());
                let known = names.join(", ");
                AgentUnavailable::Unknown { name, known }
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use hermetic_config::{ConfigInputs, HomeFolder, load};

    use super::*;

    fn config(text: &str) -> (tempfile::TempDir, Config) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.yaml"), text).unwrap();
        let inputs = ConfigInputs {
            home: HomeFolder::at(home.path()),
            managed: home.path().join("no-such-file"),
            variables: [(
                "ANTHROPIC_API_KEY".to_owned(),
                "sk-ant-of-the-test".to_owned(),
            )]
            .into(),
            unreadable: Vec::new(),
        };
        let config = load(&inputs).unwrap();
        (home, config)
    }

    #[test]
    fn a_name_that_nobody_has_is_refused_and_what_is_not_there_is_told() {
        let text = "agent: {acp: clod}\nplatforms: {slack: {agent: claude}}\n";
        let (_home, config) = config(text);
        let refused: Vec<_> = refusals(&config).iter().map(ToString::to_string).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].starts_with("agent.acp: there is no agent called \"clod\""));
        assert!(refused[0].contains("claude, codex"), "{refused:?}");
        let told = notices(&config);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("platforms.slack.agent: claude cannot be used"));
        assert!(told[0].contains("hermetic agents install claude"));
    }

    #[test]
    fn our_own_agent_and_commands_of_the_operator_are_no_mistake() {
        for text in [
            "agent: {acp: hermetic}\n",
            "agent: {acp: {name: mine, command: [a]}}\nplatforms: {slack: {agent: mine}}\n",
            "",
        ] {
            let (_home, config) = config(text);
            assert!(refusals(&config).is_empty(), "{text}");
            assert!(notices(&config).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_the_operator_wrote_stands_on_top_of_what_is_known_of_a_name() {
        let text = "agent: {acp: {name: claude, model: opus, mode: plan, hosts: [docs.test], \
                    env: {DISABLE_TELEMETRY: '0', MINE: b}}}\n";
        let (home, config) = config(text);
        std::fs::create_dir_all(home.path().join("hermetic/agents")).unwrap();
        let programs = programs(&config, known(&config));
        let foreseen = programs.foreseen(&[BackendKind::Native]);
        let claude = foreseen.iter().find(|one| one.name == "claude").unwrap();
        assert_eq!(claude.session_model.as_deref(), Some("opus"));
        assert_eq!(claude.session_mode.as_deref(), Some("plan"));
        assert_eq!(claude.hosts, ["api.anthropic.com", "docs.test"]);
        assert_eq!(claude.environment["DISABLE_TELEMETRY"], "0");
        assert_eq!(claude.environment["DISABLE_AUTOUPDATER"], "1", "as it was");
        assert_eq!(claude.environment["MINE"], "b");
        let placeholder = &claude.environment["ANTHROPIC_API_KEY"];
        assert!(placeholder.starts_with("hermetic-placeholder-"));
        let rules = claude.credentials.iter().map(|key| key.host.as_str());
        assert_eq!(rules.collect::<Vec<_>>(), ["api.anthropic.com"]);
    }
}
