//! WhatsApp, by a bridge and by its own API.

use super::{
    ALL_USERS, FILE_ONLY, GROUP_USERS, HOME, LIST, PATTERNS, POLICY, PORT, PlatformKeys, SECRET,
    TEXT, USERS, mention,
};
use crate::schema::ValueShape;
use crate::shape::{LoneValues, RecordField};

pub(super) const WHATSAPP: PlatformKeys = PlatformKeys {
    name: "whatsapp",
    prefix: "WHATSAPP",
    own: &[
        USERS,
        GROUP_USERS,
        ALL_USERS,
        ("dm_policy", "", POLICY, "pairing", "who may write directly"),
        (
            "group_policy",
            "",
            POLICY,
            "pairing",
            "who may write in groups",
        ),
        (
            "mode",
            "",
            ValueShape::OneOf(&["self-chat", "bot"]),
            "self-chat",
            "whose account it is",
        ),
        ("reply_prefix", "", TEXT, "", "put before every answer"),
        mention("false"),
        PATTERNS,
        (
            "free_response_chats",
            "",
            LIST,
            "",
            "chats that need no mention",
        ),
        ("bridge_port", "", PORT, "3000", "port of the bridge"),
        (
            "bridge_url",
            "",
            TEXT,
            "",
            "address of the bridge, instead of its port on this machine",
        ),
        ("bridge_script", "", TEXT, "", "program of the bridge"),
        (
            "session_path",
            "",
            TEXT,
            "",
            "where the bridge keeps its login",
        ),
        HOME,
    ],
};

pub(super) const WHATSAPP_CLOUD: PlatformKeys = PlatformKeys {
    name: "whatsapp_cloud",
    prefix: "WHATSAPP_CLOUD",
    own: &[
        ("phone_number_id", "", TEXT, "", "the number's id"),
        ("access_token", "", SECRET, "", "access token"),
        (
            "accounts",
            FILE_ONLY,
            ValueShape::Table {
                fields: NUMBER,
                lone_values: LoneValues::Refused,
            },
            "",
            "more numbers of the same app, each by a name",
        ),
        ("app_id", "", TEXT, "", "the app's id"),
        (
            "app_secret",
            "",
            SECRET,
            "",
            "proves that a message comes from the platform",
        ),
        ("waba_id", "", TEXT, "", "the business account's id"),
        (
            "verify_token",
            "",
            SECRET,
            "",
            "asked for when the webhook is registered",
        ),
        USERS,
        ALL_USERS,
        ("webhook_host", "", TEXT, "0.0.0.0", "address it listens on"),
        ("webhook_port", "", PORT, "8090", "port it listens on"),
        (
            "webhook_path",
            "",
            TEXT,
            "/whatsapp/webhook",
            "path it listens on",
        ),
        ("api_version", "", TEXT, "v26.0", "version of its API"),
        ("base_url", "", TEXT, "", "another address for its API"),
        (
            "template",
            "",
            TEXT,
            "",
            "approved template that is sent to who wrote nothing for 24 hours",
        ),
        (
            "template_language",
            "",
            TEXT,
            "en_US",
            "language of the template",
        ),
        mention("false"),
        PATTERNS,
        (
            "free_response_chats",
            "",
            LIST,
            "",
            "groups that need no mention",
        ),
        HOME,
    ],
};

const NUMBER: &[RecordField] = &[
    RecordField {
        name: "phone_number_id",
        shape: TEXT,
        required: true,
        about: "the number's id",
    },
    RecordField {
        name: "access_token",
        shape: SECRET,
        required: false,
        about: "access token, if it is another one; best as ${A_VARIABLE_OF_DOTENV}",
    },
];
