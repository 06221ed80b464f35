//! A long session of awkward calls as a model makes them, in one sandbox. After each of them the state
//! is looked at: the shell answers, its folder and variables are where they were left, no process is
//! there that should not be, no file of ours is left.

mod awkward;
mod commands;
mod files;
mod scripts;

use hermetic_policy::{PolicyMode, PolicyRules};
use hermetic_types::{BackendKind, Boundary};
use serde_json::{Value, json};

use crate::room::{Lab, PATIENCE, SECRET, Wishes};

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_awkward_calls_leaves_everything_in_order() {
    let test = "an_hour_of_awkward_calls_leaves_everything_in_order";
    spend(test, BackendKind::Native).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_in_a_container() {
    spend("the_same_hour_in_a_container", BackendKind::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_on_a_remote_host() {
    spend("the_same_hour_on_a_remote_host", BackendKind::Ssh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_on_the_host_itself() {
    spend("the_same_hour_on_the_host_itself", BackendKind::Local).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_in_an_instance() {
    spend("the_same_hour_in_an_instance", BackendKind::Singularity).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_at_modal() {
    spend("the_same_hour_at_modal", BackendKind::Modal).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_at_daytona() {
    spend("the_same_hour_at_daytona", BackendKind::Daytona).await;
}

fn session() -> impl Iterator<Item = awkward::Awkward> {
    let parts = [commands::calls(), files::calls(), scripts::calls()];
    parts.into_iter().flatten()
}

async fn spend(test: &str, backend: BackendKind) {
    let mut wishes = Wishes {
        backend,
        rules: PolicyRules {
            mode: PolicyMode::Off,
            ..PolicyRules::default()
        },
        ..Wishes::default()
    };
    wishes.code.timeout = std::time::Duration::from_secs(5);
    let Some(mut lab) = Lab::open_with(test, wishes.clone()).await else {
        return;
    };
    // Two hours at once on one machine must not meet.
    let (folder, sleep) = match backend {
        BackendKind::Local => (
            format!("{}/session", lab.folder.path().display()),
            "sleep 7150",
        ),
        BackendKind::Ssh => (lab.says("echo ~/session").await, "sleep 7160"),
        BackendKind::Docker => ("/tmp/session".to_owned(), "sleep 7170"),
        BackendKind::Modal => ("/tmp/session".to_owned(), "sleep 7180"),
        BackendKind::Daytona => ("/tmp/session".to_owned(), "sleep 7190"),
        _ => ("/tmp/session".to_owned(), "sleep 7100"),
    };
    let here = |text: &str| {
        text.replace("/tmp/session", &folder)
            .replace("sleep 7100", sleep)
    };
    lab.says(&here("mkdir -p /tmp/session")).await;
    let begin = here("cd /tmp/session; set +eu; marker=still-here");
    lab.says(&begin).await;
    let steady = lab
        .starts("echo up; read -r line; echo \"down $line\"")
        .await;
    // At full length where it costs nothing to be there; elsewhere some of each kind, or all when there is time.
    let whole = backend == BackendKind::Native || hermetic_sandbox::conformance::long();
    // Commands stand each for itself; calls about files build on those before them.
    let commands = commands::calls().len();
    let chosen = |number: usize| whole || number >= commands || number.is_multiple_of(4);
    for (number, step) in session().enumerate().filter(|(number, _)| chosen(*number)) {
        // In the middle the gateway is cut and another takes over.
        if number == 40 {
            lab.restart(&wishes).await;
            assert_eq!(lab.kit.background.take_up().await.unwrap(), 1);
        }
        let arguments: Value = serde_json::from_str(&here(&step.arguments.to_string())).unwrap();
        let answered = lab.call(step.tool, arguments.clone()).await;
        let text = answered.to_string();
        for part in step.holds.iter().map(|part| here(part)) {
            assert!(
                text.contains(&part),
                "step {number}: {arguments}\nlacks {part}: {text}"
            );
        }
        assert!(!text.contains(SECRET), "step {number} shows the secret");
        look_around(
            &lab,
            sleep,
            &format!("step {number}: {arguments}"),
            step.fresh,
        )
        .await;
        lab.says(&begin).await;
    }
    steer(&lab, sleep).await;
    let submit = json!({"action": "submit", "session_id": steady, "data": "at last"});
    assert_eq!(lab.call("process", submit).await["status"], "ok");
    let waited = tokio::time::timeout(PATIENCE, lab.process("wait", &steady)).await;
    assert_eq!(waited.unwrap()["output"], "up\ndown at last");
    lab.close().await;
}

/// Processes that are written to, ended, and asked for what they cannot do.
async fn steer(lab: &Lab, sleep: &str) {
    let ask = async |action: &str, id: &str, data: &str| {
        let order = json!({"action": action, "session_id": id, "data": data});
        lab.call("process", order).await
    };
    let cat = lab.starts("cat").await;
    assert_eq!(
        ask("write", &cat, "no newline, ").await["bytes_written"],
        12
    );
    assert_eq!(ask("submit", &cat, "then one").await["status"], "ok");
    assert_eq!(ask("close", &cat, "").await["status"], "ok");
    let ended = ask("wait", &cat, "").await;
    assert_eq!(
        (
            &ended["output"],
            &ended["exit_code"],
            &ended["completion_reason"]
        ),
        (&json!("no newline, then one"), &json!(0), &json!("exited"))
    );
    assert_eq!(ask("write", &cat, "x").await["status"], "already_exited");
    assert_eq!(ask("kill", &cat, "").await["status"], "already_exited");
    let stubborn = lab
        .starts(&format!("trap '' TERM INT; echo set; {sleep}; {sleep}"))
        .await;
    let killed = ask("kill", &stubborn, "").await;
    assert_eq!(
        (&killed["status"], &killed["termination_source"]),
        (&json!("killed"), &json!("process.kill"))
    );
    assert_eq!(lab.running(sleep).await, 0);
    let deaf = lab.starts(&format!("exec <&-; {sleep}")).await;
    ask("write", &deaf, &"x".repeat(1 << 20)).await;
    assert_eq!(ask("poll", &deaf, "").await["status"], "running");
    assert_eq!(ask("kill", &deaf, "").await["status"], "killed");
    let loud = lab.starts("yes").await;
    lab.until("it is heard", async || {
        ask("poll", &loud, "").await["output_preview"] != ""
    })
    .await;
    let log = ask("log", &loud, "").await;
    assert_eq!(log["showing"], "200 lines", "{log}");
    assert_eq!(ask("kill", &loud, "").await["completion_reason"], "killed");
    assert_eq!(lab.says("echo still").await, "still");
}

/// The shell answers from the folder it was left in; nothing of any step goes on; nothing of ours lies
/// about.
async fn look_around(lab: &Lab, sleep: &str, after: &str, fresh: bool) {
    let marker = lab.terminal("echo \"$marker\"").await;
    let expected = if fresh { "" } else { "still-here" };
    if !after.contains("exec 2>") {
        assert_eq!(marker["output"], expected, "{after}");
    }
    let left = lab
        .says("ls -d /tmp/hermes_exec_* 2>/dev/null | wc -l")
        .await;
    // On the host others may be at work.
    if lab.room.sandbox().boundary() == Boundary::Sealed && !after.contains("exec 2>") {
        assert_eq!(left, "0", "{after}");
    }
    assert_eq!(lab.running(sleep).await, 0, "{after}");
    let listed = lab.process("list", "").await;
    let listed = listed["processes"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{after}: {listed:?}");
    assert_eq!(listed[0]["status"], "running", "{after}");
}
