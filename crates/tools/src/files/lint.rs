//! Whether a text that was written can be read as what its name says.
//!
//! JSON is read here; Python, TOML and YAML by the python3 that is inside, which looks at nothing but
//! its stdin. Where it is not there, or does not know the form, nothing is said.

use hermetic_policy::{CheckedSyntax, Cleared, OwnProgram};
use hermetic_warden::protocol::ExitState;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::file_session::FileSession;
use super::place::ResolvedPath;

/// Longer ones are data.
const LONGEST_LINTED_FILE: usize = 1 << 20;
const SHOWN_CHARS: usize = 500;

impl FileSession<'_> {
    /// `None` where nobody can tell.
    pub(super) async fn lint(&self, place: &ResolvedPath, text: &str) -> Option<Value> {
        let name = place.name();
        let (_, kind) = name.rsplit_once('.')?;
        if text.len() > LONGEST_LINTED_FILE {
            return None;
        }
        let wrong = match kind {
            "json" => serde_json::from_str::<IgnoredAny>(text)
                .err()
                .map(|error| error.to_string()),
            "py" => self.check_inside(CheckedSyntax::Python, text).await?,
            "toml" => self.check_inside(CheckedSyntax::Toml, text).await?,
            "yaml" | "yml" => self.check_inside(CheckedSyntax::Yaml, text).await?,
            _ => return None,
        };
        let (status, output) = match wrong {
            Some(output) => ("error", output),
            None => ("ok", String::new()),
        };
        Some(json!({"status": status, "output": output}))
    }

    async fn check_inside(&self, of: CheckedSyntax, text: &str) -> Option<Option<String>> {
        let text = text.to_owned();
        let cleared = Cleared::own_program(OwnProgram::CheckSyntax { of, text });
        // The call ends with its own timeout, and whoever gives it up drops it.
        let never = CancellationToken::new();
        let finished = self.sandbox.run(cleared, SHOWN_CHARS * 4, &never).await;
        let finished = finished.ok()?;
        let status = finished.ended.status;
        let said = finished.stdout.into_bytes();
        let said = String::from_utf8_lossy(&said);
        match status {
            ExitState::Exited(0) => Some(None),
            ExitState::Exited(1) => Some(Some(said.trim().chars().take(SHOWN_CHARS).collect())),
            _ => None,
        }
    }
}
