//! Modal, as somebody at a keyboard meets it. Nothing here reaches further than loopback.

use hermetic_testkit::acp::put_in_place_of_opencode;

use crate::hermetic::{Ended, Hermetic};
use crate::modal_service::{Service, TOKEN_ID, TOKEN_SECRET, lacking};

fn row(ended: &Ended) -> serde_json::Value {
    let rows = ended.json();
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["backend"] == "modal").unwrap().clone()
}

/// Each command of the program is a process of its own, so the service goes on beside it.
async fn run(hermetic: &Hermetic, words: &[&str]) -> Ended {
    tokio::task::block_in_place(|| hermetic.run(words))
}

/// A home that knows the service, by its token; nothing where no sandbox can be had.
async fn home(test: &str) -> Option<(Service, Hermetic)> {
    if let Some(why) = lacking().await {
        eprintln!("SKIP: {test}: {why}");
        return None;
    }
    let service = Service::open().await;
    let keys = format!(
        "MODAL_TOKEN_ID={TOKEN_ID}\nMODAL_TOKEN_SECRET={TOKEN_SECRET}\nMODAL_SERVER_URL={}\n\
         ANTHROPIC_API_KEY=sk-ant-of-the-test\n",
        service.url
    );
    let config = "terminal: {modal_image: 'debian:12'}\n\
                  gateway: {terminal_backend: modal, sandbox_image: 'debian:12'}\n";
    Some((service, Hermetic::with(config).file(".env", &keys)))
}

#[test]
fn a_missing_token_is_said_with_what_to_do() {
    let without = row(&Hermetic::new().run(&["backends", "--json"]));
    assert_eq!(without["available"], false);
    let remedy = without["notes"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("MODAL_TOKEN_ID"), "{remedy}");

    // Nobody listens on port 1 of this machine.
    let keys =
        "MODAL_TOKEN_ID=ak-1\nMODAL_TOKEN_SECRET=as-hunter2\nMODAL_SERVER_URL=http://127.0.0.1:1\n";
    let ended = Hermetic::new()
        .file(".env", keys)
        .run(&["backends", "--json"]);
    assert!(!ended.out.contains("hunter2"), "{}", ended.out);
    let away = row(&ended);
    assert_eq!(away["available"], false);
    let what = away["notes"][0]["what"].as_str().unwrap();
    assert!(what.contains("does not answer"), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn commands_run_at_modal_and_a_kept_one_is_found_again() {
    let test = "commands_run_at_modal_and_a_kept_one_is_found_again";
    let Some((service, hermetic)) = home(test).await else {
        return;
    };
    let found = row(&run(&hermetic, &["backends", "--json"]).await);
    assert_eq!(found["available"], true, "{found}");

    let exec = ["exec", "--backend", "modal"];
    let once = [&exec[..], &["--", "sh", "-c", "pwd; cat; exit 7"]].concat();
    let ended = run(&hermetic, &once).await;
    let said = (ended.code, ended.out.as_str());
    assert_eq!(said, (7, "/workspace\n"), "{}", ended.err);
    assert!(service.plane.cells().is_empty(), "it was not to be kept");

    let kept = [&exec[..], &["--session", "mine", "--"]].concat();
    let write = [&kept[..], &["sh", "-c", "echo mine > note"]].concat();
    let ended = run(&hermetic, &write).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(service.plane.cells().len(), 1);
    let read = [&kept[..], &["cat", "note"]].concat();
    let ended = run(&hermetic, &read).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "mine\n"),
        "{}",
        ended.err
    );
    assert_eq!(
        service.count("SandboxCreateV2"),
        2,
        "the second is found again"
    );

    // Stopped, it is a snapshot that costs nothing; the next command restores it.
    let listed = run(&hermetic, &["sandbox", "list", "--json"]).await.json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let ended = run(&hermetic, &["sandbox", "stop", &id]).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(service.plane.cells().is_empty());
    let snapshots = std::fs::read_to_string(hermetic.path("modal_snapshots.json")).unwrap();
    assert!(snapshots.contains(&format!("direct:{id}")), "{snapshots}");
    let ended = run(&hermetic, &read).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "mine\n"),
        "{}",
        ended.err
    );
    let ended = run(&hermetic, &["sandbox", "destroy", &id]).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(service.plane.cells().is_empty());
    let snapshots = std::fs::read_to_string(hermetic.path("modal_snapshots.json")).unwrap();
    assert!(!snapshots.contains(&id), "{snapshots}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_killed_command_line_leaves_no_bill_at_modal() {
    let test = "a_killed_command_line_leaves_no_bill_at_modal";
    let Some((service, hermetic)) = home(test).await else {
        return;
    };
    let words = ["exec", "--backend", "modal", "--", "sleep", "600"];
    for method in ["AppGetOrCreate", "SandboxCreateV2", "TaskExecStart"] {
        let before = service.count(method);
        let mut child = hermetic.command(&words).spawn().unwrap();
        while service.count(method) == before {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What was made for it is ended by whoever comes next.
        let ended = run(&hermetic, &["exec", "--backend", "modal", "--", "true"]).await;
        assert_eq!(ended.code, 0, "{}", ended.err);
        let begun = std::time::Instant::now();
        while !service.plane.cells().is_empty() {
            assert!(begun.elapsed().as_secs() < 120, "after {method}");
            let ended = run(&hermetic, &["sandbox", "list"]).await;
            assert_eq!(ended.code, 0, "{}", ended.err);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_installed_agent_is_copied_there_and_answers() {
    let test = "an_installed_agent_is_copied_there_and_answers";
    let Some((service, hermetic)) = home(test).await else {
        return;
    };
    put_in_place_of_opencode(&hermetic.path("hermetic/agents"), "7").unwrap();
    let ask = [
        "chat",
        "--backend",
        "modal",
        "--agent",
        "opencode",
        "-q",
        "env VERSION",
    ];
    let ended = run(&hermetic, &ask).await;
    let said = (ended.code, ended.out.trim());
    assert_eq!(said, (0, "VERSION=7"), "{}", ended.err);
    assert!(service.plane.cells().is_empty(), "it was not to be kept");
}
