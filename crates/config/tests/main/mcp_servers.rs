//! `mcp_servers`, as Hermes writes them.

use std::time::Duration;

use hermetic_config::McpServerKind;

use crate::lab::Lab;

const SERVERS: &str = "
mcp_servers:
  files:
    command: npx
    args: [-y, '@modelcontextprotocol/server-filesystem', /workspace]
    env: {LOG_LEVEL: debug}
    timeout: 30
    tools: {include: [read, write], resources: false}
  tracker:
    url: https://mcp.example.org/mcp
    headers: {Authorization: 'Bearer ${TRACKER}'}
    connect_timeout: 5
    tools: {exclude: delete}
  off: {command: x, enabled: false}
  outside: {command: /opt/tool, run_on: host, env: {API_KEY: hunter2-hunter2}}
";

#[test]
fn servers_as_hermes_writes_them() {
    let lab = Lab::with(SERVERS).variable("TRACKER", "token-of-the-tracker");
    let config = lab.config();
    let servers = config.mcp_servers();
    let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["files", "outside", "tracker"]);
    let McpServerKind::Sandbox { words, env } = &servers[0].kind else {
        panic!("{:?}", servers[0]);
    };
    assert_eq!(words[0], "npx");
    assert_eq!(words.last().unwrap(), "/workspace");
    assert_eq!(env["LOG_LEVEL"], "debug");
    assert_eq!(servers[0].timeout, Duration::from_secs(30));
    assert_eq!(servers[0].connect_timeout, Duration::from_secs(60));
    assert_eq!(
        servers[0].include.as_deref(),
        Some(&["read".to_owned(), "write".to_owned()][..])
    );
    let McpServerKind::Host { env, .. } = &servers[1].kind else {
        panic!("{:?}", servers[1]);
    };
    assert_eq!(env["API_KEY"].expose(), "hunter2-hunter2");
    let McpServerKind::Http { url, headers, .. } = &servers[2].kind else {
        panic!("{:?}", servers[2]);
    };
    assert_eq!(url, "https://mcp.example.org/mcp");
    assert_eq!(
        headers["Authorization"].expose(),
        "Bearer token-of-the-tracker"
    );
    assert_eq!(servers[2].timeout, Duration::from_secs(120));
    assert_eq!(servers[2].exclude, ["delete"]);
    let warnings: Vec<_> = config
        .warnings()
        .iter()
        .map(|warning| warning.what())
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("`outside` runs on this machine"),
        "{warnings:?}"
    );
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_secret_keeps_a_server_from_the_sandbox() {
    let credential = "
gateway:
  egress:
    credentials: [{host: api.example.org, value_env: THE_TOKEN, placeholder_env: API_TOKEN}]
";
    let server = |more: &str| {
        format!("mcp_servers: {{s: {{command: x, env: {{API_TOKEN: t0p-s3cret-value}}{more}}}}}\n")
    };
    let kind = |text: String| {
        let lab = Lab::with(text).variable("THE_TOKEN", "t0p-s3cret-value");
        let config = lab.config();
        config.mcp_servers()[0].kind.clone()
    };
    let McpServerKind::Refused(why) = kind(server("")) else {
        panic!("it is used");
    };
    assert!(
        why.contains("API_TOKEN looks like a secret") && why.contains("expose_env"),
        "{why}"
    );
    assert!(!why.contains("s3cret"));
    let McpServerKind::Sandbox { env, .. } = kind(server(", expose_env: [API_TOKEN]")) else {
        panic!("it is refused");
    };
    assert_eq!(env["API_TOKEN"], "t0p-s3cret-value");
    let McpServerKind::Sandbox { env, .. } = kind(server("") + credential) else {
        panic!("it is refused");
    };
    assert!(
        env.is_empty(),
        "the placeholder is in the sandbox's own environment"
    );
}

#[test]
fn what_cannot_be_used_is_named_and_keeps_nothing_from_starting() {
    for (entry, expected) in [
        ("{}", "either `command:`"),
        ("{command: x, url: 'http://y'}", "either `command:`"),
        ("{url: 'http://y', auth: oauth}", "needs an https://"),
        ("{command: x, auth: oauth}", "with a `url:`"),
        (
            "{url: 'https://y', auth: oauth, oauth: {clientid: x}}",
            "`oauth: clientid` is not known",
        ),
        (
            "{url: 'https://y', auth: oauth, oauth: {client_secret: x}}",
            "needs a `client_id`",
        ),
        (
            "{url: 'https://y', auth: oauth, oauth: {redirect_port: 0}}",
            "number of a port",
        ),
        (
            "{url: 'https://y', auth: oauth, oauth: {redirect_host: evil.test}}",
            "127.0.0.1 or localhost",
        ),
        (
            "{url: 'https://y', auth: oauth, oauth: {redirect_uri: 'http://evil.test/'}}",
            "https://",
        ),
        ("{url: 'http://y', transport: sse}", "SSE"),
    ] {
        let config = Lab::with(format!("mcp_servers: {{s: {entry}}}\n")).config();
        let McpServerKind::Refused(why) = &config.mcp_servers()[0].kind else {
            panic!("{entry} is used");
        };
        assert!(why.contains(expected), "{entry}: {why}");
        assert!(
            config.warnings()[0].what().contains("`s` is not used"),
            "{entry}"
        );
    }
}

#[test]
fn a_login_is_read_as_hermes_writes_it() {
    let entry = "{url: 'https://y/mcp', auth: oauth, oauth: {client_id: us, client_secret: t0p-s3cret, \
                 scope: 'a b', redirect_port: 8123, timeout: 60, user_agent: x}}";
    let config = Lab::with(format!("mcp_servers: {{s: {entry}}}\n")).config();
    let server = &config.mcp_servers()[0];
    let McpServerKind::Http {
        login: Some(login), ..
    } = &server.kind
    else {
        panic!("{:?}", server.kind);
    };
    assert_eq!(login.client_id.as_deref(), Some("us"));
    assert_eq!(login.scope.as_deref(), Some("a b"));
    assert_eq!(
        (login.redirect_port, login.timeout.as_secs()),
        (Some(8123), 60)
    );
    assert!(
        server
            .secrets
            .iter()
            .any(|secret| secret.expose() == "t0p-s3cret")
    );
    assert!(!format!("{server:?}").contains("t0p-s3cret"));
    assert!(server.resources && server.prompts);
    let entry = "{command: x, tools: {resources: false, prompts: 'false'}}";
    let config = Lab::with(format!("mcp_servers: {{s: {entry}}}\n")).config();
    let server = &config.mcp_servers()[0];
    assert!(!server.resources && !server.prompts);
}

#[test]
fn secrets_by_other_names_and_in_arguments_are_seen() {
    let server = |entry: &str| {
        let config = Lab::with(format!("mcp_servers: {{s: {{command: x, {entry}}}}}\n")).config();
        config.mcp_servers()[0].clone()
    };
    for entry in [
        "env: {DB_PASS: hunter2-hunter2}",
        "env: {DB_PWD: hunter2-hunter2}",
        "env: {GITLAB_PAT: hunter2-hunter2}",
        "env: {SESSION_COOKIE: hunter2-hunter2}",
        "env: {DATABASE_URL: hunter2-hunter2}",
        "env: {MONGO_URI: hunter2-hunter2}",
        "env: {CONNECTION_STRING: hunter2-hunter2}",
        "env: {PLACE: 'postgres://me:hunter2-hunter2@db.test/x'}",
        "args: ['postgres://me:hunter2-hunter2@db.test/x']",
        "args: [--api-key=hunter2-hunter2]",
        "args: [--api-key, hunter2-hunter2]",
        "args: [run, -e, API_TOKEN=hunter2-hunter2]",
        "args: [--header, 'Authorization: Bearer hunter2-hunter2']",
        "args: ['--header=X-Api-Key: hunter2-hunter2']",
    ] {
        let server = server(entry);
        let McpServerKind::Refused(why) = &server.kind else {
            panic!("{entry} is used");
        };
        assert!(why.contains("could read it"), "{entry}: {why}");
        assert!(!why.contains("hunter2"), "{entry}: {why}");
        let known = server.secrets.iter().map(|secret| secret.expose());
        assert!(
            known.clone().any(|secret| secret == "hunter2-hunter2"),
            "{entry}"
        );
    }
    for entry in [
        "env: {PWD: /workspace, PATHS: /a, NODE_ENV: production, COMPASS: north, HOST_URL: 'http://a.test:80/@b'}",
        "args: [--key-file=/workspace/k, --token-limit=5, --port, '80', 'http://a.test:80/x@y', a:b, C:/d]",
        "args: [-c, 'exec x --api-key=\"$API_KEY\"', 'postgres://me:$PASSWORD@db.test']",
    ] {
        let server = server(entry);
        assert!(
            matches!(server.kind, McpServerKind::Sandbox { .. }),
            "{entry}: {:?}",
            server.kind
        );
        assert!(server.secrets.is_empty(), "{entry}");
    }
    let spelled =
        server("env: {PLACE: 'postgres://me:hunter2-hunter2@db.test/x'}, expose_env: [PLACE]");
    assert!(matches!(spelled.kind, McpServerKind::Sandbox { .. }));
    let host = server("args: [--api-key=hunter2-hunter2], run_on: host");
    assert!(matches!(host.kind, McpServerKind::Host { .. }));
    assert_eq!(host.secrets[0].expose(), "hunter2-hunter2");
}
