//! What tools share that have a file made by a service of others, and put it into the workspace.

use hermetic_sandbox::Sandbox;
use hermetic_warden::protocol::{PathAt, WriteRequest};
use serde_json::Value;
use uuid::Uuid;

use crate::ConversationTools;
use crate::toolbox::RawAnswer;

/// The answer of such a tool; nothing was made where the call was interrupted.
pub(crate) fn made_answer(
    made: Option<Result<Value, String>>,
    failed: impl FnOnce(String) -> Value,
) -> RawAnswer {
    match made.unwrap_or_else(|| Err("interrupted".to_owned())) {
        Ok(json) => RawAnswer {
            json,
            failed: false,
        },
        Err(error) => RawAnswer {
            json: failed(error),
            failed: true,
        },
    }
}

/// A name below the workspace that nobody has chosen. Twelve digits are enough for one conversation and
/// short enough to be written by a model.
pub(crate) fn new_path(folder: &str, ending: &str) -> String {
    let id = Uuid::new_v4().simple().to_string();
    format!("{folder}/{}.{ending}", &id[..12])
}

impl ConversationTools<'_> {
    /// Writes what was made into the workspace.
    pub(crate) async fn put(
        &self,
        sandbox: &Sandbox,
        path: &str,
        bytes: &[u8],
    ) -> Result<(), String> {
        let write = WriteRequest {
            at: PathAt::beneath(self.kit.terminal.workspace(), path),
            mode: 0o644,
            parents: true,
            replaces: None,
        };
        let writing = async {
            let mut file = sandbox.warden().write_file(write).await?;
            file.write(bytes).await?;
            file.finish().await
        };
        writing
            .await
            .map_err(|error| format!("it was made, but could not be written: {error}"))
    }
}
