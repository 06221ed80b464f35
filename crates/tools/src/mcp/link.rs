//! A way to a server, whichever transport it takes.

use std::time::Duration;

use hermetic_types::SandboxId;
use serde_json::Value;

use super::document_act::ServerCapabilities;
use super::http::HttpLink;
use super::message::RequestFailure;
use super::stdio::StdioLink;

pub(super) struct ServerConnection {
    pub(super) link: ServerLink,
    /// The sandbox it runs in, if it does.
    pub(super) sandbox: Option<SandboxId>,
    /// Whether the tools it has now are the ones that were agreed to. Whoever is interrupted before a yes
    /// leaves this as it was: no.
    pub(super) is_agreed: bool,
    pub(super) capabilities: ServerCapabilities,
}

pub(super) enum ServerLink {
    Stdio(StdioLink),
    Http(Box<HttpLink>),
}

impl ServerLink {
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> Result<Value, RequestFailure> {
        match self {
            Self::Stdio(link) => link.request(method, params, patience).await,
            Self::Http(link) => link.request(method, params, patience).await,
        }
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) -> Result<(), RequestFailure> {
        match self {
            Self::Stdio(link) => link.notify(method, params).await,
            Self::Http(link) => link.notify(method, params).await,
        }
    }

    pub(super) fn agree_on(&self, version: &'static str) {
        match self {
            Self::Stdio(_) => {}
            Self::Http(link) => link.agree_on(version),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_alive(),
            Self::Http(link) => link.is_alive(),
        }
    }

    pub(super) fn take_tools_changed(&self) -> bool {
        match self {
            Self::Stdio(link) => link.take_tools_changed(),
            Self::Http(link) => link.take_tools_changed(),
        }
    }
}
