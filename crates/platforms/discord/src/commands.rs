//! Our commands, announced to Discord so that people find them behind a slash.
//!
//! Discord counts how often commands are made and shows changes late, so they are written only where
//! they differ. What was announced last is remembered: most starts ask for nothing at all.

use hermetic_chat::SaveDurability;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tracing::{info, warn};

use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::wire::DiscordCallError;
use crate::{CommandSync, DiscordAdapter, SlashCommand};

/// Where the hash of what was announced last is kept.
const KEY: &str = "commands";
/// What Discord shows of a description.
const DESCRIPTION_CHARACTERS: usize = 100;
/// The kind of an option that is any text.
const TEXT: u8 = 3;

#[derive(Deserialize)]
struct RawId {
    id: Snowflake,
}

impl DiscordAdapter {
    /// Once in the life of a process. What goes wrong costs nobody a message, so it is only said.
    pub(crate) async fn announce_commands(&self) {
        if self.command_sync == CommandSync::Off || self.commands.is_empty() {
            return;
        }
        let announce = || async {
            let announced = self.announce().await;
            announced.unwrap_or_else(|error| {
                warn!(account = %self.account, %error, "our commands could not be announced");
            });
        };
        self.announced.get_or_init(announce).await;
    }

    async fn announce(&self) -> Result<(), DiscordCallError> {
        let wanted: Vec<_> = self.commands.iter().map(described).collect();
        let fingerprint = self.fingerprint(&wanted);
        if let Ok(Some(kept)) = self.store.load(KEY).await
            && kept == fingerprint
        {
            return Ok(());
        }
        let route = ApiRoute::get("/applications/@me", &[]);
        let application: RawId = self.wire.patiently(&route, |r| r).await?;
        let application = application.id;
        match self.command_sync {
            CommandSync::Off => return Ok(()),
            CommandSync::Bulk => {
                let route = ApiRoute::put("/applications/{}/commands", &[&application]);
                let _: Value = self.wire.patiently(&route, |r| r.json(&wanted)).await?;
            }
            CommandSync::Safe => self.write_what_differs(application, &wanted).await?,
        }
        info!(account = %self.account, commands = wanted.len(), "our commands are announced");
        if let Err(error) = self
            .store
            .save(KEY, &fingerprint, SaveDurability::Soon)
            .await
        {
            warn!(%error, "it was not kept that our commands are announced");
        }
        Ok(())
    }

    async fn write_what_differs(
        &self,
        application: Snowflake,
        wanted: &[Value],
    ) -> Result<(), DiscordCallError> {
        let route = ApiRoute::get("/applications/{}/commands", &[&application]);
        let there: Vec<Value> = self.wire.patiently(&route, |r| r).await?;
        for command in wanted {
            if !there.iter().any(|other| says_the_same(command, other)) {
                // One of the same name is replaced.
                let route = ApiRoute::post("/applications/{}/commands", &[&application]);
                let _: Value = self.wire.patiently(&route, |r| r.json(command)).await?;
            }
        }
        Ok(())
    }

    /// Of what is wanted, and of the bot that it is announced for.
    fn fingerprint(&self, wanted: &[Value]) -> String {
        let us = self.me.get().map(ToString::to_string).unwrap_or_default();
        let policy = self.command_sync;
        let text = format!("{us} {policy:?} {}", json!(wanted));
        let hash = Sha256::digest(text);
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn described(command: &SlashCommand) -> Value {
    let short = |text: &str| {
        text.chars()
            .take(DESCRIPTION_CHARACTERS)
            .collect::<String>()
    };
    let option = command.argument.as_ref().map(|argument| {
        let mut option = json!({
            "type": TEXT,
            "name": argument.name,
            "description": short(&argument.description),
            "required": argument.required,
        });
        if !argument.words.is_empty() {
            option["autocomplete"] = json!(true);
        }
        option
    });
    json!({
        "type": 1,
        "name": command.name,
        "description": short(&command.description),
        "options": option.into_iter().collect::<Vec<_>>(),
    })
}

/// Whether a command that is there is the wanted one. Discord leaves out what is false or empty, and
/// adds fields of its own.
fn says_the_same(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => wanted
            .iter()
            .all(|(name, value)| says_the_same(value, there.get(name).unwrap_or(&Value::Null))),
        (Value::Array(wanted), Value::Array(there)) => {
            let mut pairs = wanted.iter().zip(there);
            wanted.len() == there.len() && pairs.all(|(a, b)| says_the_same(a, b))
        }
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        (Value::Bool(false), Value::Null) => true,
        (wanted, there) => wanted == there,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_discord_leaves_out_or_adds_is_no_difference() {
        let wanted = json!({ "name": "sh", "options": [{ "name": "command", "required": false }] });
        let same = json!({
            "id": "1", "name": "sh", "version": "2",
            "options": [{ "name": "command", "type": 3 }],
        });
        assert!(says_the_same(&wanted, &same));
        let none = json!({ "name": "stop", "options": [] });
        assert!(says_the_same(&none, &json!({ "name": "stop" })));
        let other = json!({ "name": "sh", "options": [{ "name": "command", "required": true }] });
        assert!(!says_the_same(&wanted, &other));
        assert!(!says_the_same(&wanted, &json!({ "name": "sh" })));
    }
}
