//! What may leave: changed, shown and proven by the command line.

use std::process::{Command, Stdio};

use crate::hermetic::Hermetic;

#[test]
fn everything_holds_in_a_real_sandbox() {
    let hermetic = Hermetic::with("gateway: {egress: {presets: [python]}}\n");
    if !hermetic.has_sandboxes("everything_holds_in_a_real_sandbox") {
        return;
    }
    let verified = hermetic.run(&["egress", "verify", "--json"]);
    let json = verified.json();
    assert_eq!((verified.code, &json["held"]), (0, &true.into()), "{json}");
    let tried: Vec<_> = json["rows"].as_array().unwrap().iter().collect();
    for name in [
        "routes",
        "name resolution",
        "cloud metadata, by the proxy",
        "another TLS name in a tunnel",
        "an allowed host, by the proxy",
    ] {
        assert!(
            tried.iter().any(|row| row["tried"] == name),
            "{name}: {json}"
        );
    }
}

#[test]
fn where_the_mode_is_closed_there_is_no_port() {
    let hermetic = Hermetic::with("gateway: {egress: {mode: closed}}\n");
    if !hermetic.has_sandboxes("where_the_mode_is_closed_there_is_no_port") {
        return;
    }
    let verified = hermetic.run(&["egress", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.out);
    assert!(
        verified.out.contains("none: gateway.egress.mode is closed"),
        "{}",
        verified.out
    );
    let exec = hermetic.run(&["exec", "--egress", "--", "true"]);
    assert_eq!(exec.code, 125, "{}", exec.err);
}

#[test]
fn a_backend_that_is_no_boundary_does_not_hold() {
    let hermetic = Hermetic::new();
    let verified = hermetic.run(&["egress", "verify", "--backend", "local"]);
    assert_eq!(verified.code, 1, "{}", verified.out);
    assert!(verified.out.contains("OPEN"), "{}", verified.out);
}

#[test]
fn rules_are_added_shown_and_taken_back() {
    let hermetic = Hermetic::with("gateway: {egress: {allow: [a.test]}}\n");
    let run = |words: &[&str]| hermetic.run(&[&["egress"], words].concat());
    assert_eq!(
        run(&["allow", "b.test:80", "--for", "telegram:dm:42"]).code,
        0
    );
    assert_eq!(run(&["deny", "c.test"]).code, 0);
    insta::assert_snapshot!(run(&["rules"]).out, @r"
    mode allowlist
    allow a.test  (gateway.egress)
    allow b.test:80 for telegram:dm:42  (egress.rules)
    deny  c.test  (egress.rules)
    ");
    assert_eq!(run(&["forget", "c.test"]).code, 0);
    assert_eq!(run(&["forget", "c.test"]).code, 1);
    let record = hermetic.run(&["audit", "show", "--json"]).out;
    for (act, rule) in [
        ("added", "egress: allow b.test:80 for telegram:dm:42"),
        ("added", "egress: deny c.test"),
        ("removed", "egress: deny c.test"),
    ] {
        let noted = |line: &&str| line.contains(act) && line.contains(rule);
        assert_eq!(record.lines().filter(noted).count(), 1, "{record}");
    }
    for wrong in [
        ["allow", "*"],
        ["allow", "https://a.test/"],
        ["deny", "10.0.0.1"],
    ] {
        assert_eq!(run(&wrong).code, 1, "{wrong:?}");
    }
    assert_eq!(
        run(&["rules", "--json"]).json()["rules"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn one_command_reaches_nothing_unless_it_is_told() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("one_command_reaches_nothing_unless_it_is_told") {
        return;
    }
    let tries = "env | grep -ci proxy; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo open";
    let closed = hermetic.run(&["exec", "--", "bash", "-c", tries]);
    assert_eq!(closed.out, "0\n");
    let asks = "exec 3<>/dev/tcp/127.0.0.1/3128; \
        printf 'CONNECT %s:443 HTTP/1.1\\r\\nHost: %s:443\\r\\n\\r\\n' b.test b.test >&3; cat <&3";
    let allowed = hermetic.run(&["exec", "--allow", "a.test", "--", "bash", "-c", asks]);
    let (status, told) = allowed.out.split_once("\r\n").unwrap();
    assert_eq!(status, "HTTP/1.1 403 Forbidden", "{}", allowed.err);
    let remedy = "start `hermetic exec` with --allow b.test\n";
    assert!(told.contains(remedy), "{told}");
    let log = hermetic
        .run(&["egress", "log", "--refused", "--for", "cli"])
        .out;
    assert!(log.contains("cli b.test:443 refused"), "{log}");

    // A sandbox that was made without a way out gets none by a flag.
    let session = |more: &[&str]| {
        let words = [&["exec", "--session", "s"], more, &["--", "true"]].concat();
        hermetic.run(&words)
    };
    assert_eq!(session(&[]).code, 0);
    let later = session(&["--allow", "a.test"]);
    assert_eq!(later.code, 125, "{}", later.err);
    assert!(
        later.err.contains("made without a way out"),
        "{}",
        later.err
    );
    let listed = hermetic.run(&["sandbox", "list", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(hermetic.run(&["sandbox", "destroy", &id]).code, 0);
}

#[test]
fn compose_files_are_what_they_say() {
    let reader = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
    let has_yaml = Command::new("python3")
        .args(["-c", "import yaml"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_yaml {
        eprintln!("SKIP: compose_files_are_what_they_say: python3 has no yaml module");
        return;
    }
    let hermetic = Hermetic::new();
    for (variant, gateway_leaves) in [("tight", false), ("plain", true)] {
        let out = hermetic.path("out").join(variant);
        let into = out.to_str().unwrap();
        let words = [
            "compose",
            "--variant",
            variant,
            "--into",
            into,
            "--squid",
            "--allow",
            "a.test",
        ];
        let written = hermetic.run(&words);
        assert_eq!(written.code, 0, "{}", written.err);
        assert_eq!(hermetic.run(&words).code, 1, "files that are there stay");
        let text = std::fs::File::open(out.join("docker-compose.yml")).unwrap();
        let read = Command::new("python3")
            .args(["-c", reader])
            .stdin(text)
            .output()
            .unwrap();
        assert!(
            read.status.success(),
            "{}",
            String::from_utf8_lossy(&read.stderr)
        );
        let file: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
        assert_eq!(file["networks"]["internal"]["internal"], true);
        let services = &file["services"];
        let networks = services["gateway"]["networks"].as_object().unwrap();
        assert_eq!(networks.contains_key("egress"), gateway_leaves, "{variant}");
        assert_eq!(services["gateway"]["ports"], serde_json::Value::Null);
        // The operator's, and nobody's but the gateway's.
        let password = "HERMETIC_DASHBOARD_PASSWORD";
        let given = &services["gateway"]["environment"][password];
        assert_eq!(*given, format!("${{{password}:-}}"));
        let others = ["dashboard", "egress-proxy"].map(|name| &services[name]["environment"]);
        assert!(others.iter().all(|env| env[password].is_null()));
        assert_eq!(services["egress-proxy"]["ports"][0], "127.0.0.1:9119:9119");
        // Every command in it is one of ours, with flags we know.
        let command = services["egress-proxy"]["command"].as_array().unwrap();
        let mut words: Vec<_> = command.iter().map(|word| word.as_str().unwrap()).collect();
        words.push("--help");
        assert_eq!(hermetic.run(&words).code, 0, "{words:?}");
        let probe = services["gateway"]["healthcheck"]["test"]
            .as_array()
            .unwrap();
        assert_eq!(probe[2], "probe");
    }
}

#[test]
fn a_probe_says_whether_a_server_is_well() {
    let hermetic = Hermetic::new();
    assert_eq!(
        hermetic.run(&["probe", "http://127.0.0.1:1/health"]).code,
        1
    );
}

#[test]
fn a_credential_works_in_a_fresh_home() {
    if !Hermetic::new().has_sandboxes("a_credential_works_in_a_fresh_home") {
        return;
    }
    let credential = "gateway: {egress: {credentials: [{host: a.b, value_env: SECRET}]}}\n";
    let hermetic = Hermetic::with(credential).file(".env", "SECRET=long-enough-for-one\n");
    let ended = hermetic.run(&["exec", "--egress", "--", "true"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
}
