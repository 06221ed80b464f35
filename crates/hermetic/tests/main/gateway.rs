//! `hermetic gateway run` and what `hermetic status` says of it.

use rustix::process::Signal;

use crate::hermetic::Hermetic;

#[test]
fn it_starts_with_no_configuration_and_ends_by_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let hermetic = Hermetic::new();
        if !hermetic.has_sandboxes("it_starts_with_no_configuration_and_ends_by_a_signal") {
            return;
        }
        let (gateway, said) = hermetic.gateway(&[]);
        assert!(said.contains("chats run on native"), "{said}");
        assert!(said.contains("no chat platform is configured"), "{said}");
        let (status, said) = gateway.signal(signal);
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(said.contains("stopped"), "{said}");
        assert!(!hermetic.path("hermetic/gateway.pid").exists());
        let status = hermetic.run(&["gateway", "status", "--json"]).json();
        assert_eq!(status["state"]["gateway_state"], "stopped");
        assert_eq!(status["state"]["exit_reason"], "asked to");
    }
}

#[test]
fn one_home_has_one_gateway() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("one_home_has_one_gateway") {
        return;
    }
    let (gateway, _) = hermetic.gateway(&[]);
    let second = hermetic.run(&["gateway", "run"]);
    assert_eq!(second.code, 1);
    let expected = format!(
        "error: a gateway is running for this home already\n  = end it first (`hermetic gateway stop`, pid {}), or use another --home\n",
        gateway.id()
    );
    assert_eq!(second.err, expected);
}

#[test]
fn a_killed_gateway_leaves_nothing_that_blocks_the_next() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("a_killed_gateway_leaves_nothing_that_blocks_the_next") {
        return;
    }
    let (gateway, _) = hermetic.gateway(&[]);
    gateway.signal(Signal::KILL);
    assert_eq!(
        hermetic.run(&["status", "--json"]).json()["gateway"]["running"],
        false
    );
    let (_next, said) = hermetic.gateway(&[]);
    assert!(said.contains("ready"), "{said}");
}

#[test]
fn chats_on_the_host_are_warned_about_at_the_start_and_in_status() {
    let hermetic = Hermetic::with("gateway:\n  terminal_backend: local\n");
    let (_gateway, said) = hermetic.gateway(&[]);
    let warning = "Gateway is running with local terminal backend.\n  Commands from messaging platforms will execute on this machine.";
    assert!(said.contains(warning), "{said}");
    assert!(hermetic.run(&["status"]).out.contains(warning));
    let json = hermetic.run(&["status", "--json"]).json();
    assert_eq!(json["boundary"], "judged");
    assert!(
        json["warnings"][0]
            .as_str()
            .unwrap()
            .contains("local terminal backend")
    );
}

#[test]
fn the_override_is_logged_and_a_backend_that_is_missing_is_not_replaced() {
    let config = "gateway: {terminal_backend: docker, sandbox_image: 'python:3.11'}\n";
    let ended = Hermetic::with(config)
        .variable("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .run(&["gateway", "run", "--log-format", "json"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    let (log, error) = ended.err.split_once("error: ").unwrap();
    assert!(
        error.contains("the engine at unix:///nowhere/docker.sock does not answer"),
        "{error}"
    );
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let named = lines.iter().find(|line| line["backend"].is_string());
    let named = named.expect("a line that names the backend");
    assert_eq!(named["backend"], "docker");
    assert_eq!(named["image"], "python:3.11");
    let run = &lines[0]["span"]["run"];
    assert!(run.is_string(), "{}", lines[0]);
    assert!(lines.iter().all(|line| &line["span"]["run"] == run));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let hermetic = Hermetic::new().variable("HERMETIC_DASHBOARD_PORT", &port);
    let ended = hermetic.run(&["gateway", "run"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("gateway.dashboard.port"),
        "{}",
        ended.err
    );
}

#[test]
fn a_sandbox_that_cannot_be_had_refuses_the_start() {
    // A system without a shell: the sandbox comes up and nothing runs in it.
    let rootfs = tempfile::tempdir().unwrap();
    let config = format!(
        "terminal: {{native_rootfs: '{}'}}\n",
        rootfs.path().display()
    );
    let hermetic = Hermetic::with(&config);
    if !hermetic.has_sandboxes("a_sandbox_that_cannot_be_had_refuses_the_start") {
        return;
    }
    let ended = hermetic.run(&["gateway", "run"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("the native backend does not work"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains("ready"), "{}", ended.err);
    assert_eq!(
        hermetic.run(&["sandbox", "list", "--json"]).json(),
        serde_json::json!([])
    );
}

#[test]
fn a_bad_configuration_stops_the_start() {
    for config in [
        "gateway: {terminal_backend: docer}\n",
        "terminal: {backend: ssh}\n",
    ] {
        let hermetic = Hermetic::with(config);
        let ended = hermetic.run(&["gateway", "run"]);
        assert_eq!(ended.code, 78, "{}", ended.err);
        assert!(!hermetic.path("hermetic").exists());
    }
}

#[test]
fn status_tells_the_state() {
    let nowhere = "gateway: {sandbox_lifetime: 60}\nplatforms: {telegram: {base_url: 'http://127.0.0.1:1'}}\n";
    let hermetic = Hermetic::with(nowhere).file(".env", "TELEGRAM_BOT_TOKEN=1:a\n");
    if !hermetic.has_sandboxes("status_tells_the_state") {
        return;
    }
    insta::assert_snapshot!(hermetic.run(&["status"]).out, @r"
    home       ~/.hermes
    store      ~/.hermes/hermetic/state.db
    gateway    not running
    backend    native (sealed)
               chats run on native: no backend is written, so the default holds
    image      none
    lifetime   60 s idle
    limits     1 cpu, 5120 MB memory, 51200 MB disk, 256 processes
    egress     allowlist: empty, sandboxes reach nothing
    platforms  telegram
    ");
    let (gateway, _) = hermetic.gateway(&[]);
    let json = hermetic.run(&["status", "--json"]).json();
    assert_eq!(json["gateway"]["running"], true);
    assert_eq!(json["gateway"]["state"]["pid"], gateway.id());
    assert_eq!(json["platforms"][0]["enabled"], true);
    // As the gateway has it at this moment, which may be on its first try or on a later one.
    let accounts = json["accounts"].as_array().unwrap();
    let ours = accounts.iter().find(|one| one["account"] == "telegram");
    assert!(ours.unwrap()["state"].is_string(), "{json}");
    let shown = hermetic.run(&["status"]).out;
    assert!(shown.contains("           telegram  "), "{shown}");
}

/// By what memory and disk are bounded is the gateway's to say: another shell has other groups and rights.
#[test]
fn status_tells_what_bounds_memory_and_disk() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("status_tells_what_bounds_memory_and_disk") {
        return;
    }
    let before = hermetic.run(&["status", "--json"]).json();
    assert!(before["limits_kept"].is_null(), "{before}");
    let (_gateway, _) = hermetic.gateway(&[]);
    let json = hermetic.run(&["status", "--json"]).json();
    let text = hermetic.run(&["status"]).out;
    let doctor = hermetic.run(&["doctor", "--json"]).json();
    let layers = doctor["layers"].as_array().unwrap();
    for name in ["memory limit", "disk limit"] {
        let kept = json["limits_kept"].as_array().unwrap().iter();
        let kept = kept
            .clone()
            .find(|limit| limit["name"] == name)
            .expect(name);
        assert_eq!(kept["backend"], "native");
        let layer = layers
            .iter()
            .find(|layer| layer["name"] == name)
            .expect(name);
        assert_eq!(kept["is_kept"], layer["state"] == "active", "{layer}");
        let detail = kept["detail"].as_str().unwrap();
        assert!(text.contains(detail), "{name} in {text}");
    }
}

#[test]
fn status_sees_that_the_file_changed_since_the_start() {
    let hermetic = Hermetic::with("gateway: {terminal_backend: local}\n");
    let (_gateway, _) = hermetic.gateway(&[]);
    let hermetic = hermetic.file("config.yaml", "gateway: {terminal_backend: native}\n");
    let out = hermetic.run(&["status"]).out;
    assert!(
        out.contains("the running gateway still uses local; restart it to use native"),
        "{out}"
    );
}

/// Others' errors are printed as they are, and may hold anything: here one holds a word that the
/// configuration calls a secret.
#[test]
fn the_log_shows_no_secret_whoever_wrote_the_line() {
    let config = "platforms: {telegram: {base_url: 'http://127.0.0.1:1'}}\n";
    let secrets = "TELEGRAM_BOT_TOKEN=123456789:of-a-bot\nTELEGRAM_ALLOWED_USERS=1\nOPENAI_API_KEY=ConnectionRefused\n";
    let hermetic = Hermetic::with(config)
        .file(".env", secrets)
        .variable("HERMETIC_LOG", "trace");
    if !hermetic.has_sandboxes("the_log_shows_no_secret_whoever_wrote_the_line") {
        return;
    }
    let (mut gateway, mut said) = hermetic.gateway(&[]);
    if !said.contains("polling telegram failed") {
        said.push_str(&gateway.until("polling telegram failed"));
    }
    assert!(said.contains("connect error for 127.0.0.1:1"), "{said}");
    assert!(!said.contains("ConnectionRefused"), "{said}");
}
