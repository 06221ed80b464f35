//! Our commands, told to Telegram so that people find them behind the menu button and while they type a slash.

use serde::Serialize;
use serde_json::Value;
use tracing::{info, warn};

use crate::{MenuCommand, TelegramAdapter};

/// What Telegram takes of a description.
const DESCRIPTION_CHARACTERS: usize = 256;
/// What Telegram takes of commands.
const MOST_MENU_COMMANDS: usize = 100;

#[derive(Serialize)]
struct SetMyCommands<'a> {
    commands: Vec<BotCommand<'a>>,
}

#[derive(Serialize)]
struct BotCommand<'a> {
    command: &'a str,
    description: String,
}

impl TelegramAdapter {
    /// Once in the life of a process. What goes wrong costs nobody a message, so it is only said.
    pub(crate) async fn announce_commands(&self) {
        if self.commands.is_empty() || self.announced.set(()).is_err() {
            return;
        }
        let params = SetMyCommands {
            commands: self.commands.iter().filter_map(described).collect(),
        };
        let count = params.commands.len();
        match self.wire.call::<Value>("setMyCommands", &params).await {
            Ok(_) => info!(account = %self.account, count, "our commands are in the menu"),
            Err(error) => {
                warn!(account = %self.account, %error, "our commands could not be announced");
            }
        }
    }
}

/// A command as Telegram takes one; nothing where its name is none there.
fn described(command: &MenuCommand) -> Option<BotCommand<'_>> {
    let name = command.name.as_str();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let fits = (1..=32).contains(&name.len()) && name.bytes().all(plain);
    fits.then(|| BotCommand {
        command: name,
        description: command.about.chars().take(DESCRIPTION_CHARACTERS).collect(),
    })
}

/// As many as Telegram takes.
pub(crate) fn fitting(mut commands: Vec<MenuCommand>) -> Vec<MenuCommand> {
    commands.truncate(MOST_MENU_COMMANDS);
    commands
}
