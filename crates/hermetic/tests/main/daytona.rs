//! Daytona, as somebody at a keyboard meets it. Nothing here reaches further than loopback.

use hermetic_testkit::acp::put_in_place_of_opencode;

use crate::daytona_server::{KEY, Server, lacking};
use crate::hermetic::{Ended, Hermetic};

/// Nobody listens on port 1 of this machine.
const NOWHERE: &str = "DAYTONA_API_KEY=dtn_hunter2\nDAYTONA_API_URL=http://127.0.0.1:1/api\n";

fn row(ended: &Ended) -> serde_json::Value {
    let rows: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["backend"] == "daytona")
        .unwrap()
        .clone()
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let without = row(&Hermetic::new().run(&["backends", "--json"]));
    assert_eq!(without["available"], false);
    assert_eq!(without["notes"][0]["what"], "there is no key for Daytona");
    let remedy = without["notes"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("DAYTONA_API_KEY"), "{remedy}");

    let away = Hermetic::new().file(".env", NOWHERE);
    let ended = away.run(&["backends", "--json"]);
    assert!(!ended.out.contains("hunter2"), "{}", ended.out);
    let away = row(&ended);
    assert_eq!(away["available"], false);
    let what = away["notes"][0]["what"].as_str().unwrap();
    assert!(what.contains("127.0.0.1 cannot be reached"), "{what}");
}

#[test]
fn a_disk_that_daytona_does_not_have_is_refused_when_it_was_written() {
    let hermetic = Hermetic::with("terminal: {container_disk: 20GB}\n").file(".env", NOWHERE);
    let ended = hermetic.run(&["exec", "--backend", "daytona", "--", "true"]);
    assert_eq!(ended.code, 125, "{}", ended.err);
    assert!(ended.err.contains("10 GiB at most"), "{}", ended.err);
}

/// Each command of the program is a process of its own, so the service goes on beside it.
async fn run(hermetic: &Hermetic, words: &[&str]) -> Ended {
    tokio::task::block_in_place(|| hermetic.run(words))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn commands_run_there_and_nothing_is_left_that_was_not_kept() {
    if let Some(why) = lacking() {
        return eprintln!("SKIP: commands_run_there_and_nothing_is_left_that_was_not_kept: {why}");
    }
    let server = Server::start().await;
    let keys = format!("DAYTONA_API_KEY={KEY}\nDAYTONA_API_URL={}\n", server.url());
    let hermetic = Hermetic::with("terminal: {daytona_image: 'debian:12'}\n").file(".env", &keys);

    let found = row(&run(&hermetic, &["backends", "--json"]).await);
    assert_eq!(found["available"], true, "{found}");

    let exec = ["exec", "--backend", "daytona"];
    let once = [&exec[..], &["--", "sh", "-c", "pwd; cat; exit 7"]].concat();
    let ended = run(&hermetic, &once).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (7, "/workspace\n"),
        "{}",
        ended.err
    );
    assert_eq!(server.names(), Vec::<String>::new());

    let kept = [&exec[..], &["--session", "mine", "--"]].concat();
    let ended = run(
        &hermetic,
        &[&kept[..], &["sh", "-c", "echo mine > note"]].concat(),
    )
    .await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(server.names().len(), 1);
    // Whoever leaves it alone finds it stopped, and its files there.
    server.let_idle_time_pass().await;
    let ended = run(&hermetic, &[&kept[..], &["cat", "note"]].concat()).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "mine\n"),
        "{}",
        ended.err
    );
    let listed = run(&hermetic, &["sandbox", "list", "--json"]).await;
    assert!(listed.out.contains("daytona"), "{}", listed.out);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_installed_agent_is_copied_there_and_answers() {
    let test = "an_installed_agent_is_copied_there_and_answers";
    if let Some(why) = lacking() {
        return eprintln!("SKIP: {test}: {why}");
    }
    let server = Server::start().await;
    let keys = format!(
        "DAYTONA_API_KEY={KEY}\nDAYTONA_API_URL={}\nANTHROPIC_API_KEY=sk-ant-of-the-test\n",
        server.url()
    );
    let hermetic = Hermetic::with("terminal: {daytona_image: 'debian:12'}\n").file(".env", &keys);
    put_in_place_of_opencode(&hermetic.path("hermetic/agents"), "7").unwrap();
    let ask = [
        "chat",
        "--backend",
        "daytona",
        "--agent",
        "opencode",
        "-q",
        "env VERSION",
    ];
    let ended = run(&hermetic, &ask).await;
    let said = (ended.code, ended.out.trim());
    assert_eq!(said, (0, "VERSION=7"), "{}", ended.err);
    assert_eq!(
        server.names(),
        Vec::<String>::new(),
        "it was not to be kept"
    );
    server.end().await;
}
