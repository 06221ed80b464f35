//! Single events, as they come from apps and from those who forge them.

use proptest::prelude::*;
use regex::Regex;
use serde_json::json;

use super::*;

const US: &str = "@bot:example.org";

#[expect(
    clippy::needless_pass_by_value,
    reason = "contents are written where they are handed over"
)]
fn event(kind: &str, content: Value) -> RoomEvent {
    RoomEvent::read(&json!({
        "type": kind, "event_id": "$1", "sender": "@alice:example.org", "content": content,
    }))
    .unwrap()
}

fn heard(kind: &str, content: Value) -> HeardMatrixEvent {
    let hearing = MatrixHearing::default();
    let listener = MatrixListener {
        us: US,
        display: Some("Robbie"),
        hearing: &hearing,
    };
    hear(&event(kind, content), listener)
}

fn words(content: Value) -> MatrixWords {
    match heard("m.room.message", content) {
        HeardMatrixEvent::Words(words) => *words,
        other => panic!("{other:?}"),
    }
}

fn says(body: &str) -> Value {
    json!({ "msgtype": "m.text", "body": body })
}

#[test]
fn our_name_is_a_mention_where_the_app_does_not_say_whom_it_means() {
    for (body, names_us, text) in [
        ("hello", false, "hello"),
        ("@bot:example.org: hello", true, "hello"),
        ("bot, hello", true, "hello"),
        ("Robbie hello", true, "hello"),
        ("hello ROBBIE!", true, "hello ROBBIE!"),
        ("the robots", false, "the robots"),
        ("bot", true, "bot"),
        ("bot:", true, "bot:"),
        ("ﬁ\u{200b}@bot hello", true, "ﬁ\u{200b}@bot hello"),
    ] {
        let words = words(says(body));
        assert_eq!(
            (words.names_us, words.text.as_str()),
            (names_us, text),
            "{body}"
        );
    }
}

#[test]
fn an_app_that_says_whom_it_means_is_believed() {
    let mut content = says("bot, hello");
    content["m.mentions"] = json!({ "user_ids": ["@bob:example.org"] });
    assert!(!words(content.clone()).names_us);
    content["m.mentions"] = json!({ "user_ids": [US] });
    assert!(words(content.clone()).names_us);
    content["m.mentions"] = json!("everybody");
    assert!(!words(content.clone()).names_us);
    // But for an id that was typed.
    content["body"] = json!("hello @bot:example.org");
    assert!(words(content).names_us);
    let linked = json!({ "msgtype": "m.text", "body": "R2: hello",
        "formatted_body": "<a href=\"https://matrix.to/#/@bot:example.org\">R2</a>: hello" });
    assert!(words(linked).names_us);
}

#[test]
fn what_older_apps_quote_is_not_said_again() {
    let mut content = says("> <@bob:example.org> rm -r /\n> at once\n\nwhat does he mean?");
    assert!(
        words(content.clone()).text.starts_with("> <@bob"),
        "it replies to nothing"
    );
    content["m.relates_to"] = json!({ "m.in_reply_to": { "event_id": "$0" } });
    let said = words(content.clone());
    assert_eq!(said.text, "what does he mean?");
    assert_eq!(said.reply_to.as_deref(), Some("$0"));
    content["body"] = json!("> my own quotation\nand more");
    assert_eq!(words(content.clone()).text, "> my own quotation\nand more");
    content["body"] = json!("> <@bob:example.org> only that");
    assert_eq!(
        heard("m.room.message", content),
        HeardMatrixEvent::Nothing("it says nothing")
    );
}

#[test]
fn a_thread_is_one_and_its_fallback_is_no_reply() {
    let mut content = says("more");
    content["m.relates_to"] = json!({ "rel_type": "m.thread", "event_id": "$root",
        "is_falling_back": true, "m.in_reply_to": { "event_id": "$last" } });
    let said = words(content.clone());
    assert_eq!(
        (said.thread.as_deref(), said.reply_to),
        (Some("$root"), None)
    );
    content["m.relates_to"]["is_falling_back"] = json!(false);
    assert_eq!(words(content.clone()).reply_to.as_deref(), Some("$last"));
    content["m.relates_to"]["event_id"] = json!("../../root");
    assert_eq!(words(content).thread, None);
}

#[test]
fn an_edit_keeps_where_its_message_stands_and_is_its_authors_alone() {
    let edit = |new: Value| {
        json!({ "msgtype": "m.text", "body": "* hello", "m.new_content": new,
            "m.relates_to": { "rel_type": "m.replace", "event_id": "$0" } })
    };
    let target = "$0".to_owned();
    let new = heard("m.room.message", edit(says("hello")));
    assert_eq!(new, HeardMatrixEvent::Edit { target });
    let mut moved = says("hello");
    moved["m.relates_to"] = json!({ "rel_type": "m.thread", "event_id": "$elsewhere" });
    let new = event("m.room.message", edit(moved));
    let mut first = says("helo");
    first["m.relates_to"] = json!({ "rel_type": "m.thread", "event_id": "$root" });
    let first = event("m.room.message", first);
    let read = edited(&first, &new).unwrap();
    assert_eq!((read.text("body"), &read.id), (Some("hello"), &first.id));
    let relation = EventRelation::of(&read.content);
    assert_eq!(relation.thread.as_deref(), Some("$root"));

    for forged in [edit(json!("hello")), edit(json!(null)), {
        let mut aimless = edit(says("hello"));
        aimless["m.relates_to"]["event_id"] = json!("../..");
        aimless
    }] {
        let heard = heard("m.room.message", forged);
        assert!(matches!(heard, HeardMatrixEvent::Nothing(_)), "{heard:?}");
    }
    let somebody = RoomEvent {
        sender: "@mallory:example.org".to_owned(),
        ..new.clone()
    };
    assert_eq!(edited(&first, &somebody), None);
    assert_eq!(edited(&new, &new), None, "an edit of an edit");
    let sticker = event("m.sticker", says("hello"));
    assert_eq!(edited(&sticker, &new), None);
}

#[test]
fn notices_and_state_are_not_heard() {
    let notice = json!({ "msgtype": "m.notice", "body": "beep" });
    assert!(matches!(
        heard("m.room.message", notice),
        HeardMatrixEvent::Nothing(_)
    ));
    let mut forged = event("m.room.message", says("I am state"));
    forged.state_key = Some(String::new());
    let hearing = MatrixHearing::default();
    let listener = MatrixListener {
        us: US,
        display: None,
        hearing: &hearing,
    };
    assert!(matches!(
        hear(&forged, listener),
        HeardMatrixEvent::Nothing(_)
    ));
    assert_eq!(
        heard("m.room.encrypted", json!({ "ciphertext": "x" })),
        HeardMatrixEvent::Encrypted
    );
}

#[test]
fn ghosts_of_bridges_are_not_heard() {
    let hearing = MatrixHearing {
        ignored_users: vec![Regex::new("^@telegram_").unwrap()],
        ..MatrixHearing::default()
    };
    let listener = MatrixListener {
        us: US,
        display: None,
        hearing: &hearing,
    };
    for ghost in ["@_irc_carol:example.org", "@telegram_7:example.org"] {
        let mut said = event("m.room.message", says("bot: hello"));
        said.sender = ghost.to_owned();
        assert!(
            matches!(hear(&said, listener), HeardMatrixEvent::Nothing(_)),
            "{ghost}"
        );
    }
}

#[test]
fn a_file_has_a_caption_only_where_it_has_a_name_as_well() {
    let file = json!({ "msgtype": "m.file", "body": "notes.txt", "url": "mxc://example.org/abc",
        "info": { "mimetype": "text/plain", "size": 6 } });
    let said = words(file.clone());
    assert_eq!(said.text, "");
    assert_eq!(said.attachments[0].name.as_deref(), Some("notes.txt"));
    assert_eq!(said.attachments[0].bytes, Some(6));
    let mut captioned = file.clone();
    captioned["filename"] = json!("notes.txt");
    captioned["body"] = json!("look at this");
    assert_eq!(words(captioned).text, "look at this");
    let mut elsewhere = file;
    elsewhere["url"] = json!("https://example.org/notes.txt");
    assert!(matches!(
        heard("m.room.message", elsewhere),
        HeardMatrixEvent::Nothing(_)
    ));
}

#[test]
fn a_deletion_is_read_from_old_rooms_and_new_ones() {
    let target = |heard| match heard {
        HeardMatrixEvent::Deletion { target } => target,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        target(heard("m.room.redaction", json!({ "redacts": "$0" }))),
        "$0"
    );
    let mut old = event("m.room.redaction", json!({}));
    old.redacts = Some("$0".to_owned());
    let hearing = MatrixHearing::default();
    let listener = MatrixListener {
        us: US,
        display: None,
        hearing: &hearing,
    };
    assert_eq!(target(hear(&old, listener)), "$0");
}

#[test]
fn a_reaction_names_what_it_is_about() {
    let reaction = |relation: Value| heard("m.reaction", json!({ "m.relates_to": relation }));
    assert_eq!(
        reaction(json!({ "rel_type": "m.annotation", "event_id": "$0", "key": "👍" })),
        HeardMatrixEvent::Reaction {
            emoji: "👍".to_owned(),
            target: "$0".to_owned()
        }
    );
    for forged in [
        json!({ "rel_type": "m.reference", "event_id": "$0", "key": "👍" }),
        json!({ "rel_type": "m.annotation", "event_id": ["$0"], "key": "👍" }),
        json!("👍"),
    ] {
        assert!(matches!(reaction(forged), HeardMatrixEvent::Nothing(_)));
    }
}

proptest! {
    #[test]
    fn nothing_panics(body in "\\PC{0,80}", reply in any::<bool>()) {
        let mut content = says(&body);
        if reply {
            content["m.relates_to"] = json!({ "m.in_reply_to": { "event_id": "$0" } });
        }
        heard("m.room.message", content);
    }
}
