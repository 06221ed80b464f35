//! `docs/platforms.md` says what each platform can do, and says what the adapters say.

use std::fmt::Write as _;

use hermetic_chat::{Capabilities, ChoiceShape, MissedMessages, UnaskedMessages};

use super::tests::config;
use super::{AdapterSurroundings, accounts};

/// Every platform, as little as it needs.
const EVERY_PLATFORM: &str = "\
telegram: {token: '1:a-token-of-a-bot'}
discord: {token: 'a-token-of-a-bot'}
slack: {token: 'xoxb-1-2', app_token: 'xapp-1-2'}
whatsapp_cloud: {phone_number_id: '1', access_token: 'a-token', app_secret: 'a-secret', verify_token: 'a-word'}
whatsapp: {enabled: true}
signal: {http_url: 'http://127.0.0.1:8080', account: '+4915112345678'}
matrix: {homeserver: 'https://matrix.example.org', access_token: 'a-token'}
webhook: {enabled: true, secret: 'a-secret-that-is-long-enough-to-be-one'}
";

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/platforms.md");

const HEAD: &str = "\
# What each chat platform can do

This page is made from what the adapters say of themselves: \
`HERMETIC_WRITE_DOCS=1 cargo test -p hermetic-app every_platform` writes it.

";

const NOTES: &str = "
- **Missed messages** are those that were written while the gateway was away. “The platform repeats them” \
needs nothing; “read from the history” is done by the adapter after every gap; “lost” is what the platform \
keeps for nobody. “Kept” is what something beside the gateway does, on the condition that stands there.
- **Sent again safely**: a reply whose fate is unknown (the connection broke) is sent again under the same \
key, and the platform shows it once. Elsewhere such a reply is sent again with a mark, or reported as \
doubtful.
- **Changed messages**: while a message waits for its turn, the new words take its place. While it is being answered \
they are said as a correction, which does what any message does then (`display.busy_input_mode`). After the answer a \
change means nothing: write again. WhatsApp tells of changes and deletions only for numbers that are also used in its \
Business app.
- **Buttons** answer questions. Reactions are emoji under the question, which says what each of them means. \
Where there is neither, the answer is typed (`/approve`, `/deny`).
";

#[test]
fn the_page_about_every_platform_is_what_the_adapters_say() {
    let config = config(EVERY_PLATFORM);
    let accounts = accounts(&config, &AdapterSurroundings::of_onlooker()).unwrap();
    let columns: Vec<(String, Capabilities)> = accounts
        .iter()
        .map(|account| {
            let name = account.chat.account().to_string();
            (name, account.chat.capabilities().clone())
        })
        .collect();
    let page = format!("{HEAD}{}{NOTES}", table(&columns));
    if std::env::var_os("HERMETIC_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PAGE).unwrap(), page);
}

fn table(columns: &[(String, Capabilities)]) -> String {
    let mut text = String::from("| |");
    for (name, _) in columns {
        let _ = write!(text, " {name} |");
    }
    let _ = write!(text, "\n| --- |{}\n", " --- |".repeat(columns.len()));
    for (what, tell) in ROWS {
        let _ = write!(text, "| {what} |");
        for (_, capabilities) in columns {
            let _ = write!(text, " {} |", tell(capabilities));
        }
        text.push('\n');
    }
    text
}

type Tell = fn(&Capabilities) -> String;

const ROWS: [(&str, Tell); 12] = [
    ("one message holds", |can| {
        format!("{} {}", can.text.length, can.text.unit.name())
    }),
    ("answers grow while they are written", |can| yes(can.edits)),
    ("hears that a message was changed", |can| {
        yes(can.reports_changes.edits)
    }),
    ("hears that a message was deleted", |can| {
        yes(can.reports_changes.deletions)
    }),
    ("buttons", |can| match &can.buttons {
        Some(limits) if limits.shown == ChoiceShape::Reactions => {
            format!("reactions, up to {}", limits.most)
        }
        Some(limits) => format!("up to {}", limits.most),
        None => "no".to_owned(),
    }),
    ("files from people", |can| bytes(can.files_in)),
    ("files to people", |can| bytes(can.files_out)),
    ("threads are conversations", |can| yes(can.threads)),
    ("shows that it is typing", |can| yes(can.typing.is_some())),
    ("missed messages", |can| match can.missed {
        MissedMessages::Repeated => "the platform repeats them".to_owned(),
        MissedMessages::Read => "read from the history".to_owned(),
        MissedMessages::Kept(how) => format!("kept {how}"),
        MissedMessages::Lost => "lost".to_owned(),
    }),
    ("sent again safely", |can| match can.send_keys {
        Some(time) => format!("for {} min", time.as_secs() / 60),
        None => "no".to_owned(),
    }),
    ("may write first", |can| match can.unasked {
        UnaskedMessages::AnyTime => "yes".to_owned(),
        UnaskedMessages::After(window) => {
            let hours = window.as_secs() / 3600;
            format!("for {hours} h after their last message, later by a template")
        }
        UnaskedMessages::Never => "no".to_owned(),
    }),
];

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn bytes(most: Option<u64>) -> String {
    match most {
        Some(most) => format!("up to {} MB", most / 1_000_000),
        None => "no".to_owned(),
    }
}
