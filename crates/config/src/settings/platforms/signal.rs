//! Signal.

use super::{Platform, Section};
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Signal {
    pub platform: Platform,
    pub http_url: Option<String>,
    pub account: Option<String>,
    pub group_allowed_users: Vec<String>,
    pub ignore_stories: bool,
    pub require_mention: bool,
    pub reactions: bool,
}

pub(super) fn signal(at: &Section<'_>, problems: &mut Vec<Problem>) -> Signal {
    let (http_url, account) = (at.maybe_text("http_url"), at.maybe_text("account"));
    let needed = [
        ("http_url", http_url.is_some()),
        ("account", account.is_some()),
    ];
    Signal {
        platform: at.platform(&needed, problems),
        http_url,
        account,
        group_allowed_users: at.texts("group_allowed_users"),
        ignore_stories: at.flag("ignore_stories"),
        require_mention: at.flag("require_mention"),
        reactions: at.flag("reactions"),
    }
}
