//! Keys that are understood and have no effect yet. Whoever writes one is told so, and why.

/// By their dotted names; one that ends in a dot is all below it.
const KEYS: &[(&str, &str)] = &[
    (
        "agent.gateway_auto_continue_freshness",
        "what a restart cut is taken up again whatever its age",
    ),
    (
        "agent.gateway_notify_interval",
        "long turns show typing and, where they can, the growing answer",
    ),
    (
        "agent.gateway_timeout",
        "the model's silence and every tool have bounds of their own",
    ),
    (
        "agent.gateway_timeout_warning",
        "the model's silence and every tool have bounds of their own",
    ),
    (
        "approvals.cron_mode",
        "what needs a yes is refused in a job, whatever it says",
    ),
    ("approvals.mcp_reload_confirm", "there is nothing to reload"),
    (
        "display.busy_ack_enabled",
        "a message that waits is not acknowledged",
    ),
    ("filter_silence_narration", "answers are sent as they are"),
    ("gateway.api_server.", "there is no API server yet"),
    (
        "gateway.delivery_ledger",
        "replies are always written down first",
    ),
    (
        "gateway.media_delivery_allow_dirs",
        "files leave from a conversation's workspace and from nowhere else",
    ),
    (
        "gateway.message_timestamps.",
        "the model is not told when something was said",
    ),
    (
        "gateway.platform_connect_timeout",
        "platforms are tried again until they answer",
    ),
    (
        "gateway.respawn_storm.",
        "restarts are the service manager's to limit",
    ),
    (
        "gateway.restart_loop_guard.",
        "restarts are the service manager's to limit",
    ),
    (
        "gateway.strict",
        "files leave from a conversation's workspace and from nowhere else",
    ),
    (
        "platforms.discord.allow_any_attachment",
        "every kind of file is taken, within its bounds",
    ),
    (
        "platforms.discord.approval_mentions",
        "whoever may approve is asked in private",
    ),
    (
        "platforms.discord.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.discord.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.discord.history_backfill",
        "a conversation knows what was said to it, and nothing else of a channel",
    ),
    (
        "platforms.discord.history_backfill_limit",
        "a conversation knows what was said to it, and nothing else of a channel",
    ),
    (
        "platforms.discord.missed_message_backfill.channels",
        "every channel is read in which something was said to the bot",
    ),
    ("platforms.discord.reactions", "progress shows as typing"),
    (
        "platforms.discord.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.discord.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.matrix.allow_public_rooms",
        "a room is listened to where it is allowed, whoever may join it",
    ),
    (
        "platforms.matrix.allow_room_mentions",
        "nobody is called but who is answered",
    ),
    (
        "platforms.matrix.approval_require_sender",
        "approvals.approvers says who may answer",
    ),
    (
        "platforms.matrix.approval_timeout_seconds",
        "approvals.timeout holds on every platform",
    ),
    (
        "platforms.matrix.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.matrix.dm_mention_threads",
        "in private rooms dm_auto_thread decides",
    ),
    (
        "platforms.matrix.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    ("platforms.matrix.reactions", "progress shows as typing"),
    (
        "platforms.matrix.recovery_key",
        "no key is brought back from anywhere",
    ),
    (
        "platforms.matrix.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.matrix.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.signal.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.signal.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.signal.ignore_stories",
        "stories are never taken for messages",
    ),
    ("platforms.signal.reactions", "progress shows as typing"),
    (
        "platforms.signal.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.signal.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.slack.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.slack.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.slack.mention_patterns",
        "only the bot's own name is a mention",
    ),
    (
        "platforms.slack.reactions",
        "progress shows as a status in threads",
    ),
    (
        "platforms.slack.reply_to_mode",
        "answers stand in the thread of the question",
    ),
    (
        "platforms.slack.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.telegram.channel_overrides",
        "all channels have one model and one prompt",
    ),
    ("platforms.telegram.fallback_ips", "its name has to resolve"),
    (
        "platforms.telegram.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.telegram.home_channel_name",
        "nothing is announced by itself",
    ),
    (
        "platforms.telegram.home_channel_thread_id",
        "jobs speak in the home channel itself",
    ),
    ("platforms.telegram.reactions", "progress shows as typing"),
    (
        "platforms.telegram.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.telegram.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.whatsapp.bridge_script",
        "the bridge is a program of its own, which we neither ship nor start",
    ),
    (
        "platforms.whatsapp.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.whatsapp.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.whatsapp.mode",
        "the bridge is told when it is started",
    ),
    (
        "platforms.whatsapp.reply_prefix",
        "the bridge puts it there",
    ),
    (
        "platforms.whatsapp.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.whatsapp.session_path",
        "the bridge is told when it is started",
    ),
    (
        "platforms.whatsapp.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.whatsapp_cloud.app_id",
        "the number and its token are enough",
    ),
    (
        "platforms.whatsapp_cloud.channel_overrides",
        "all channels have one model and one prompt",
    ),
    (
        "platforms.whatsapp_cloud.gateway_restart_notification",
        "a restart is told only where it cut something",
    ),
    (
        "platforms.whatsapp_cloud.reply_to_mode",
        "answers quote in groups, and only their first part",
    ),
    (
        "platforms.whatsapp_cloud.typing_status_text",
        "the platform has words of its own",
    ),
    (
        "platforms.whatsapp_cloud.waba_id",
        "the number and its token are enough",
    ),
    (
        "privacy.redact_pii",
        "secrets are redacted, names and addresses are not",
    ),
    (
        "security.allow_private_urls",
        "gateway.egress.allow_private is what holds here",
    ),
    (
        "security.website_blocklist.",
        "gateway.egress.deny is what holds here",
    ),
    (
        "streaming.fresh_final_after_seconds",
        "an answer ends in the message in which it grew",
    ),
    (
        "web.extract_backend",
        "pages are read by the gateway itself, within gateway.egress",
    ),
];

/// Why a key has no effect; nothing for one that has.
pub(crate) fn why(path: &str) -> Option<&'static str> {
    let named = |key: &str| match key.strip_suffix('.') {
        Some(section) => path
            .strip_prefix(section)
            .is_some_and(|rest| rest.starts_with('.')),
        None => key == path,
    };
    KEYS.iter().find(|(key, _)| named(key)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SCHEMA;

    #[test]
    fn every_name_is_one_of_the_schema() {
        for (key, _) in KEYS {
            let known = match key.strip_suffix('.') {
                Some(section) => SCHEMA.is_section(section),
                None => SCHEMA.key(key).is_some(),
            };
            assert!(known, "{key}");
        }
    }
}
