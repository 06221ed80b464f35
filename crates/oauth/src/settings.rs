//! What the operator wrote about a login.

use std::time::Duration;

use hermetic_types::Secret;

/// `mcp_servers.<name>.oauth`.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// A client that somebody registered by hand.
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The address of a document that describes the client, which then is the client's id.
    pub client_metadata_url: Option<String>,
    /// How we introduce ourselves where a client is registered on the way.
    pub client_name: String,
    /// The one authorization server that people are sent to, whatever the server says.
    pub issuer: Option<String>,
    /// Asked for instead of what the server suggests.
    pub scope: Option<String>,
    /// The port on which the browser's answer is awaited; any free one where absent.
    pub redirect_port: Option<u16>,
    /// The name of this machine in the address that the browser is sent back to.
    pub redirect_host: String,
    /// Where the browser is sent back to, if something of the operator's leads from there to the port.
    pub redirect_uri: Option<String>,
    /// How long a person may take.
    pub timeout: Duration,
}

impl Default for OAuthSettings {
    fn default() -> Self {
        Self {
            client_id: None,
            client_secret: None,
            client_metadata_url: None,
            client_name: "Hermetic".to_owned(),
            issuer: None,
            scope: None,
            redirect_port: None,
            redirect_host: "127.0.0.1".to_owned(),
            redirect_uri: None,
            timeout: Duration::from_secs(300),
        }
    }
}
