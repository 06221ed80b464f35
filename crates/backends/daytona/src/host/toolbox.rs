//! The calls to the toolbox inside one sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::Url;

use super::daytona::DaytonaState;
use super::service::extended;
use super::shapes::{CreatePty, ExecuteReply, ExecuteRequest};
use super::trouble::DaytonaTrouble;
use super::wire::{ApiRequest, HttpWire};

/// In seconds: what we start there returns at once.
const LONGEST_START: u64 = 60;

/// One sandbox's toolbox.
#[derive(Clone, Debug)]
pub(crate) struct DaytonaToolbox {
    pub(crate) host: Arc<DaytonaState>,
    /// The provider's id of the sandbox.
    pub(crate) sandbox: String,
    base: Url,
}

impl DaytonaToolbox {
    pub(crate) fn new(host: &Arc<DaytonaState>, sandbox: &str, base: Url) -> Self {
        Self {
            host: Arc::clone(host),
            sandbox: sandbox.to_owned(),
            base,
        }
    }

    pub(crate) fn wire(&self) -> &HttpWire {
        &self.host.service.wire
    }

    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        extended(&self.base, segments)
    }

    pub(crate) async fn upload(&self, files: &[(&str, &[u8])]) -> Result<(), DaytonaTrouble> {
        let boundary = format!("hermetic-{}", uuid::Uuid::new_v4());
        let kind = format!("multipart/form-data; boundary={boundary}");
        let ask = ApiRequest::post(self.url(&["files", "bulk-upload"]));
        let ask = ask.with(kind, form(&boundary, files));
        self.wire().ask(&ask).await.map(drop)
    }

    /// Runs to its end; what it starts may stay.
    pub(crate) async fn execute(&self, command: &str) -> Result<ExecuteReply, DaytonaTrouble> {
        let wanted = ExecuteRequest {
            command,
            timeout: LONGEST_START,
        };
        let ask = ApiRequest::json(self.url(&["process", "execute"]), &wanted)?;
        self.wire().ask_for(&ask).await
    }

    pub(crate) async fn make_terminal(
        &self,
        id: &str,
        envs: BTreeMap<&str, &str>,
    ) -> Result<(), DaytonaTrouble> {
        let wanted = CreatePty {
            id,
            envs,
            cols: 200,
            rows: 24,
        };
        let ask = ApiRequest::json(self.url(&["process", "pty"]), &wanted)?;
        match self.wire().ask(&ask).await {
            // Asked twice after an answer that was lost: the name is nobody else's.
            Err(DaytonaTrouble::Conflict { .. }) => Ok(()),
            made => made.map(drop),
        }
    }

    pub(crate) async fn end_terminal(&self, id: &str) -> Result<(), DaytonaTrouble> {
        let ask = ApiRequest::delete(self.url(&["process", "pty", id]));
        match self.wire().ask(&ask).await {
            Err(DaytonaTrouble::Missing) => Ok(()),
            ended => ended.map(drop),
        }
    }
}

/// A form as the toolbox takes several files at once: for each its path and its content.
fn form(boundary: &str, files: &[(&str, &[u8])]) -> Bytes {
    let mut body = Vec::new();
    for (number, (path, content)) in files.iter().enumerate() {
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"files[{number}].path\"\r\n\r\n\
             {path}\r\n--{boundary}\r\ncontent-disposition: form-data; \
             name=\"files[{number}].file\"; filename=\"{path}\"\r\n\
             content-type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body.into()
}
