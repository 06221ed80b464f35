//! What goes on after the call, and what can be done about it.

use std::time::Duration;

use hermetic_tools::NoticeKind;
use hermetic_types::BackendKind;
use serde_json::json;

use crate::room::{Lab, PATIENCE, SECRET, Wishes};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_followed_written_to_and_ended() {
    for backend in [BackendKind::Native, BackendKind::Local] {
        let test = "a_process_is_followed_written_to_and_ended";
        let wishes = Wishes {
            backend,
            ..Wishes::default()
        };
        let Some(lab) = Lab::open_with(test, wishes).await else {
            return;
        };
        let id = lab
            .starts(
                "echo ready; while read -r line; do echo \"got $line\"; done; echo over; exit 3",
            )
            .await;
        assert!(id.starts_with("proc_") && id.len() == 17, "{id}");
        lab.until("it is ready", async || {
            lab.process("poll", &id).await["output_preview"] == "ready"
        })
        .await;
        let polled = lab.process("poll", &id).await;
        assert_eq!(polled["status"], "running");
        assert!(polled["pid"].as_u64().unwrap() > 0, "{polled}");
        let submitted = json!({"action": "submit", "session_id": id, "data": "one"});
        assert_eq!(lab.call("process", submitted).await["bytes_written"], 4);
        let written = json!({"action": "write", "session_id": id, "data": "two\n"});
        assert_eq!(lab.call("process", written).await["status"], "ok");
        assert_eq!(lab.process("close", &id).await["status"], "ok");
        let waited = lab.process("wait", &id).await;
        assert_eq!(
            waited["output"], "ready\ngot one\ngot two\nover",
            "{waited}"
        );
        assert_eq!(
            (&waited["status"], &waited["exit_code"]),
            (&json!("exited"), &json!(3))
        );
        let log = json!({"action": "log", "session_id": id, "offset": 1, "limit": 2});
        let log = lab.call("process", log).await;
        assert_eq!(
            (&log["output"], &log["total_lines"]),
            (&json!("got one\ngot two"), &json!(4))
        );
        let late = json!({"action": "submit", "session_id": id, "data": "x"});
        assert_eq!(lab.call("process", late).await["status"], "already_exited");
        assert_eq!(lab.process("kill", &id).await["status"], "already_exited");
        lab.until("nobody wants to know more", async || lab.rows().await == 0)
            .await;
        lab.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_everything_it_started() {
    let Some(lab) = Lab::open("kill_ends_everything_it_started").await else {
        return;
    };
    let id = lab
        .starts(
            "trap '' TERM; setsid sleep 7001 & (sleep 7001 & exec setsid sleep 7001) & sleep 7001",
        )
        .await;
    lab.until("all of it runs", async || {
        lab.running("sleep 7001").await >= 4
    })
    .await;
    let killed = lab.process("kill", &id).await;
    assert_eq!(killed["status"], "killed", "{killed}");
    assert_eq!(lab.running("sleep 7001").await, 0);
    assert_eq!(lab.process("poll", &id).await["status"], "exited");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_a_terminal_in_front_and_behind() {
    let Some(lab) = Lab::open("a_terminal_is_a_terminal_in_front_and_behind").await else {
        return;
    };
    let pty = json!({"command": "tty && stty size && echo $TERM", "pty": true});
    let ran = lab.call("terminal", pty).await;
    let output = ran["output"].as_str().unwrap();
    assert!(output.starts_with("/dev/pts/"), "{ran}");
    assert!(output.ends_with("40 120\nxterm-256color"), "{ran}");
    let asks = json!({"command": "read -rp 'name? ' name; echo \"hello $name\"", "pty": true,
        "background": true});
    let id = lab.call("terminal", asks).await["session_id"].clone();
    let id = id.as_str().unwrap();
    lab.until("it asks", async || {
        lab.process("poll", id).await["output_preview"] == "name?"
    })
    .await;
    let answer = json!({"action": "submit", "session_id": id, "data": "bob"});
    lab.call("process", answer).await;
    let waited = lab.process("wait", id).await;
    assert!(
        waited["output"].as_str().unwrap().ends_with("hello bob"),
        "{waited}"
    );
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_finds_what_runs_and_tells_what_ended_meanwhile() {
    let test = "a_restart_finds_what_runs_and_tells_what_ended_meanwhile";
    let Some(mut lab) = Lab::open(test).await else {
        return;
    };
    let goes_on = lab
        .starts("echo before; read -r line; echo \"after $line\"")
        .await;
    let ends = json!({"command": "read -r < /tmp/go; echo ended meanwhile; exit 4", "background": true,
        "notify_on_complete": true});
    lab.says("mkfifo /tmp/go").await;
    let ends = lab.call("terminal", ends).await;
    assert_eq!(ends["notify_on_complete"], true);
    lab.until("it has begun", async || {
        lab.process("poll", &goes_on).await["output_preview"] == "before"
    })
    .await;
    assert_eq!(lab.rows().await, 2);

    lab.kit.background.close().await;
    lab.says("echo > /tmp/go").await;
    lab.restart(&Wishes::default()).await;
    assert_eq!(lab.kit.background.take_up().await.unwrap(), 2);
    let mut notices = lab.kit.background.notices().unwrap();
    let notice = tokio::time::timeout(PATIENCE, notices.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(notice.what, NoticeKind::Ended { code: Some(4) });
    assert_eq!(notice.session_id(), ends["session_id"].as_str().unwrap());
    assert_eq!(
        (notice.origin.as_str(), notice.output.as_str()),
        ("alice", "ended meanwhile")
    );
    lab.until("it is reached", async || {
        lab.process("poll", &goes_on).await["output_preview"] == "before"
    })
    .await;
    let submit = json!({"action": "submit", "session_id": goes_on, "data": "restart"});
    assert_eq!(lab.call("process", submit).await["status"], "ok");
    assert_eq!(
        lab.process("wait", &goes_on).await["output"],
        "before\nafter restart"
    );
    // Told again and again until somebody has it in safe hands.
    lab.until("what was waited for is forgotten", async || {
        lab.rows().await == 1
    })
    .await;
    lab.kit.background.told(&notice).await.unwrap();
    assert_eq!(lab.rows().await, 0);
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_somebody_else_picked_up_is_not_lost() {
    let test = "a_process_that_somebody_else_picked_up_is_not_lost";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let id = lab
        .starts("echo before; read -r line; echo \"after $line\"; read -r line")
        .await;
    lab.until("it has begun", async || {
        lab.process("poll", &id).await["output_preview"] == "before"
    })
    .await;
    let sandbox = lab.room.sandbox();
    let warden = sandbox.warden();
    let runs = warden.runs().await.unwrap();
    let run = runs.iter().find(|run| run.detached).unwrap();
    let mut taken = warden.attach(run.id.clone(), 0).await.unwrap();
    // Until it is taken away from us in turn.
    while let Ok(Some(_)) = taken.next().await {}
    lab.until("it can be written to again", async || {
        let submit = json!({"action": "submit", "session_id": id, "data": "all"});
        lab.call("process", submit).await["status"] == "ok"
    })
    .await;
    lab.until("it goes on", async || {
        lab.process("poll", &id).await["output_preview"] == "before\nafter all"
    })
    .await;
    assert_eq!(lab.process("poll", &id).await["status"], "running");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_goes_takes_its_processes_along_and_says_so() {
    let test = "a_sandbox_that_goes_takes_its_processes_along_and_says_so";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let lasting = json!({"command": "sleep 7002", "background": true, "notify_on_complete": true});
    let id = lab.call("terminal", lasting).await["session_id"].clone();
    let mut notices = lab.kit.background.notices().unwrap();
    lab.destroy_sandbox().await;
    let notice = tokio::time::timeout(PATIENCE, notices.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(notice.what, NoticeKind::Ended { code: None });
    let polled = lab.process("poll", id.as_str().unwrap()).await;
    assert_eq!(
        (&polled["status"], &polled["exit_code"]),
        (&json!("exited"), &json!(-1))
    );
    assert!(
        polled["note"].as_str().unwrap().contains("sandbox is gone"),
        "{polled}"
    );
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_are_told_and_a_forgotten_conversation_tells_nothing() {
    let test = "patterns_are_told_and_a_forgotten_conversation_tells_nothing";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let command =
        format!("echo starting; printf 'server \\033[1mready\\033[0m {SECRET}\\n'; sleep 7003");
    let watched = json!({"command": command, "background": true,
        "watch_patterns": ["server ready"]});
    let started = lab.call("terminal", watched).await;
    assert_eq!(started["watch_patterns"], json!(["server ready"]));
    let mut notices = lab.kit.background.notices().unwrap();
    let notice = tokio::time::timeout(PATIENCE, notices.recv())
        .await
        .unwrap()
        .unwrap();
    let pattern = "server ready".to_owned();
    assert_eq!(notice.what, NoticeKind::Matched { pattern, untold: 0 });
    assert_eq!(notice.output.as_str(), "starting\nserver ready [redacted]");
    assert!(
        !notice.command.as_str().contains(SECRET),
        "{}",
        notice.command
    );

    lab.kit
        .background
        .forget(&notice.conversation)
        .await
        .unwrap();
    assert_eq!(lab.rows().await, 0);
    assert_eq!(lab.process("list", "").await, json!({"processes": []}));
    lab.destroy_sandbox().await;
    lab.kit.background.close().await;
    assert!(notices.try_recv().is_err(), "nobody wanted to know");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_costs_bounded_memory_and_can_be_ended() {
    let Some(lab) = Lab::open("a_flood_costs_bounded_memory_and_can_be_ended").await else {
        return;
    };
    let id = lab.starts("yes 'a line of a flood'").await;
    lab.until("much was written", async || {
        let log = lab.process("log", &id).await;
        log["total_lines"].as_u64().unwrap() > 5000
    })
    .await;
    let log = json!({"action": "log", "session_id": id, "offset": 1, "limit": 100_000_000});
    let log = lab.call("process", log).await;
    assert!(log["output"].as_str().unwrap().len() < 60_000);
    assert_eq!(lab.process("kill", &id).await["status"], "killed");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_are_bounded_and_can_be_interrupted() {
    let wishes = Wishes {
        timeout: Duration::from_secs(1),
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with("waits_are_bounded_and_can_be_interrupted", wishes).await else {
        return;
    };
    let id = lab.starts("echo at it; sleep 7004").await;
    let long = json!({"action": "wait", "session_id": id, "timeout": 9999});
    let waited = lab.call("process", long.clone()).await;
    assert_eq!(waited["status"], "timeout", "{waited}");
    assert!(
        waited["timeout_note"]
            .as_str()
            .unwrap()
            .contains("at most 1 s"),
        "{waited}"
    );
    let stop = tokio_util::sync::CancellationToken::new();
    stop.cancel();
    let waited = lab.call_until("process", long, &stop).await;
    assert_eq!(waited["status"], "interrupted");
    assert_eq!(lab.process("poll", &id).await["status"], "running");
    assert_eq!(
        lab.process("poll", "proc_000000000000").await["status"],
        "not_found"
    );
    lab.close().await;
}
