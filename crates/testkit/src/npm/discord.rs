//! Discord's most used client, npm `discord.js`.

use std::process::Stdio;

use tokio::process::{Child, Command};

use super::install;
use crate::discord::TOKEN;

const PACKAGE: (&str, &str) = ("discord.js", "14.27.0");

/// Answers `ping` with `pong` and a button, `thread` in a thread, a press by changing the message, and
/// any command with `fine`.
const BOT: &str = r#"
const { Client, GatewayIntentBits: Intent, Partials } = require("discord.js");
const [, api, token] = process.argv;
const intents = [Intent.Guilds, Intent.GuildMessages, Intent.DirectMessages, Intent.MessageContent];
const client = new Client({ intents, partials: [Partials.Channel], rest: { api } });
const button = { type: 2, style: 2, label: "Press", custom_id: "choice" };
client.on("messageCreate", async (message) => {
  if (message.author.bot) return;
  if (message.content === "thread") {
    const thread = await message.startThread({ name: "a thread" });
    await thread.send("in it");
    return;
  }
  const components = [{ type: 1, components: [button] }];
  const nonce = message.id.slice(-20);
  await message.reply({ content: "pong", components, nonce, enforceNonce: true });
});
client.on("interactionCreate", async (interaction) => {
  if (!interaction.isButton()) return interaction.reply({ content: "fine", flags: 64 });
  await interaction.deferUpdate();
  await interaction.message.edit({ content: "pressed", components: [] });
});
client.on("error", () => {});
client.login(token);
"#;

/// A bot by discord.js; it ends when dropped.
#[derive(Debug)]
pub struct DiscordJsBot {
    _child: Child,
}

impl DiscordJsBot {
    /// At this API address, without its version; an error says why not.
    pub async fn start(api: &str) -> Result<Self, String> {
        let installed = install(PACKAGE.0, PACKAGE.1).await?;
        let child = Command::new("node")
            .args(["-e", BOT, api, TOKEN])
            .current_dir(&installed)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("node does not start: {error}"))?;
        Ok(Self { _child: child })
    }
}
