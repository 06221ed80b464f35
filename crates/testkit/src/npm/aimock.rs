//! npm `@copilotkit/aimock`: a model's endpoint.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{Server, install};

const NAME: &str = "@copilotkit/aimock";
const VERSION: &str = "1.43.0";

#[derive(Debug)]
pub struct Aimock {
    server: Server,
    _folder: TempDir,
}

impl Aimock {
    /// With these fixtures, as its documentation describes them; an error says why not.
    pub async fn start(fixtures: &Value) -> Result<Self, String> {
        let installed = install(NAME, VERSION).await?;
        let script = installed.join("node_modules/.bin/aimock");
        let script = script
            .canonicalize()
            .map_err(|error| format!("{NAME} has no command: {error}"))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let said = folder.path().join("fixtures.json");
        let config = folder.path().join("config.json");
        for (path, value) in [
            (&said, &json!({"fixtures": fixtures})),
            (&config, &json!({"llm": {"fixtures": said}})),
        ] {
            fs::write(path, value.to_string()).map_err(|error| error.to_string())?;
        }
        let server = Server::start(|port| {
            let mut command = Command::new("node");
            command
                .arg(&script)
                .arg("-c")
                .arg(&config)
                .args(["-p", &port.to_string()])
                .current_dir(folder.path());
            command
        })
        .await?;
        Ok(Self {
            server,
            _folder: folder,
        })
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.server.port)
    }
}
