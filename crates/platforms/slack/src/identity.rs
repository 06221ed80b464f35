//! Who we are to Slack, and in which workspace.
//!
//! One app may be installed in many workspaces, and over its sockets come the events of all of them. An
//! account is one workspace: what belongs to another is not heard, because it would be answered with the
//! wrong token, to people who happen to have the same ids.

use hermetic_types::UserId;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::{SlackAnswer, SlackApi, SlackCallError, read_as};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BotIdentity {
    pub(crate) home: InstalledIn,
    /// The bot as somebody who can be mentioned.
    pub(crate) user: String,
    /// The bot as an author of messages.
    pub(crate) bot: Option<String>,
    /// What the token may do, as Slack says it.
    pub(crate) scopes: Vec<String>,
    /// The workspace's name, for people.
    pub(crate) workspace: String,
}

/// Where the bot is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InstalledIn {
    Workspace(String),
    /// In all workspaces of an organisation.
    Organisation(String),
}

#[derive(Deserialize)]
struct RawTokenOwner {
    team_id: Option<String>,
    #[serde(default)]
    team: Option<String>,
    user_id: String,
    bot_id: Option<String>,
    enterprise_id: Option<String>,
    #[serde(default)]
    is_enterprise_install: Option<bool>,
}

impl BotIdentity {
    pub(crate) async fn ask(wire: &SlackApi) -> Result<Self, SlackCallError> {
        Self::read(wire.ask("auth.test", &[]).await?)
    }

    fn read(mut answer: SlackAnswer) -> Result<Self, SlackCallError> {
        let scopes = answer.scopes.take().unwrap_or_default();
        let raw: RawTokenOwner = read_as(answer)?;
        let organisation = raw
            .enterprise_id
            .filter(|_| raw.is_enterprise_install == Some(true));
        let home = match (organisation, raw.team_id) {
            (Some(organisation), _) => InstalledIn::Organisation(organisation),
            (None, Some(team)) => InstalledIn::Workspace(team),
            (None, None) => return Err(SlackCallError::Garbled { status: 200 }),
        };
        let scopes = scopes
            .split(',')
            .map(str::trim)
            .filter(|scope| !scope.is_empty());
        Ok(Self {
            home,
            user: raw.user_id,
            bot: raw.bot_id,
            scopes: scopes.map(str::to_owned).collect(),
            workspace: raw.team.unwrap_or_default(),
        })
    }

    /// Whether a message with these authors is one of ours.
    pub(crate) fn wrote(&self, user: Option<&str>, bot: Option<&str>) -> bool {
        user == Some(self.user.as_str()) || bot.is_some() && bot == self.bot.as_deref()
    }
}

impl InstalledIn {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Workspace(id) | Self::Organisation(id) => id,
        }
    }

    /// Whether an event was delivered to us here. In a channel shared with another organisation the
    /// event's own workspace may be theirs, and `authorizations` say for whom it was delivered.
    pub(crate) fn covers(&self, payload: &Value) -> bool {
        let named = |place: &Value| match self {
            Self::Workspace(team) => place["team_id"].as_str() == Some(team),
            Self::Organisation(organisation) => {
                place["enterprise_id"].as_str() == Some(organisation)
            }
        };
        let authorized = payload["authorizations"].as_array().into_iter().flatten();
        named(payload) || authorized.take(16).any(named)
    }

    /// The same for presses and commands, which spell it in two ways.
    pub(crate) fn covers_interaction(&self, payload: &Value) -> bool {
        let (nested, flat) = match self {
            Self::Workspace(_) => ("team", "team_id"),
            Self::Organisation(_) => ("enterprise", "enterprise_id"),
        };
        let id = payload[nested]["id"].as_str().or(payload[flat].as_str());
        id == Some(self.id())
    }

    /// A person's id. Somebody of another workspace is called `T0OTHER/U123`, so that an allowlist with
    /// `U123` on it never means them.
    pub(crate) fn person(&self, user: &str, team: Option<&str>) -> Option<UserId> {
        let foreign = match (self, team) {
            (Self::Workspace(home), Some(team)) if team != home => Some(team),
            // Ids are unique within an organisation, and who is outside of it cannot be told from a
            // message: Slack names only the workspace.
            _ => None,
        };
        let id = match foreign {
            Some(team) => format!("{team}/{user}"),
            None => user.to_owned(),
        };
        UserId::new(id).ok()
    }
}

/// The id by which Slack knows somebody whom [`InstalledIn::person`] named.
pub(crate) fn slack_user(user: &UserId) -> &str {
    let id = user.as_str();
    id.rsplit_once('/').map_or(id, |(_, user)| user)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_workspace_is_not_ours_and_neither_are_its_people() {
        let home = InstalledIn::Workspace("T1".to_owned());
        assert!(home.covers(&json!({"team_id": "T1"})));
        assert!(home.covers(&json!({"team_id": "T2", "authorizations": [{"team_id": "T1"}]})));
        for other in [
            json!({"team_id": "T2"}),
            json!({}),
            json!({"team_id": 1}),
            json!([]),
        ] {
            assert!(!home.covers(&other), "{other}");
        }
        assert!(home.covers_interaction(&json!({"team": {"id": "T1"}})));
        assert!(home.covers_interaction(&json!({"team_id": "T1"})));
        assert!(!home.covers_interaction(&json!({"team": {"id": "T2"}, "team_id": "T1"})));
        let organisation = InstalledIn::Organisation("E1".to_owned());
        assert!(organisation.covers(&json!({"team_id": "T9", "enterprise_id": "E1"})));
        assert!(!organisation.covers(&json!({"team_id": "E1"})));

        let own = home.person("U1", Some("T1")).unwrap();
        let foreign = home.person("U1", Some("T2")).unwrap();
        assert_eq!((own.as_str(), foreign.as_str()), ("U1", "T2/U1"));
        assert_eq!((slack_user(&own), slack_user(&foreign)), ("U1", "U1"));
    }
}
