//! `approvals:`, `security:`, `command_allowlist`: who decides, and what is never shown.

use super::{DAY, SchemaKey, TEXTS, ValueShape, key, seconds};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "approvals.mode",
            ValueShape::OneOf(&["smart", "manual", "off"]),
            "manual",
            "who is asked about a dangerous command",
        ),
        key(
            "approvals.timeout",
            seconds(DAY),
            "60",
            "seconds to answer; silence is no",
        ),
        key(
            "approvals.cron_mode",
            ValueShape::OneOf(&["deny", "approve"]),
            "deny",
            "the answer where nobody can be asked",
        ),
        key(
            "approvals.deny",
            TEXTS,
            "",
            "commands that are never run, as patterns with `*`",
        ),
        key(
            "approvals.approvers",
            TEXTS,
            "",
            "who may say yes, as `platform:user` or `platform/bot:user`; whom an allowlist names if empty",
        ),
        key(
            "approvals.mcp_reload_confirm",
            ValueShape::Flag,
            "true",
            "ask before tools are loaded again",
        ),
        key(
            "approvals.destructive_slash_confirm",
            ValueShape::Flag,
            "true",
            "ask before a slash command that destroys files (`/destroy`)",
        ),
        key(
            "command_allowlist",
            TEXTS,
            "",
            "commands that are run without asking, as patterns with `*`",
        ),
        key(
            "security.redact_secrets",
            ValueShape::Flag,
            "true",
            "take secrets out of whatever leaves",
        )
        .overruled_by("HERMES_REDACT_SECRETS"),
        key(
            "security.audit_key_file",
            ValueShape::Text,
            "",
            "the key that seals the audit record; `$CREDENTIALS_DIRECTORY/…` of systemd is a good place; beside the record if not written",
        ),
        key(
            "security.audit_head_file",
            ValueShape::Text,
            "",
            "where the end of the audit record is noted; on another file system, so that restoring the record's folder shows; beside the record if not written",
        ),
        key(
            "security.allow_private_urls",
            ValueShape::Flag,
            "false",
            "let web tools reach private addresses",
        ),
        key(
            "security.website_blocklist.enabled",
            ValueShape::Flag,
            "false",
            "refuse the sites below",
        ),
        key(
            "security.website_blocklist.domains",
            TEXTS,
            "",
            "sites that web tools refuse",
        ),
        key(
            "security.website_blocklist.shared_files",
            TEXTS,
            "",
            "files with more of them",
        ),
        key(
            "privacy.redact_pii",
            ValueShape::Flag,
            "false",
            "take names and numbers of people out of what the model sees",
        ),
    ]
}
