//! Discord.

use hermetic_types::Secret;

use super::{Platform, Section};
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Discord {
    pub platform: Platform,
    pub token: Option<Secret>,
    pub allowed_roles: Vec<String>,
    pub require_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub ignored_channels: Vec<String>,
    pub no_thread_channels: Vec<String>,
    pub auto_thread: bool,
    pub thread_require_mention: bool,
    pub allow_bots: String,
    pub reactions: bool,
    pub max_attachment_bytes: u64,
}

pub(super) fn discord(at: &Section<'_>, problems: &mut Vec<Problem>) -> Discord {
    let token = at.secret("token");
    Discord {
        platform: at.platform(&[("token", token.is_some())], problems),
        token,
        allowed_roles: at.texts("allowed_roles"),
        require_mention: at.flag("require_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        ignored_channels: at.texts("ignored_channels"),
        no_thread_channels: at.texts("no_thread_channels"),
        auto_thread: at.flag("auto_thread"),
        thread_require_mention: at.flag("thread_require_mention"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
        max_attachment_bytes: at.pick.bytes(&at.path("max_attachment_bytes")),
    }
}
