//! What is remembered, and skills that wait, at the command line.

use std::io::Write as _;
use std::process::Stdio;

use hermetic_config::{Config, ConfigInputs, HomeFolder};
use hermetic_memory::{MemoryChange, MemoryOwner};
use hermetic_redact::Redactor;
use hermetic_store::Store;
use hermetic_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::hermetic::Hermetic;

/// What an agent does in a gateway of this home, for the person telegram:7.
fn agent<T>(
    home: &Hermetic,
    work: impl AsyncFnOnce(Config, Store, Redactor, MemoryOwner) -> T,
) -> T {
    let inputs = ConfigInputs {
        home: HomeFolder::at(home.path("")),
        managed: home.path("no-such-file"),
        variables: Default::default(),
        unreadable: Vec::new(),
    };
    let config = hermetic_config::load(&inputs).unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        hermetic_app::installation(config.home()).unwrap();
        let store = hermetic_app::store(&config).await.unwrap();
        let redactor = hermetic_app::redactor(&config);
        let owner = MemoryOwner::Person("telegram:7".to_owned());
        work(config, store, redactor, owner).await
    })
}

fn remembers(home: &Hermetic, content: &str) -> Value {
    agent(home, async |config, store, redactor, owner| {
        let memories = hermetic_app::memories(&config, &store, &redactor);
        let arguments = json!({"action": "add", "target": "user", "content": content});
        let change = MemoryChange::read(arguments.as_object().unwrap());
        let done = memories.call(&owner, change, (false, SystemClock.now()));
        done.await.unwrap().0
    })
}

const WHO: &str = "person:telegram:7";

#[test]
fn what_is_remembered_is_listed_shown_edited_and_forgotten() {
    let home = Hermetic::with("");
    assert!(
        home.run(&["memory", "list"])
            .out
            .contains("nothing was remembered yet")
    );
    remembers(&home, "likes oolong");
    let listed = home.run(&["memory", "list", "--json"]).json();
    assert_eq!(listed["memories"][0]["owner"], WHO, "{listed}");
    assert!(
        home.run(&["memory", "show", WHO])
            .out
            .contains("- likes oolong")
    );
    let mut edit = home.command(&["memory", "edit", WHO, "user"]);
    let mut edit = edit
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let typed = "likes sencha\n§\nlives in Ulm\n";
    edit.stdin
        .take()
        .unwrap()
        .write_all(typed.as_bytes())
        .unwrap();
    assert!(edit.wait().unwrap().success());
    let exported = home.run(&["memory", "export", WHO, "user"]).out;
    assert_eq!(exported, "likes sencha\n§\nlives in Ulm");
    let removed = home.run(&["memory", "remove", WHO, "--entry", "Ulm"]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    assert_eq!(
        home.run(&["memory", "export", WHO, "user"]).out,
        "likes sencha"
    );
    assert_eq!(home.run(&["memory", "remove", WHO]).code, 0);
    let again = home.run(&["memory", "remove", WHO]);
    assert!(
        again.code != 0 && again.err.contains("nothing is kept"),
        "{}",
        again.err
    );
    for wrong in [
        &["memory", "show", "bob"][..],
        &["memory", "export", WHO, "x"],
    ] {
        assert!(home.run(wrong).code != 0, "{wrong:?}");
    }
    let record = home.run(&["audit", "show", "--json"]).out;
    assert_eq!(record.matches("\"kind\":\"memory\"").count(), 3, "{record}");
}

#[test]
fn what_waits_is_approved_or_rejected_by_its_name() {
    let home = Hermetic::with("memory: {write_approval: true}\n");
    let first = remembers(&home, "likes oolong")["pending_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = remembers(&home, "likes sencha")["pending_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(home.run(&["memory", "list"]).out.contains(&first));
    assert_eq!(home.run(&["memory", "approve", &first]).code, 0);
    assert_eq!(home.run(&["memory", "reject", &second]).code, 0);
    assert!(home.run(&["memory", "approve", &second]).code != 0);
    assert_eq!(
        home.run(&["memory", "export", WHO, "user"]).out,
        "likes oolong"
    );
}

#[test]
fn a_skill_is_reviewed_approved_and_removed() {
    let home = Hermetic::with("");
    let text = "---\nname: brew\ndescription: how tea is brewed\n---\nFour \u{1b}[2J minutes.";
    let draft = |text: &str| {
        let arguments = json!({"action": "create", "name": "brew", "content": text});
        let written = agent(&home, async |config, store, redactor, owner| {
            let (_, drafts) = hermetic_app::skills(&config, &store, &redactor);
            let now = SystemClock.now();
            drafts
                .call(&owner, arguments.as_object().unwrap(), now)
                .await
                .unwrap()
                .0
        });
        written["pending_id"].as_str().unwrap().to_owned()
    };
    let id = draft(text);
    let review = home.run(&["skills", "review", &id]).out;
    assert!(
        review.contains("minutes.") && !review.contains('\u{1b}'),
        "{review:?}"
    );
    let changed = draft(&text.replace("Four", "Forty"));
    let stale = home.run(&["skills", "approve", &id]);
    assert!(
        stale.code != 0 && stale.err.contains("review it again"),
        "{}",
        stale.err
    );
    let approved = home.run(&["skills", "approve", &changed]);
    assert_eq!(approved.code, 0, "{}", approved.err);
    let listed = home.run(&["skills", "list"]).out;
    assert!(
        listed.contains("approved") && listed.contains("brew"),
        "{listed}"
    );
    assert_eq!(home.run(&["skills", "remove", "brew"]).code, 0);
    assert!(home.run(&["skills", "remove", "brew"]).code != 0);
}
