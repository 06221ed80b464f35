//! npm `telegram-test-api`: a small Telegram.

use tokio::process::Command;

use super::{Server, install};

const NAME: &str = "telegram-test-api";
const VERSION: &str = "4.2.1";

const SCRIPT: &str = r#"
const Server = require("telegram-test-api");
const port = Number(process.argv[1]);
new Server({ port, host: "127.0.0.1", storage: "RAM", storeTimeout: 600 }).start()
  .then(() => console.log("READY"));
"#;

#[derive(Debug)]
pub struct TelegramTestApi(Server);

impl TelegramTestApi {
    /// An error says why not.
    pub async fn start() -> Result<Self, String> {
        let installed = install(NAME, VERSION).await?;
        let server = Server::start(|port| {
            let mut command = Command::new("node");
            command
                .args(["-e", SCRIPT, &port.to_string()])
                .current_dir(&installed);
            command
        });
        server.await.map(Self)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }
}
