//! Matrix as somebody with Element sees it: the library that Element is made of, a real homeserver, a whole
//! gateway.

use hermetic_testkit::matrix::MatrixPerson;
use hermetic_testkit::model::{Piece, Reply};
use hermetic_testkit::npm::MatrixAppScripts;
use serde_json::{Value, json};

use crate::approvals::{self, Deed};
use crate::lab::{Builder, Lab};
use crate::matrix::Homeserver;

/// What each story knows of the other side. An edit and a thread are what the library makes of them.
const ALICE: &str = r#"
const alice = app(told.alice);
const shown = (room, thread) => (thread ? thread.events : alice.getRoom(room).getLiveTimeline().getEvents())
  .filter((one) => one.getSender() === told.bot && one.getType() === "m.room.message" && !one.isRelation("m.replace"));
const words = (one) => one.getContent().body ?? "";
const saying = (room, part, thread) =>
  until(alice, () => `${part} in what ${told.bot} says: ${JSON.stringify(shown(room, thread).map(words))}`,
    () => shown(room, thread).find((one) => words(one).includes(part)));
const joined = (room) =>
  until(alice, "the account in the room", () => alice.getRoom(room)?.getMember(told.bot)?.membership === "join");
const react = (room, event, key) =>
  alice.sendEvent(room, "m.reaction", { "m.relates_to": { rel_type: "m.annotation", event_id: event, key } });
"#;

/// In a private room: an answer that grows, an edit, a deletion, a yes by a reaction, a file.
const PRIVATE: &str = r#"
await opened(alice);
const { room_id: room } = await alice.createRoom({ preset: "trusted_private_chat", is_direct: true, invite: [told.bot] });
await joined(room);
const { event_id: first } = await alice.sendTextMessage(room, "hello");
const answer = await saying(room, "You said: hello **there**");
assert.match(answer.getContent().formatted_body, /You said: hello <strong>there<\/strong>/);
assert.equal(shown(room).length, 1, "one answer, however it grew");
await until(alice, "that it was read", () => alice.getRoom(room).hasUserReadEvent(told.bot, first));

const { event_id: slow } = await alice.sendTextMessage(room, "slowly, please");
const growing = await saying(room, "It begins");
await alice.sendEvent(room, "m.room.message", { msgtype: "m.text", body: "* corrected",
  "m.new_content": { msgtype: "m.text", body: "corrected" }, "m.relates_to": { rel_type: "m.replace", event_id: slow } });
await saying(room, "You said: corrected **there**");
assert.ok(words(growing).includes("Interrupted"), words(growing));
assert.ok(growing.replacingEvent(), "the same message, changed");

const { event_id: gone } = await alice.sendTextMessage(room, "slowly, once more");
const cut = await until(alice, "another answer", () => shown(room).filter((one) => words(one).includes("It begins"))[1]);
await alice.redactEvent(room, gone);
await until(alice, "its end", () => words(cut).includes("Interrupted"));

await alice.sendTextMessage(room, told.deed);
const question = await saying(room, "may I run this?");
await react(room, question.getId(), "👍");
await saying(room, "allowed once");

const note = new Blob(["a note from the app"]);
const { content_uri: url } = await alice.uploadContent(note, { type: "text/plain", name: "note.txt" });
await alice.sendMessage(room, { msgtype: "m.file", body: "note.txt", filename: "note.txt", url,
  info: { size: 19, mimetype: "text/plain" } });
const heard = await saying(room, "-note.txt (text-plain, 19 bytes)");
assert.ok(!words(heard).includes("redacted"), "its name can be said");
alice.stopClient();
"#;

/// In a room of several: a mention is answered in a thread, and what is said in the thread is heard there.
const GROUP: &str = r#"
await opened(alice);
const { room_id: room } = await alice.createRoom({ preset: "private_chat", invite: [told.bot, told.carol] });
await joined(room);
await alice.sendTextMessage(room, "not for anybody");
const { event_id: root } = await alice.sendMessage(room, { msgtype: "m.text", body: "a question",
  "m.mentions": { user_ids: [told.bot] } });
const thread = await until(alice, "a thread", () => alice.getRoom(room).getThread(root));
await saying(room, "You said: a question", thread);
await alice.sendMessage(room, thread.id, { msgtype: "m.text", body: "and another" });
await saying(room, "You said: and another", thread);
assert.deepEqual(shown(room).filter((one) => !one.threadRootId).map(words), [], "nothing beside the thread");
assert.ok(!shown(room, thread).some((one) => words(one).includes("not for anybody")));
alice.stopClient();
"#;

/// Says back what was said last; some of it slowly, and without an end.
fn says_back(request: &Value) -> Reply {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let said = messages.iter().rfind(|one| one["role"] == "user");
    let said = said.map_or("", |one| match &one["content"] {
        Value::String(text) => text,
        parts => parts[0]["text"].as_str().unwrap_or_default(),
    });
    let last = said.trim().lines().last().unwrap_or_default();
    if last.contains("slowly") {
        let delta = json!({"choices": [{"index": 0, "delta": {"content":
            "It begins with words enough to be shown while there is more of them to come. "}}]});
        return Reply::events([delta]).then(Piece::Stall);
    }
    Reply::streams(&[&format!("You said: {last} **there**")])
}

struct AppStory {
    home: Homeserver,
    carol: MatrixPerson,
    scripts: MatrixAppScripts,
    deed: Deed,
}

impl AppStory {
    /// `None` where something is missing, which is said.
    async fn find(test: &str) -> Option<Self> {
        let scripts = match MatrixAppScripts::install().await {
            Ok(scripts) => scripts,
            Err(why) => {
                eprintln!("SKIP: {test}: {why}");
                return None;
            }
        };
        let home = Homeserver::find(test).await?;
        let carol = MatrixPerson::register(home.proxy.url(), "carol").await;
        Some(Self {
            home,
            carol: carol.unwrap(),
            scripts,
            deed: Deed::new(),
        })
    }

    async fn gateway(&self, builder: Builder) -> Lab {
        let approver = format!("approvers: ['matrix:{}']", self.home.alice.user());
        let lab = builder
            .config(&approvals::config(&approver))
            .answering(says_back)
            .matrix(self.home.proxy.url(), &self.home.bot, &self.home.alice)
            .start()
            .await;
        self.home.proxy.syncs(2).await;
        lab
    }

    async fn run(&self, script: &str) {
        let (home, alice) = (&self.home, &self.home.alice);
        let told = json!({
            "homeserver": home.proxy.url(),
            "bot": home.bot.user(),
            "carol": self.carol.user(),
            "alice": { "user": alice.user(), "token": alice.token(), "device": alice.device() },
            "deed": format!("/sh {}", self.deed.command()),
        });
        let ran = self.scripts.run(&format!("{ALICE}{script}"), &told).await;
        ran.unwrap_or_else(|why| panic!("{why}"));
    }
}

#[tokio::test]
async fn elements_library_talks_in_a_private_room() {
    let Some(story) = AppStory::find("elements_library_talks_in_a_private_room").await else {
        return;
    };
    // Files are written where commands run, so these are the machine's own, in a folder of the test's.
    let workspace = tempfile::tempdir().unwrap();
    let terminal = format!("terminal: {{cwd: '{}'}}\n", workspace.path().display());
    let builder = Lab::builder().configured_backends().config(&terminal);
    let _lab = story.gateway(builder).await;
    story.run(PRIVATE).await;
    assert_eq!(story.deed.times(), 1);
}

#[tokio::test]
async fn elements_library_finds_a_thread_in_a_room_of_several() {
    let Some(story) = AppStory::find("elements_library_finds_a_thread_in_a_room").await else {
        return;
    };
    let _lab = story.gateway(Lab::builder()).await;
    story.run(GROUP).await;
}
