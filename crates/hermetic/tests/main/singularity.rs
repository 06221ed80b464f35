//! Instances of Apptainer, as somebody at a keyboard meets them.

use std::time::{Duration, Instant};

use crate::hermetic::{Ended, Hermetic};

/// What the command line and chats run in: instances of the test image, where there is one.
pub(crate) fn config(test: &str) -> Option<String> {
    let Ok(image) = std::env::var("HERMETIC_TEST_ROOTFS") else {
        eprintln!("SKIP: {test}: no HERMETIC_TEST_ROOTFS; `cargo xtask test` provides one");
        return None;
    };
    Some(format!(
        "terminal: {{backend: singularity, singularity_image: '{image}'}}\n\
         gateway: {{terminal_backend: singularity, sandbox_image: '{image}'}}\n"
    ))
}

/// A home whose commands run in instances of the test image; nothing where there can be none.
pub(crate) fn home(test: &str) -> Option<Hermetic> {
    let home = Hermetic::with(&config(test)?);
    let rows = home.run(&["backends", "--json"]).json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["backend"] == "singularity").unwrap();
    if row["available"] == false {
        eprintln!("SKIP: {test}: {}", row["notes"][0]["what"]);
        return None;
    }
    Some(home)
}

fn said(ended: &Ended) -> (i32, &str) {
    (ended.code, ended.out.as_str())
}

fn instances(home: &Hermetic) -> Vec<i32> {
    let id = std::fs::read_to_string(home.path("hermetic/installation")).unwrap_or_default();
    processes(&id)
}

/// Of this host's that carry the installation's name.
pub(crate) fn processes(id: &str) -> Vec<i32> {
    let name = format!("hermetic-{}-", id.trim());
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&name)
        })
        .collect()
}

fn until_none(home: &Hermetic) {
    let begun = Instant::now();
    while !instances(home).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{:?}",
            instances(home)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_runs_in_an_instance_and_nothing_is_left() {
    let Some(home) = home("a_command_runs_in_an_instance_and_nothing_is_left") else {
        return;
    };
    let home = home
        .variable("APPTAINER_BIND", "/:/host")
        .variable("APPTAINERENV_LEAKED", "yes")
        .variable("SINGULARITYENV_LEAKED", "yes");
    let look =
        "id -u; pwd; ls -d /host 2>/dev/null; echo ${LEAKED-none}; grep -c : /proc/net/dev; exit 7";
    let ended = home.run(&["exec", "--", "sh", "-c", look]);
    assert_eq!(
        said(&ended),
        (7, "1000\n/workspace\nnone\n1\n"),
        "{}",
        ended.err
    );
    until_none(&home);
}

#[test]
fn a_session_of_instances_keeps_its_files_and_goes_when_told() {
    let Some(home) = home("a_session_of_instances_keeps_its_files_and_goes_when_told") else {
        return;
    };
    let exec = |text: &str| home.run(&["exec", "--session", "s", "--", "sh", "-c", text]);
    let made = exec("echo mine > note");
    assert_eq!(said(&made), (0, ""), "{}", made.err);
    assert_eq!(said(&exec("cat note")), (0, "mine\n"));
    let rows = home.run(&["sandbox", "list", "--json"]).json();
    assert_eq!(rows[0]["backend"], "singularity");
    let id = rows[0]["id"].as_str().unwrap();
    assert_eq!(home.run(&["sandbox", "stop", id]).code, 0);
    until_none(&home);
    assert_eq!(said(&exec("cat note")), (0, "mine\n"));
    assert_eq!(home.run(&["sandbox", "destroy", id]).code, 0);
    until_none(&home);
    let overlays = std::fs::read_dir(home.path("hermetic/singularity/hermetic-overlays"));
    assert_eq!(overlays.map_or(0, Iterator::count), 0);
}

#[test]
fn a_killed_command_line_takes_its_instance_along() {
    let Some(home) = home("a_killed_command_line_takes_its_instance_along") else {
        return;
    };
    // Before the runtime is started, while it makes the instance, and when the command runs.
    for seen in [0, 1, 3] {
        let mut child = home
            .command(&["exec", "--", "sleep", "600"])
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while instances(&home).len() < seen && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The runtime may finish what it was asked for after the next command line looked: the one
        // after that sees it out.
        let killed = Instant::now();
        loop {
            assert_eq!(home.run(&["exec", "--", "true"]).code, 0);
            let looked = Instant::now();
            while !instances(&home).is_empty() && looked.elapsed() < Duration::from_secs(2) {
                std::thread::sleep(Duration::from_millis(20));
            }
            if instances(&home).is_empty() {
                break;
            }
            let left = instances(&home);
            assert!(killed.elapsed() < Duration::from_secs(120), "{left:?}");
        }
    }
}

#[test]
fn an_instance_is_attacked_and_holds() {
    let Some(home) = home("an_instance_is_attacked_and_holds") else {
        return;
    };
    let ended = home.run(&["doctor", "--attack", "--backend", "singularity", "--json"]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.out, ended.err);
    until_none(&home);
}

#[test]
fn every_way_out_is_tried_from_inside_an_instance() {
    let Some(home) = home("every_way_out_is_tried_from_inside_an_instance") else {
        return;
    };
    let verified = home.run(&["egress", "verify", "--backend", "singularity", "--json"]);
    let told = verified.json();
    assert_eq!(told["held"], true, "{told}");
    let rows = told["rows"].as_array().unwrap();
    let reached = "an allowed host, by the proxy";
    assert!(rows.iter().any(|row| row["tried"] == reached), "{told}");

    let asks = "env | grep -c '^https_proxy='; exec 3<>/dev/tcp/127.0.0.1/3128; \
        printf 'CONNECT b.test:443 HTTP/1.1\\r\\nHost: b.test:443\\r\\n\\r\\n' >&3; head -n1 <&3";
    let ended = home.run(&["exec", "--allow", "a.test", "--", "bash", "-c", asks]);
    assert_eq!(
        said(&ended),
        (0, "1\nHTTP/1.1 403 Forbidden\r\n"),
        "{}",
        ended.err
    );
    until_none(&home);
}

#[test]
fn the_gateway_proves_its_instances_before_it_serves() {
    let Some(home) = home("the_gateway_proves_its_instances_before_it_serves") else {
        return;
    };
    let (gateway, said) = home.gateway(&[]);
    assert!(said.contains("chats run on singularity"), "{said}");
    drop(gateway);
    until_none(&home);
}
