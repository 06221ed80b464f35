//! What outlives a conversation: `memory` and `skills`.

use super::{COMMA_TEXTS, SchemaKey, ValueShape, count, key};

pub(super) fn keys() -> Vec<SchemaKey> {
    vec![
        key(
            "memory.memory_enabled",
            ValueShape::Flag,
            "true",
            "the agent keeps notes beyond a conversation",
        ),
        key(
            "memory.user_profile_enabled",
            ValueShape::Flag,
            "true",
            "and remembers who the person is",
        ),
        key(
            "memory.memory_char_limit",
            count(100, 20_000),
            "2200",
            "characters of notes, for each person or group",
        ),
        key(
            "memory.user_char_limit",
            count(100, 20_000),
            "1375",
            "the same of who the person is",
        ),
        key(
            "memory.write_approval",
            ValueShape::Flag,
            "false",
            "what is to be remembered waits for a person",
        ),
        key(
            "memory.owner",
            COMMA_TEXTS,
            "",
            "whom the files of Hermes are about, as telegram:4711; the only operator if not written",
        ),
        key(
            "skills.disabled",
            COMMA_TEXTS,
            "",
            "names of skills that are not offered",
        ),
        key(
            "skills.external_dirs",
            COMMA_TEXTS,
            "",
            "further folders with skills, which are only read",
        ),
    ]
}
