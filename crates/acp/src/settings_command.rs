//! `/mode` and `/model`, where somebody else's agent answers.

use hermetic_store::{AgentSettingKind, AgentSettingRows, AgentSettings, StoreError};
use hermetic_types::ConversationKey;

use crate::offers::OfferedChoices;
use crate::running::RunningAgents;
use crate::wire::cut;

/// The conversation in which a mode or a model is chosen, and the agent that answers there.
#[derive(Clone, Copy, Debug)]
pub struct SettingCommand<'a> {
    pub rows: &'a AgentSettingRows,
    pub agents: &'a RunningAgents,
    pub conversation: &'a ConversationKey,
    pub agent: &'a str,
    pub kind: AgentSettingKind,
}

/// Choices that are shown at once.
const SHOWN_CHOICES: usize = 40;
const SHOWN_NAME: usize = 80;

impl SettingCommand<'_> {
    /// What is set, and what could be.
    pub async fn list(&self) -> Result<String, StoreError> {
        let (agent, kind) = (self.agent, self.kind.name());
        let chosen = self.of(self.rows.of(self.conversation, agent).await?);
        let Some(offered) = self.offered() else {
            let chosen = chosen.map_or_else(String::new, |chosen| format!("chosen: {chosen}\n"));
            return Ok(format!(
                "{chosen}{agent} tells its {kind}s when it starts: write to it once, then ask again. /{kind} NAME \
                 is tried with your next message."
            ));
        };
        if offered.choices.is_empty() {
            return Ok(format!("{agent} offers no {kind} to choose."));
        }
        let here = chosen.or(offered.current.clone());
        let here = here.unwrap_or_else(|| "its own choice".to_owned());
        let mut text = format!("here: {}", plain(&here));
        let others: Vec<_> = offered
            .choices
            .iter()
            .filter(|one| one.id != here)
            .collect();
        for choice in others.iter().take(SHOWN_CHOICES) {
            text.push_str(&format!("\n/{kind} {}", choice.id));
            if !choice.name.is_empty() && choice.name != choice.id {
                text.push_str(&format!(" - {}", plain(&choice.name)));
            }
        }
        if others.len() > SHOWN_CHOICES {
            let more = others.len() - SHOWN_CHOICES;
            text.push_str(&format!("\nand {more} more, which /{kind} NAME takes too"));
        }
        Ok(text)
    }

    /// From the next message on; a turn that runs goes on as it is.
    pub async fn choose(&self, wanted: &str) -> Result<String, StoreError> {
        let (agent, kind) = (self.agent, self.kind.name());
        if wanted.eq_ignore_ascii_case("default") {
            self.rows
                .forget(self.conversation, agent, self.kind)
                .await?;
            return Ok(format!(
                "From your next message on {agent} has the {kind} it began with."
            ));
        }
        let offered = self.offered();
        let found = offered.as_ref().map(|offered| offered.find(wanted));
        let value = match found {
            Some(Some(choice)) => choice.id.clone(),
            Some(None) => {
                return Ok(format!(
                    "{agent} does not offer the {kind} {}; /{kind} alone lists what it does. Nothing was changed.",
                    plain(wanted)
                ));
            }
            None => plain(wanted),
        };
        let chosen = (self.kind, value.as_str());
        self.rows.choose(self.conversation, agent, chosen).await?;
        let when = match offered {
            Some(_) => "From your next message on",
            // It has not said yet what it offers; where it does not, its answer begins with that.
            None => "If it offers that, from your next message on",
        };
        Ok(format!(
            "{when} {agent} has the {kind} {value}; /{kind} default takes that back."
        ))
    }

    fn offered(&self) -> Option<OfferedChoices> {
        let offers = self.agents.offers(self.conversation, self.agent)?;
        Some(match self.kind {
            AgentSettingKind::Mode => offers.modes,
            AgentSettingKind::Model => offers.models,
        })
    }

    fn of(&self, settings: AgentSettings) -> Option<String> {
        match self.kind {
            AgentSettingKind::Mode => settings.mode,
            AgentSettingKind::Model => settings.model,
        }
    }
}

/// In one line, and not too much: an agent chooses these words.
fn plain(text: &str) -> String {
    let text = cut(text, SHOWN_NAME);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect()
}
