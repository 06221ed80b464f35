//! A real browser, driven by npm `playwright-core`, with npm `axe-core` to look for what keeps people out.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::install;

const PLAYWRIGHT: (&str, &str) = ("playwright-core", "1.65.1");
const AXE: (&str, &str) = ("axe-core", "4.14.0");

/// Under load a browser takes its time.
const LONGEST_RUN: Duration = Duration::from_secs(420);

/// What scripts begin with: `browser`, started, and `axe`, the text of axe-core.
const BEGINNING: &str = r#"
const { chromium } = require("playwright-core");
const axe = require("fs").readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const told = JSON.parse(process.env.TOLD);
const assert = require("assert");
(async () => {
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
"#;

const END: &str = r#"
console.log("DONE");
} finally { await browser.close(); }
})().catch((error) => { console.error(error); process.exit(1); });
"#;

/// Scripts in a browser that is installed here.
#[derive(Debug)]
pub struct BrowserScripts {
    chromium: PathBuf,
    modules: String,
}

impl BrowserScripts {
    /// Finds the browser and installs what drives it; an error says what is missing.
    pub async fn install() -> Result<Self, String> {
        let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
        let chromium = places.map(Path::new).into_iter().find(|path| path.exists());
        let chromium = chromium.ok_or("there is no chromium")?.to_owned();
        let mut modules = Vec::new();
        for (name, version) in [PLAYWRIGHT, AXE] {
            let folder = install(name, version).await?;
            modules.push(folder.join("node_modules").display().to_string());
        }
        Ok(Self {
            chromium,
            modules: modules.join(":"),
        })
    }

    /// Runs a script with `browser`, `axe` and what it is told. Gives back what it said, or how it failed.
    pub async fn run(&self, script: &str, told: &serde_json::Value) -> Result<String, String> {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let run = Command::new("node")
            .arg("-e")
            .arg(format!("{BEGINNING}{script}{END}"))
            .env("NODE_PATH", &self.modules)
            .env("CHROMIUM", &self.chromium)
            .env("TOLD", told.to_string())
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .output();
        let output = timeout(LONGEST_RUN, run)
            .await
            .map_err(|_| "the browser takes too long".to_owned())?
            .map_err(|error| format!("node does not start: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() && said.contains("DONE") {
            true => Ok(said),
            false => Err(format!(
                "{said}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}
