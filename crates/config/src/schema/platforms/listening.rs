//! Platforms that call us.

use super::{PORT, PlatformKeys, SECRET, TEXT};

pub(super) const WEBHOOK: PlatformKeys = PlatformKeys {
    name: "webhook",
    prefix: "WEBHOOK",
    own: &[
        ("host", "", TEXT, "127.0.0.1", "address it listens on"),
        ("port", "", PORT, "8644", "port it listens on"),
        ("secret", "", SECRET, "", "shared with the sender"),
    ],
};

pub(super) const API_SERVER: PlatformKeys = PlatformKeys {
    name: "api_server",
    prefix: "API_SERVER",
    own: &[
        ("host", "", TEXT, "127.0.0.1", "address it listens on"),
        ("port", "", PORT, "8642", "port it listens on"),
        ("key", "", SECRET, "", "needed to use it"),
    ],
};
