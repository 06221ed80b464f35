//! What the operator wrote about a server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hermetic_oauth::BearerLogin;
use hermetic_types::Secret;
use sha2::{Digest, Sha256};

/// One MCP server of the configuration.
#[derive(Clone, Debug)]
pub struct McpServerSettings {
    pub name: String,
    pub place: McpServerPlace,
    /// For one call.
    pub timeout: Duration,
    /// For the start, and for the list of tools.
    pub connect_timeout: Duration,
    /// The tools that are offered, by the server's own names; all of them where absent.
    pub include: Option<Vec<String>>,
    /// The tools that are not offered; has no meaning beside `include`.
    pub exclude: Vec<String>,
    /// Whether what it has to read is offered.
    pub resources: bool,
    /// Whether the prompts it has prepared are.
    pub prompts: bool,
}

/// Where a server is, and what is needed to reach it.
#[derive(Clone, Debug)]
pub enum McpServerPlace {
    /// A program in the conversation's own sandbox.
    Sandbox {
        words: Vec<String>,
        /// On top of the sandbox's own environment. Whatever runs there can read it.
        env: BTreeMap<String, String>,
    },
    /// A program on this machine, with the rights of the gateway. Spelled out by the operator.
    Host {
        words: Vec<String>,
        /// All of its environment.
        env: BTreeMap<String, Secret>,
    },
    /// A server elsewhere, by streamable HTTP, through the conversation's egress.
    Http {
        url: String,
        headers: Vec<(String, Secret)>,
        /// By which every request is made in somebody's name.
        login: Option<BearerLogin>,
    },
    /// One that cannot be used as it is written; the words say why, and what to do.
    Refused(String),
}

impl McpServerSettings {
    pub(super) fn offers(&self, tool: &str) -> bool {
        match &self.include {
            Some(include) => include.iter().any(|name| name == tool),
            None => !self.exclude.iter().any(|name| name == tool),
        }
    }

    /// Changes with whatever the operator changes, so that tools of another server are not taken for
    /// changed ones of this. Holds no secret: of values that may be some only the names count.
    pub(super) fn fingerprint(&self) -> String {
        let mut text = String::new();
        let _ = match &self.place {
            McpServerPlace::Sandbox { words, env } => {
                write!(text, "sandbox {words:?} {:?}", env.keys())
            }
            McpServerPlace::Host { words, env } => write!(text, "host {words:?} {:?}", env.keys()),
            McpServerPlace::Http {
                url,
                headers,
                login,
            } => {
                let names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
                let login = login.as_ref().map_or("", |_| " by a login");
                write!(text, "http {url:?} {names:?}{login}")
            }
            McpServerPlace::Refused(_) => write!(text, "refused"),
        };
        let _ = write!(text, " {:?} {:?}", self.include, self.exclude);
        digest(text.as_bytes())
    }
}

/// As sixty-four digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
