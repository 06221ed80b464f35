//! Agents of others.

use std::collections::BTreeMap;

use super::egress::EgressConfig;
use super::mcp::{environment_inside, secret_words};
use super::pick::{SettingPicker, field, texts_field};
use crate::problem::ConfigProblem;
use crate::value::RecordValue;
use crate::wording::short;

/// One entry of `agent.acp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpAgentConfig {
    /// The name by which it is chosen.
    pub name: String,
    /// A command of the operator's; nothing for one that is known by its name.
    pub command: Option<Vec<String>>,
    /// What the operator wrote beside it: all that is said of a command, and on top of what is known of a name.
    pub settings: AcpAgentSettings,
}

/// How an agent is started, besides its command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpAgentSettings {
    /// With no secret in it unless the operator spelled that out.
    pub env: BTreeMap<String, String>,
    pub hosts: Vec<String>,
    pub mode: Option<String>,
    pub model: Option<String>,
    pub authenticate: Option<String>,
}

/// The name of our own agent, which nobody else can have.
const OWN: &str = "hermetic";
const LONGEST_NAME: usize = 40;

pub(super) fn agents(
    pick: &SettingPicker<'_>,
    egress: &EgressConfig,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<AcpAgentConfig> {
    let mut agents = Vec::<AcpAgentConfig>::new();
    for record in pick.records("agent.acp") {
        let read = agent(record, egress).and_then(|read| {
            let is_taken = agents.iter().any(|agent| agent.name == read.name);
            let twice = || format!("two agents are called `{}`", short(&read.name));
            (!is_taken).then_some(read.clone()).ok_or_else(twice)
        });
        match read {
            Ok(agent) => agents.push(agent),
            Err(why) => problems.push({
                let problem = ConfigProblem::error(format!("agent.acp: {why}"));
                let problem = problem.of_key("agent.acp");
                match &record.place {
                    Some(place) => problem.at(place),
                    None => problem,
                }
            }),
        }
    }
    agents
}

fn agent(record: &RecordValue, egress: &EgressConfig) -> Result<AcpAgentConfig, String> {
    let words = texts_field(record, "command");
    let own_name = words.first().and_then(|word| word.rsplit('/').next());
    let name = field(record, "name").or_else(|| own_name.map(str::to_owned));
    let name = name.map(|name| name.to_ascii_lowercase());
    let name = name.filter(|name| is_name(name)).ok_or(
        "write `name:`, a word of up to 40 letters, digits, `-` and `_`, or `command:` for a program",
    )?;
    if name == OWN {
        if !words.is_empty() {
            return Err(format!("`{OWN}` is our own agent; call yours otherwise"));
        }
        for beside in ["env", "hosts", "mode", "model", "authenticate"] {
            if record.get(beside).is_some() {
                return Err(format!(
                    "`{beside}:` is for agents of others, and `{OWN}` is our own"
                ));
            }
        }
        return Ok(AcpAgentConfig {
            name,
            ..AcpAgentConfig::default()
        });
    }
    if let Some(reason) = secret_words(&words) {
        return Err(format!(
            "{reason}, and whatever runs in the sandbox could read it; name the host it is for under \
             gateway.egress.credentials, and the proxy puts it in"
        ));
    }
    Ok(AcpAgentConfig {
        name,
        settings: AcpAgentSettings {
            env: environment_inside(record, egress)?,
            hosts: texts_field(record, "hosts"),
            mode: field(record, "mode"),
            model: field(record, "model"),
            authenticate: field(record, "authenticate"),
        },
        command: (!words.is_empty()).then_some(words),
    })
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain)
}
