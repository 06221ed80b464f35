//! Containers, as somebody at a keyboard meets them.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::hermetic::{Ended, Hermetic};

/// A home whose commands run in the test image; nothing where there is no engine with it.
fn home(name: &str, more: &str) -> Option<Hermetic> {
    let image = std::env::var("HERMETIC_TEST_IMAGE").ok();
    let (Some(image), true) = (image, containers("none").is_some()) else {
        eprintln!("SKIP: {name}: no engine with a test image; `cargo xtask test` provides one");
        return None;
    };
    let config = format!(
        "terminal:\n  backend: docker\n  docker_image: {image}\n{more}gateway:\n  sandbox_image: {image}\n"
    );
    let mut home = Hermetic::with(&config);
    if let Ok(engine) = std::env::var("DOCKER_HOST") {
        home = home.variable("DOCKER_HOST", &engine);
    }
    Some(home)
}

/// The containers of one installation, by docker's own client.
pub(crate) fn containers(installation: &str) -> Option<Vec<String>> {
    let filter = format!("label=hermetic.installation={installation}");
    let listed = Command::new("docker")
        .args(["ps", "-aq", "--filter", &filter])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed
        .status
        .success()
        .then(|| text.lines().map(str::to_owned).collect())
}

fn left(home: &Hermetic) -> Vec<String> {
    let id = std::fs::read_to_string(home.path("hermetic/installation"));
    containers(id.unwrap_or_default().trim()).unwrap()
}

fn until_none(home: &Hermetic) {
    let begun = Instant::now();
    while !left(home).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{:?}",
            left(home)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn said(ended: &Ended) -> (i32, &str) {
    (ended.code, ended.out.as_str())
}

#[test]
fn a_command_runs_in_a_container_and_nothing_is_left() {
    let Some(home) = home("a_command_runs_in_a_container_and_nothing_is_left", "") else {
        return;
    };
    let look = "id -u; pwd; ls /sys/class/net; exit 7";
    let ended = home.run(&["exec", "--", "sh", "-c", look]);
    assert_eq!(said(&ended), (7, "0\n/workspace\nlo\n"), "{}", ended.err);
    assert_eq!(left(&home), [""; 0]);
}

#[test]
fn a_session_keeps_its_files_and_goes_when_told() {
    let Some(home) = home("a_session_keeps_its_files_and_goes_when_told", "") else {
        return;
    };
    let exec = |text: &str| home.run(&["exec", "--session", "s", "--", "sh", "-c", text]);
    assert_eq!(said(&exec("echo mine > note")), (0, ""));
    assert_eq!(said(&exec("cat note")), (0, "mine\n"));
    let rows = home.run(&["sandbox", "list", "--json"]).json();
    assert_eq!(rows[0]["backend"], "docker");
    assert_eq!(rows[0]["conversation"], "cli:s");
    let id = rows[0]["id"].as_str().unwrap();
    assert_eq!(home.run(&["sandbox", "stop", id]).code, 0);
    assert_eq!(said(&exec("cat note")), (0, "mine\n"));
    assert_eq!(home.run(&["sandbox", "destroy", id]).code, 0);
    assert_eq!(left(&home), [""; 0]);
}

#[test]
fn a_killed_command_line_takes_its_container_along() {
    let Some(home) = home("a_killed_command_line_takes_its_container_along", "") else {
        return;
    };
    for millis in [150, 500, 1200] {
        let mut child = home
            .command(&["exec", "--", "sleep", "600"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        // One that was made and never started is swept by whoever comes next.
        assert_eq!(home.run(&["exec", "--", "true"]).code, 0);
        until_none(&home);
    }
}

#[test]
fn a_network_that_was_written_is_had_with_a_warning_and_one_that_was_not_is_not() {
    const NAME: &str =
        "a_network_that_was_written_is_had_with_a_warning_and_one_that_was_not_is_not";
    let Some(open) = home(NAME, "  docker_network: true\n") else {
        return;
    };
    let ended = open.run(&["exec", "--", "ls", "/sys/class/net"]);
    assert_eq!(said(&ended), (0, "eth0\nlo\n"), "{}", ended.err);
    assert!(ended.err.contains("the seal is broken"), "{}", ended.err);
    let closed = home(NAME, "").unwrap();
    let ended = closed.run(&["exec", "--", "ls", "/sys/class/net"]);
    assert_eq!(said(&ended), (0, "lo\n"), "{}", ended.err);
}

#[test]
fn what_weakens_the_seal_is_refused_unless_the_risk_is_named() {
    const NAME: &str = "what_weakens_the_seal_is_refused_unless_the_risk_is_named";
    let Some(refused) = home(NAME, "  docker_extra_args: [--cap-add, NET_RAW]\n") else {
        return;
    };
    let ended = refused.run(&["exec", "--", "true"]);
    assert_eq!(ended.code, 125);
    assert!(ended.err.contains("--cap-add is refused"), "{}", ended.err);
    assert!(ended.err.contains("docker_accept_risks"), "{}", ended.err);

    let risk = "  docker_extra_args: [--cap-add, NET_RAW]\n  docker_accept_risks: [--cap-add]\n";
    let taken = home(NAME, risk).unwrap();
    let ended = taken.run(&["exec", "--", "grep", "CapBnd", "/proc/self/status"]);
    assert_eq!(
        said(&ended),
        (0, "CapBnd:\t0000000000002000\n"),
        "{}",
        ended.err
    );

    let socket = "  docker_volumes: ['/var/run/docker.sock:/engine.sock']\n";
    let ended = home(NAME, socket).unwrap().run(&["exec", "--", "true"]);
    assert_eq!(ended.code, 125, "{}", ended.err);
    assert!(ended.err.contains("owns its host"), "{}", ended.err);
}

#[test]
fn variables_are_forwarded_by_name_and_set_by_value() {
    let more = "  docker_forward_env: [TOKEN, ABSENT]\n  docker_env: {MODE: test}\n";
    let Some(home) = home("variables_are_forwarded_by_name_and_set_by_value", more) else {
        return;
    };
    let home = home.variable("TOKEN", "t0ken").variable("OTHER", "hidden");
    let look = "echo $TOKEN $MODE $OTHER ${ABSENT-unset}";
    let ended = home.run(&["exec", "--", "sh", "-c", look]);
    assert_eq!(said(&ended), (0, "t0ken test unset\n"), "{}", ended.err);
}

#[test]
fn the_current_folder_is_the_workspace_when_asked() {
    let more = "  docker_mount_cwd_to_workspace: true\n";
    let Some(home) = home("the_current_folder_is_the_workspace_when_asked", more) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note"), "outside").unwrap();
    let output = home
        .command(&["exec", "--", "cat", "note"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "outside");
}

#[test]
fn the_gateway_proves_its_containers_before_it_serves() {
    let Some(home) = home("the_gateway_proves_its_containers_before_it_serves", "") else {
        return;
    };
    let (gateway, said) = home.gateway(&[]);
    assert!(said.contains("chats run on docker"), "{said}");
    drop(gateway);
    assert_eq!(left(&home), [""; 0]);
}

#[test]
fn every_backend_says_whether_it_is_there_and_what_to_do() {
    let home = Hermetic::new().variable("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let rows = home.run(&["backends", "--json"]).json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let missing = row["available"] == false;
        assert_eq!(
            missing,
            !row["notes"].as_array().unwrap().is_empty(),
            "{row}"
        );
    }
    let docker = rows.iter().find(|row| row["backend"] == "docker").unwrap();
    assert_eq!(docker["available"], false);
    let note = &docker["notes"][0];
    assert!(
        note["what"].as_str().unwrap().contains("does not answer"),
        "{note}"
    );
    assert!(
        note["remedy"].as_str().unwrap().contains("DOCKER_HOST"),
        "{note}"
    );
    let local = rows.iter().find(|row| row["backend"] == "local").unwrap();
    assert_eq!(local["boundary"], "judged");
    let text = home.run(&["backends"]).out;
    assert!(text.contains("docker       not available"), "{text}");
}

#[test]
fn every_way_out_is_tried_from_inside_a_container() {
    const NAME: &str = "every_way_out_is_tried_from_inside_a_container";
    let Some(usual) = home(NAME, "") else {
        return;
    };
    let verify = |home: &Hermetic| home.run(&["egress", "verify", "--backend", "docker", "--json"]);
    let verified = verify(&usual).json();
    assert_eq!(verified["held"], true, "{verified}");
    let reached = "an allowed host, by the proxy";
    let rows = verified["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["tried"] == reached), "{verified}");

    let closed = home(NAME, "  docker_network: false\n").unwrap();
    let verified = verify(&closed).json();
    assert_eq!(verified["held"], true, "{verified}");
    let why = verified["rows"].as_array().unwrap().last().unwrap();
    assert_eq!(why["detail"], "none: terminal.docker_network is false");
    assert_eq!(left(&closed), [""; 0]);
}

#[test]
fn one_command_goes_out_by_the_proxy_unless_containers_are_closed() {
    const NAME: &str = "one_command_goes_out_by_the_proxy_unless_containers_are_closed";
    let asks = "env | grep -c '^https_proxy='; ls /sys/class/net; exec 3<>/dev/tcp/127.0.0.1/3128; \
        printf 'CONNECT b.test:443 HTTP/1.1\\r\\nHost: b.test:443\\r\\n\\r\\n' >&3; head -n1 <&3";
    let words = ["exec", "--allow", "a.test", "--", "bash", "-c", asks];
    let Some(usual) = home(NAME, "") else {
        return;
    };
    let ended = usual.run(&words);
    assert_eq!(
        said(&ended),
        (0, "1\nlo\nHTTP/1.1 403 Forbidden\r\n"),
        "{}",
        ended.err
    );
    let closed = home(NAME, "  docker_network: false\n").unwrap();
    let session = [&["exec", "--session", "s"], &words[1..]].concat();
    for words in [&words[..], &session] {
        let ended = closed.run(words);
        assert_eq!(ended.code, 125, "{}", ended.out);
        assert!(
            ended.err.contains("docker_network is false"),
            "{}",
            ended.err
        );
    }
    assert_eq!(left(&closed), [""; 0]);
}
