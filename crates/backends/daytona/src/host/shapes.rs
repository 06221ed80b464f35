//! What goes over the wire, as far as we use it. Names are the provider's.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateSandbox {
    pub(crate) name: String,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) build_info: BuildInfo,
    pub(crate) cpu: u64,
    /// In GiB, as is the disk.
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) public: bool,
    pub(crate) network_block_all: bool,
    /// In minutes without any request, as is the next.
    pub(crate) auto_stop_interval: u64,
    /// After a stop: 0 is at once, -1 is never.
    pub(crate) auto_delete_interval: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildInfo {
    pub(crate) dockerfile_content: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaytonaSandbox {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) labels: HashMap<String, String>,
    #[serde(default)]
    pub(crate) state: String,
    pub(crate) error_reason: Option<String>,
    pub(crate) network_block_all: Option<bool>,
    pub(crate) auto_stop_interval: Option<f64>,
    pub(crate) toolbox_proxy_url: Option<String>,
}

/// A page, or all of it from a service of an earlier version.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ListedPage {
    #[serde(rename_all = "camelCase")]
    Page {
        items: Vec<DaytonaSandbox>,
        next_cursor: Option<String>,
    },
    All(Vec<DaytonaSandbox>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolboxUrl {
    pub(crate) url: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct ExecuteRequest<'a> {
    pub(crate) command: &'a str,
    /// In seconds.
    pub(crate) timeout: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecuteReply {
    /// `code` from a toolbox of an earlier version.
    #[serde(alias = "code")]
    pub(crate) exit_code: Option<i64>,
    #[serde(default)]
    pub(crate) result: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct CreatePty<'a> {
    pub(crate) id: &'a str,
    pub(crate) envs: BTreeMap<&'a str, &'a str>,
    pub(crate) cols: u16,
    pub(crate) rows: u16,
}

/// What a terminal says beside the bytes.
#[derive(Debug, Deserialize)]
pub(crate) struct TerminalControl {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) error: Option<String>,
}
