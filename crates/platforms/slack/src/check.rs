//! Who a token belongs to, and what the bot may not do.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};

use crate::account::SlackAccount;
use crate::config::SlackEventIntake;
use crate::identity::BotIdentity;
use crate::wire::SlackCallError;

/// Scopes of the bot token, and what does not work without each.
const SCOPES: [(&str, &str); 11] = [
    ("chat:write", "it cannot answer"),
    ("im:history", "it does not hear private messages"),
    ("im:write", "it cannot begin a private chat"),
    (
        "im:read",
        "it does not find private messages of people who wrote while it was away",
    ),
    (
        "app_mentions:read",
        "it does not hear who names it in a channel",
    ),
    (
        "channels:history",
        "it does not hear threads in public channels",
    ),
    ("channels:read", "it does not know in which channels it is"),
    ("groups:history", "it does not hear private channels"),
    ("files:read", "it does not get the files that people send"),
    ("files:write", "it cannot send files"),
    ("commands", "its slash commands do not work"),
];

impl SlackAccount {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let identity = BotIdentity::ask(&self.wire).await?;
        let mut shortcomings = missing_scopes(&identity);
        if let SlackEventIntake::SocketMode { app_token } = &self.intake {
            // It asks for a socket and does not open it: one that is never opened takes no events away.
            let opened = self
                .wire
                .ask_as("apps.connections.open", &[], app_token)
                .await;
            match opened {
                Err(error) if error.is_final() => shortcomings.push(AccountShortcoming {
                    problem: format!("Socket Mode does not take the app token: {error}"),
                    remedy:
                        "switch Socket Mode on and make an app-level token with connections:write"
                            .to_owned(),
                }),
                opened => drop(opened?),
            }
        }
        Ok(AccountCheck {
            name: Some(identity.workspace),
            shortcomings,
        })
    }
}

/// None where the server does not tell scopes, as stand-ins do not.
fn missing_scopes(identity: &BotIdentity) -> Vec<AccountShortcoming> {
    let has = |scope: &str| identity.scopes.iter().any(|granted| granted == scope);
    let missing = SCOPES
        .iter()
        .filter(|(scope, _)| !identity.scopes.is_empty() && !has(scope));
    missing
        .map(|(scope, problem)| AccountShortcoming {
            problem: (*problem).to_owned(),
            remedy: format!("add the bot token scope {scope} and install the app again"),
        })
        .collect()
}

impl From<SlackCallError> for CheckError {
    fn from(error: SlackCallError) -> Self {
        let description = error.to_string();
        match error {
            error if error.is_final() => Self::Unauthorized { description },
            SlackCallError::Refused { .. } => Self::Refused { description },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
