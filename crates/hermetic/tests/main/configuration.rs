//! `hermetic config …`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::hermetic::Hermetic;

#[test]
fn init_writes_a_file_that_check_likes() {
    let hermetic = Hermetic::new();
    let ended = hermetic.run(&["config", "init"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let path = hermetic.path("config.yaml");
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let ended = hermetic.run(&["config", "check"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    insta::assert_snapshot!(ended.out, @r"
    ~/.hermes/config.yaml is right
    chats run on native: gateway.terminal_backend (~/.hermes/config.yaml:7)
    note: no chat platform is configured; set TELEGRAM_BOT_TOKEN in .env for Telegram
    note: no model is configured, so messages are not answered; /sh works. Write model.default
    ");
}

#[test]
fn init_never_overwrites() {
    let hermetic = Hermetic::with("mine: true\n");
    let ended = hermetic.run(&["config", "init"]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.err, @r"
    error: ~/.hermes/config.yaml is there already and was not touched
      = edit it, or move it away first
    ");
    let text = fs::read_to_string(hermetic.path("config.yaml")).unwrap();
    assert_eq!(text, "mine: true\n");
}

#[test]
fn init_does_not_follow_a_link_that_leads_nowhere() {
    let hermetic = Hermetic::new();
    std::os::unix::fs::symlink(hermetic.path("elsewhere"), hermetic.path("config.yaml")).unwrap();
    assert_eq!(hermetic.run(&["config", "init"]).code, 1);
    assert!(!hermetic.path("elsewhere").exists());
}

#[test]
fn init_makes_the_home() {
    let hermetic = Hermetic::new();
    let home = hermetic.path("a/b");
    let ended = hermetic.run(&["--home", home.to_str().unwrap(), "config", "init"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(
        fs::metadata(home).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn check_reports_all_errors_and_ends_with_78() {
    let hermetic = Hermetic::with("gateway:\n  terminal_backend: docer\n  sandbox_lifetime: -1\n");
    let ended = hermetic.run(&["config", "check"]);
    assert_eq!(ended.code, 78);
    assert_eq!(ended.out, "");
    insta::assert_snapshot!(ended.err, @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   terminal_backend: docer
       |                     ^^^^^
      = key: gateway.terminal_backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?

    error: -1 is too small
      --> ~/.hermes/config.yaml:3:21
       |
     3 |   sandbox_lifetime: -1
       |                     ^^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000

    2 errors: mend them and run `hermetic config check`
    ");
}

#[test]
fn check_lists_what_is_not_used() {
    let hermetic =
        Hermetic::with("terminal: {backend: local}\nvoice: {auto: true}\nhooks: {}\nx-mine: 1\n");
    insta::assert_snapshot!(hermetic.run(&["config", "check"]).out, @r"
    Features that this configuration asks for and that are not here:
      voice                                    ~/.hermes/config.yaml:2
        = answers are not spoken

    Other keys that have no effect here:
      hooks                                    ~/.hermes/config.yaml:3
      x-mine                                   ~/.hermes/config.yaml:4

    ~/.hermes/config.yaml is right
    chats run on native: terminal.backend is local (~/.hermes/config.yaml:1), which holds for the command line only
    note: no chat platform is configured; set TELEGRAM_BOT_TOKEN in .env for Telegram
    note: no model is configured, so messages are not answered; /sh works. Write model.default
    ");
}

/// Each is refused by `gateway run` on whatever machine, or by neither.
const REFUSED: [(&str, &str); 19] = [
    (
        "model: {default: m, provider: azure}\n",
        "no endpoint is known",
    ),
    (
        "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nfallback_model: {provider: nobody, model: n}\n",
        "provider nobody",
    ),
    (
        "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\napprovals: {mode: smart}\nauxiliary: {approval: {provider: nobody, model: n}}\n",
        "provider nobody",
    ),
    ("model: {default: m, base_url: nonsense}\n", "base_url"),
    (
        "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nauxiliary: {vision: {provider: nobody, model: n}}\n",
        "provider nobody",
    ),
    (
        "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nauxiliary: {compression: {provider: nobody, model: n}}\n",
        "provider nobody",
    ),
    ("timezone: Mars/Olympus\n", "Mars/Olympus"),
    ("terminal: {native_require: [armour]}\n", "armour"),
    (
        "terminal: {native_mounts: ['/etc:/data:rw']}\n",
        "owns the machine",
    ),
    ("terminal: {native_mounts: ['/root']}\n", "whole home"),
    (
        "gateway: {terminal_backend: docker}\nterminal: {docker_extra_args: [--privileged]}\n",
        "--privileged",
    ),
    (
        "gateway: {terminal_backend: docker}\nterminal: {docker_user: 'a b'}\n",
        "names no user",
    ),
    (
        "gateway: {terminal_backend: docker}\nterminal: {docker_user: node, docker_run_as_host_user: true}\n",
        "both say who runs",
    ),
    (
        "gateway: {terminal_backend: docker}\nterminal: {docker_volumes: ['/a:b']}\n",
        "is no volume",
    ),
    (
        "gateway: {terminal_backend: modal}\nterminal: {modal_mode: managed}\n",
        "managed",
    ),
    (
        "gateway: {terminal_backend: daytona}\n",
        "no key for Daytona",
    ),
    ("gateway: {terminal_backend: ssh}\n", "ssh_host"),
    ("gateway: {egress: {presets: [nope]}}\n", "nope"),
    (
        "terminal: {docker_forward_env: ['A B=x']}\n",
        "variable name",
    ),
];

#[test]
fn what_run_refuses_check_refuses_in_the_same_words() {
    for (config, why) in REFUSED {
        let hermetic = Hermetic::with(config);
        let checked = hermetic.run(&["config", "check"]);
        let ran = hermetic.run(&["gateway", "run"]);
        assert_eq!(checked.code, 78, "{config}{}", checked.out);
        assert_ne!(ran.code, 0, "{config}");
        assert!(checked.err.contains(why), "{config}{}", checked.err);
        let error = checked.err.lines().next().unwrap();
        assert!(
            ran.err.contains(error),
            "{config}{}\n{}",
            checked.err,
            ran.err
        );
        let json = hermetic.run(&["config", "check", "--json"]).json();
        assert_eq!(json["ok"], false, "{config}");
    }
}

#[test]
fn what_check_likes_runs() {
    if !Hermetic::new().has_sandboxes("what_check_likes_runs") {
        return;
    }
    for config in [
        "",
        "model: {default: m, provider: anthropic, base_url: 'http://127.0.0.1:9/v1'}\n",
        "model: {default: claude-opus-4-6, provider: anthropic}\nfallback_model: {provider: gemini, model: gemini-2.5-flash}\n",
        "api_server: {enabled: true, key: a-key-of-some-length}\nterminal: {native_mounts: ['/usr/share:/data']}\n",
        "terminal: {native_mounts: ['/etc:/data'], native_accept_risks: []}\n",
        "auxiliary: {transient_retries: 2, approval: {provider: auto}}\n",
        "model: {default: qwen3, provider: custom, base_url: 'http://127.0.0.1:9/v1'}\napprovals: {mode: smart}\nauxiliary: {approval: {provider: auto, model: ''}, compression: {provider: auto, model: '', timeout: 120}, vision: {provider: auto, model: ''}}\n",
    ] {
        let hermetic = Hermetic::with(config);
        let checked = hermetic.run(&["config", "check"]);
        assert_eq!(checked.code, 0, "{config}{}", checked.err);
        let (_gateway, said) = hermetic.gateway(&[]);
        for note in checked
            .out
            .lines()
            .filter_map(|line| line.strip_prefix("note: "))
        {
            assert!(said.contains(note), "{config}{note}: {said}");
        }
    }
}

#[test]
fn a_platform_that_is_not_spoken_to_is_said() {
    let hermetic = Hermetic::with("api_server: {enabled: true, key: a-key-of-some-length}\n");
    let said = hermetic.run(&["config", "check"]).out;
    assert!(
        said.contains("api_server is configured, but this build does not speak api_server"),
        "{said}"
    );
}

#[test]
fn a_mistyped_home_makes_no_installation() {
    let hermetic = Hermetic::new();
    let slip = hermetic.path("hermse");
    for command in [
        &["status"][..],
        &["gateway", "run"],
        &["sandbox", "list"],
        &["exec", "true"],
    ] {
        let arguments = [&["--home", slip.to_str().unwrap()], command].concat();
        let ended = hermetic.run(&arguments);
        assert_ne!(ended.code, 0, "{command:?}");
        assert!(
            ended.err.contains("there is no folder ~/.hermes/hermse"),
            "{}",
            ended.err
        );
        assert!(!slip.exists(), "{command:?}");
    }
}

#[test]
fn check_speaks_json() {
    let ended = Hermetic::with("terminal: {bakend: docker}\n").run(&["config", "check", "--json"]);
    assert_eq!(ended.code, 78);
    let json = ended.json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["errors"][0]["place"], "~/.hermes/config.yaml:1:12");
    assert_eq!(json["errors"][0]["help"][0], "did you mean `backend`?");

    let ended = Hermetic::with("terminal: {backend: ssh}\n").run(&["config", "check", "--json"]);
    assert_eq!(ended.code, 78);
    assert_eq!(
        ended.json()["errors"][0]["what"],
        "terminal.backend is ssh (~/.hermes/config.yaml:1), and terminal.ssh_host is not written"
    );
}

#[test]
fn show_knows_where_a_value_came_from() {
    let hermetic = Hermetic::with("terminal:\n  timeout: 5\ntelegram: {allowed_users: [7]}\n")
        .file(".env", "TELEGRAM_BOT_TOKEN=hunter2\n")
        .variable("TERMINAL_SSH_HOST", "box");
    let ended = hermetic.run(&["config", "show", "--written"]);
    insta::assert_snapshot!(ended.out, @r"
    terminal.timeout                 = 5  # ~/.hermes/config.yaml:2
    terminal.ssh_host                = box  # the variable TERMINAL_SSH_HOST
    platforms.telegram.token         = [secret]  # TELEGRAM_BOT_TOKEN in ~/.hermes/.env:1
    platforms.telegram.allowed_users = [7]  # ~/.hermes/config.yaml:3
    ");
}

#[test]
fn show_never_prints_a_secret() {
    let hermetic = Hermetic::with(
        "model: {api_key: hunter22}\n\
         terminal: {docker_env: {TOKEN: hunter22}}\n\
         telegram: {token: hunter22, webhook_secret: hunter22, proxy: 'http://me:hunter22@p:1', channel_overrides: {a: hunter22}}\n\
         providers: {x: {api_key: hunter22, extra_headers: {auth: hunter22}, extra_body: {k: hunter22}}}\n\
         fallback_model: [{model: m, api_key: hunter22}]\n\
         auxiliary: {approval: {api_key: hunter22}}\n\
         gateway: {egress: {credentials: [{host: a.b, value_env: SECRET}]}}\n",
    )
    .file(
        ".env",
        "SUDO_PASSWORD=hunter22\nOPENAI_API_KEY=hunter22\nSLACK_APP_TOKEN=hunter22\nSECRET=hunter22\nDAYTONA_API_KEY=hunter22\nDAYTONA_API_URL=http://127.0.0.1:1/api\n",
    );
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "show", "-vv"],
        &["config", "check"],
        &["status"],
        &["status", "--json"],
    ] {
        let ended = hermetic.run(arguments);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(!ended.out.contains("hunter22"), "{}", ended.out);
        assert!(!ended.err.contains("hunter22"), "{}", ended.err);
    }
}

#[test]
fn show_takes_sections() {
    let hermetic = Hermetic::new();
    let ended = hermetic.run(&["config", "show", "approvals"]);
    assert!(ended.out.lines().all(|line| line.starts_with("approvals.")));
    let ended = hermetic.run(&["config", "show", "telegram.reactions"]);
    assert_eq!(
        ended.out,
        "platforms.telegram.reactions = false  # default; no effect yet: progress shows as typing\n"
    );
    let json = hermetic
        .run(&["config", "show", "telegram", "--json"])
        .json();
    let idle = |key: &str| {
        let rows = json.as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        row["no_effect"].clone()
    };
    assert_eq!(
        idle("platforms.telegram.reactions"),
        "progress shows as typing"
    );
    assert!(idle("platforms.telegram.allowed_users").is_null());
    assert_eq!(hermetic.run(&["config", "show", "nonsense"]).code, 1);
}

#[test]
fn path_names_the_files() {
    let hermetic = Hermetic::with("");
    let out = hermetic.run(&["config", "path"]).out;
    // The administrator's file may be there on the machine that runs this.
    let lines: Vec<&str> = out
        .lines()
        .filter(|line| !line.starts_with("managed"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    config   ~/.hermes/config.yaml
    dotenv   ~/.hermes/.env  (not there)
    legacy   ~/.hermes/gateway.json  (not there)
    state    ~/.hermes/hermetic  (not there)
    ");
    let json = hermetic.run(&["config", "path", "--json"]).json();
    assert_eq!(json["config"]["exists"], true);
}

#[test]
fn schema_is_json() {
    let json = Hermetic::new().run(&["config", "schema"]).json();
    assert!(json["properties"]["gateway"]["properties"]["terminal_backend"].is_object());
}
