//! Slack.

use hermetic_types::Secret;

use super::{Platform, Section};
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Slack {
    pub platform: Platform,
    pub bot_token: Option<Secret>,
    pub app_token: Option<Secret>,
    pub require_mention: bool,
    pub strict_mention: bool,
    pub free_response_channels: Vec<String>,
    pub allowed_channels: Vec<String>,
    pub mention_patterns: Vec<String>,
    pub allow_bots: String,
    pub reactions: bool,
}

pub(super) fn slack(at: &Section<'_>, problems: &mut Vec<Problem>) -> Slack {
    let (bot_token, app_token) = (at.secret("token"), at.secret("app_token"));
    let needed = [
        ("token", bot_token.is_some()),
        ("app_token", app_token.is_some()),
    ];
    Slack {
        platform: at.platform(&needed, problems),
        bot_token,
        app_token,
        require_mention: at.flag("require_mention"),
        strict_mention: at.flag("strict_mention"),
        free_response_channels: at.texts("free_response_channels"),
        allowed_channels: at.texts("allowed_channels"),
        mention_patterns: at.texts("mention_patterns"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
    }
}
