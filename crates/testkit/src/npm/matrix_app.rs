//! What Element is made of: npm `matrix-js-sdk`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::install;

const PACKAGE: (&str, &str) = ("matrix-js-sdk", "43.0.0");

/// A story takes seconds; under load it takes its time.
const LONGEST_RUN: Duration = Duration::from_secs(300);

/// Shown of what the library wrote when a story failed.
const SHOWN_CHARS: usize = 6000;

/// What scripts begin with: `app` makes somebody's app, `opened` has it listen, `until` waits for what it shows.
const BEGINNING: &str = r#"
import * as sdk from "matrix-js-sdk";
import assert from "node:assert";
const told = JSON.parse(process.env.TOLD);
// The library is made for a newer node than Debian's; this is all it misses.
Promise.withResolvers ??= function () {
  const one = {};
  one.promise = new Promise((resolve, reject) => Object.assign(one, { resolve, reject }));
  return one;
};
const app = (person) => sdk.createClient({ baseUrl: told.homeserver, userId: person.user, deviceId: person.device,
  accessToken: person.token });
const NEWS = ["sync", "Room.timeline", "Room.redaction", "Room.receipt", "Event.replaced",
  "Thread.new", "Thread.update", "Thread.newReply", "RoomMember.membership"];
// Looks again with each of the app's news, and gives up after a minute.
const until = (client, what, look) => new Promise((found, lost) => {
  const end = (last) => {
    clearTimeout(timer);
    for (const name of NEWS) client.off(name, again);
    last();
  };
  const again = () => {
    try {
      const seen = look();
      if (seen) end(() => found(seen));
    } catch (error) {
      end(() => lost(error));
    }
  };
  const timer = setTimeout(() => end(() => lost(new Error(`not seen: ${typeof what === "function" ? what() : what}`))), 60000);
  for (const name of NEWS) client.on(name, again);
  again();
});
const opened = async (client) => {
  await client.startClient({ initialSyncLimit: 30, threadSupport: true });
  await until(client, "the first sync", () => client.isInitialSyncComplete());
};
"#;

/// The library keeps timers of its own, so the end is told.
const END: &str = r#"
console.log("DONE");
process.exit(0);
"#;

/// Stories told by the library that Element is built on.
#[derive(Debug)]
pub struct MatrixAppScripts {
    folder: PathBuf,
}

impl MatrixAppScripts {
    /// Installs it; an error says what is missing.
    pub async fn install() -> Result<Self, String> {
        let folder = install(PACKAGE.0, PACKAGE.1).await?;
        let looked = Command::new("node")
            .args(["--input-type=module", "-e", "import 'matrix-js-sdk';"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status();
        match timeout(LONGEST_RUN, looked).await {
            Ok(Ok(status)) if status.success() => Ok(Self { folder }),
            _ => Err(format!("this node does not run {}", PACKAGE.0)),
        }
    }

    /// Runs a script that is told this. An error says how it failed, behind the last that was written.
    pub async fn run(&self, script: &str, told: &serde_json::Value) -> Result<(), String> {
        let run = Command::new("node")
            .args(["--input-type=module", "-e"])
            .arg(format!("{BEGINNING}{script}{END}"))
            .env("TOLD", told.to_string())
            .env("NO_PROXY", "*")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .output();
        let output = timeout(LONGEST_RUN, run)
            .await
            .map_err(|_| "it takes too long".to_owned())?
            .map_err(|error| format!("node does not start: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && said.ends_with("DONE\n") {
            return Ok(());
        }
        let all = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
        let skipped = all.chars().count().saturating_sub(SHOWN_CHARS);
        Err(all.chars().skip(skipped).collect())
    }
}
