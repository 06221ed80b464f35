//! Signal.

use super::{ALL_USERS, FLAG, GROUP_USERS, HOME, Platform, TEXT, USERS, mention, reactions};

pub(super) const SIGNAL: Platform = Platform {
    name: "signal",
    prefix: "SIGNAL",
    own: &[
        ("http_url", "", TEXT, "", "address of signal-cli's daemon"),
        ("account", "", TEXT, "", "the number it runs as"),
        USERS,
        GROUP_USERS,
        ALL_USERS,
        (
            "ignore_stories",
            "",
            FLAG,
            "true",
            "do not take stories for messages",
        ),
        mention("false"),
        reactions("true"),
        HOME,
    ],
};
