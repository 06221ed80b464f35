//! Where one conversation ends and the next begins. All of these may also stand below `gateway:`.

use super::{COMMA_TEXTS, SchemaKey, ValueShape, count, key};

pub(super) fn keys() -> Vec<SchemaKey> {
    [
        key(
            "session_reset.mode",
            ValueShape::OneOf(&["none", "daily", "idle", "both"]),
            "none",
            "when a conversation starts afresh by itself",
        ),
        key(
            "session_reset.at_hour",
            count(0, 23),
            "4",
            "hour of the daily one",
        )
        .overruled_by("SESSION_RESET_HOUR"),
        key(
            "session_reset.idle_minutes",
            count(1, 5_256_000),
            "1440",
            "minutes of the idle one",
        )
        .overruled_by("SESSION_IDLE_MINUTES"),
        key(
            "session_reset.notify",
            ValueShape::Flag,
            "true",
            "say so in the chat",
        ),
        key(
            "session_reset.notify_exclude_platforms",
            COMMA_TEXTS,
            "api_server, webhook",
            "but not on these",
        ),
        key(
            "session_reset.bg_process_max_age_hours",
            count(0, 87_600),
            "24",
            "hours after which a background process no longer holds a reset up",
        ),
        key(
            "group_sessions_per_user",
            ValueShape::Flag,
            "true",
            "everybody in a group has a conversation of their own",
        ),
        key(
            "thread_sessions_per_user",
            ValueShape::Flag,
            "false",
            "the same inside a thread",
        ),
        key(
            "unauthorized_dm_behavior",
            ValueShape::OneOf(&["pair", "ignore"]),
            "pair",
            "what a stranger gets: a pairing code, or silence",
        ),
        key(
            "reset_triggers",
            COMMA_TEXTS,
            "/new, /reset",
            "words that start afresh",
        ),
        key(
            "max_concurrent_sessions",
            count(1, 1_000_000),
            "",
            "conversations at work at once; no bound if not written",
        ),
        key(
            "session_store_max_age_days",
            count(0, 36_500),
            "90",
            "days a silent conversation is kept; in one that goes on, days that lines are kept for which a summary stands",
        ),
        key(
            "filter_silence_narration",
            ValueShape::Flag,
            "true",
            "drop answers that only say there is nothing to say",
        ),
        key(
            "systemd_watchdog_seconds",
            count(0, 86_400),
            "120",
            "systemd restarts a gateway that did not answer its own /health for so long; 0 for never",
        ),
    ]
    .map(|key| {
        let nested = format!("gateway.{}", key.path);
        key.also_at([nested])
    })
    .into()
}
