//! Where chats run their commands.

use hermetic_config::{
    BackendChoice, MatrixEncryption, SlackIntake, resolve_cli_backend, resolve_gateway_backend,
};
use hermetic_types::{BackendKind, Boundary};

use crate::lab::Lab;

fn backend(config: &str) -> BackendKind {
    resolve_gateway_backend(&Lab::with(config).config())
        .unwrap()
        .backend
}

#[test]
fn matrix_is_encrypted_as_it_is_written() {
    let with = |rest: &str| {
        let text = format!("matrix: {{homeserver: 'https://a.example', access_token: t{rest}}}\n");
        Lab::with(text).config().platforms().matrix.encryption
    };
    assert_eq!(with(""), MatrixEncryption::Off);
    assert_eq!(with(", encryption: true"), MatrixEncryption::Optional);
    let off = with(", encryption: true, e2ee_mode: 'off'");
    assert_eq!(off, MatrixEncryption::Off);
    assert_eq!(with(", e2ee_mode: required"), MatrixEncryption::Required);
}

#[test]
fn a_fresh_install_is_sealed() {
    let resolved = resolve_gateway_backend(&Lab::new().config()).unwrap();
    assert_eq!(resolved.backend, BackendKind::Native);
    assert_eq!(resolved.chosen_by, BackendChoice::Default);
    assert!(resolved.warnings(boundary).is_empty());
}

#[test]
fn local_for_the_command_line_is_not_local_for_chats() {
    let lab = Lab::with("terminal:\n  backend: local\n");
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert_eq!(resolved.backend, BackendKind::Native);
    assert!(resolved.note().contains("terminal.backend is local"));
    assert_eq!(resolve_cli_backend(&lab.config()), Ok(BackendKind::Local));
}

#[test]
fn local_from_the_environment_is_not_local_for_chats_either() {
    let lab = Lab::new().variable("TERMINAL_ENV", "local");
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert_eq!(resolved.backend, BackendKind::Native);
}

#[test]
fn chats_on_the_host_are_spelled_out_and_warned_about() {
    let lab = Lab::with("gateway:\n  terminal_backend: local\n");
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert_eq!(resolved.backend, BackendKind::Local);
    insta::assert_snapshot!(resolved.warnings(boundary).join("\n"), @r"
    Gateway is running with local terminal backend.
      Commands from messaging platforms will execute on this machine.
      Consider using a sandboxed backend: native, docker, daytona, or modal.
      To seal chats again, remove `terminal_backend: local`.
    ");
}

#[test]
fn the_gateway_key_beats_the_terminal_key() {
    let config = "terminal: {backend: docker}\ngateway: {terminal_backend: modal}\n";
    assert_eq!(backend(config), BackendKind::Modal);
}

#[test]
fn a_sealed_terminal_backend_serves_chats_too() {
    for (name, kind) in [
        ("native", BackendKind::Native),
        ("docker", BackendKind::Docker),
        ("singularity", BackendKind::Singularity),
        ("modal", BackendKind::Modal),
        ("daytona", BackendKind::Daytona),
        ("kubernetes", BackendKind::Kubernetes),
    ] {
        assert_eq!(backend(&format!("terminal: {{backend: {name}}}\n")), kind);
    }
}

#[test]
fn ssh_serves_chats_with_a_warning() {
    let lab = Lab::with("terminal: {backend: ssh, ssh_host: box, ssh_user: bot}\n");
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert_eq!(resolved.backend, BackendKind::Ssh);
    assert_eq!(resolved.warnings(boundary).len(), 1);
}

#[test]
fn ssh_without_a_host_or_a_user_is_refused() {
    for (text, doubt) in [
        (
            "terminal: {backend: ssh, ssh_user: bot}",
            "terminal.backend is ssh (FILE:1), and terminal.ssh_host is not written",
        ),
        (
            "gateway: {terminal_backend: ssh}\nterminal: {ssh_host: box}",
            "gateway.terminal_backend is ssh (FILE:1), and terminal.ssh_user is not written",
        ),
        (
            "platforms: {signal: {terminal_backend: ssh}}",
            "platforms.signal.terminal_backend is ssh (FILE:1), and terminal.ssh_host is not written",
        ),
    ] {
        let lab = Lab::with(text);
        let error = resolve_gateway_backend(&lab.config())
            .unwrap_err()
            .to_string();
        let file = lab.path("config.yaml").display().to_string();
        assert_eq!(error.replace(&file, "FILE"), doubt);
    }
}

#[test]
fn an_empty_backend_is_as_if_it_were_not_written() {
    for config in [
        "gateway:\n  terminal_backend: ''\n",
        "gateway:\n  terminal_backend:\n",
        "gateway:\n",
    ] {
        assert_eq!(backend(config), BackendKind::Native, "{config}");
    }
}

#[test]
fn the_image_is_the_gateways_then_the_backends_then_dockers() {
    let image = |config: &str| {
        resolve_gateway_backend(&Lab::with(config).config())
            .unwrap()
            .image
    };
    let docker = "nikolaik/python-nodejs:python3.11-nodejs20";
    assert_eq!(image("").as_deref(), None);
    assert_eq!(
        image("gateway: {terminal_backend: docker}").as_deref(),
        Some(docker)
    );
    assert_eq!(
        image("gateway: {terminal_backend: docker, sandbox_image: 'python:3.11'}").as_deref(),
        Some("python:3.11")
    );
    assert_eq!(
        image("terminal: {backend: singularity}").as_deref(),
        Some(format!("docker://{docker}").as_str())
    );
    assert_eq!(
        image("terminal: {backend: daytona, daytona_image: d, docker_image: x}").as_deref(),
        Some("d")
    );
    assert_eq!(
        image("terminal: {backend: modal, docker_image: x}").as_deref(),
        Some("x")
    );
}

#[test]
fn a_platform_may_go_elsewhere_and_local_there_is_warned_about() {
    let lab = Lab::with(
        "gateway: {terminal_backend: docker}\n\
         platforms: {telegram: {terminal_backend: local}, slack: {terminal_backend: docker}}\n",
    );
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert_eq!(
        resolved.platforms,
        [("telegram", BackendKind::Local)].into()
    );
    assert!(resolved.warnings(boundary)[0].starts_with("Platform telegram is running with local"));
}

#[test]
fn the_command_line_is_sealed_where_nothing_is_written() {
    assert_eq!(
        resolve_cli_backend(&Lab::new().config()),
        Ok(BackendKind::Native)
    );
}

#[test]
fn a_host_where_nobody_is_asked_is_warned_about() {
    let lab = Lab::with("gateway: {terminal_backend: local}\napprovals: {mode: off}\n");
    let resolved = resolve_gateway_backend(&lab.config()).unwrap();
    assert!(resolved.warnings(boundary)[1].starts_with("approvals.mode is off"));
    let lab = Lab::with("gateway: {terminal_backend: docker}\napprovals: {mode: off}\n");
    assert_eq!(
        resolve_gateway_backend(&lab.config())
            .unwrap()
            .warnings(boundary),
        [""; 0]
    );
}

#[test]
fn an_image_that_nothing_uses_is_warned_about() {
    let lab = Lab::with("gateway: {sandbox_image: 'python:3.11'}\n");
    assert_eq!(
        resolve_gateway_backend(&lab.config())
            .unwrap()
            .warnings(boundary),
        ["gateway.sandbox_image is not used: native has no image."]
    );
}

#[test]
fn bots_with_names_stand_beside_the_one_without() {
    let lab = Lab::with(
        "platforms:\n  telegram:\n    token: own\n    proxy: http://proxy:1\n    accounts:\n      \
         work: {token: '${WORK}', webhook_url: https://x/work, webhook_secret: s, webhook_port: 9}\n",
    )
    .variable("WORK", "theirs");
    let config = lab.config();
    let telegram = &config.platforms().telegram;
    let names: Vec<_> = telegram.accounts.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["default", "work"]);
    let work = &telegram.accounts[&"work".parse().unwrap()];
    assert_eq!(work.token.expose(), "theirs");
    assert_eq!(work.proxy.as_deref(), Some("http://proxy:1"));
    let webhook = work.webhook.as_ref().unwrap();
    assert_eq!((webhook.host.as_str(), webhook.port), ("127.0.0.1", 9));
    // What a bot does not say is as for the first, its secret included.
    let lab = Lab::with(
        "telegram: {token: own, webhook_secret: shared, accounts: {work: {token: theirs, \
         webhook_url: https://x/work}}}\n",
    );
    let config = lab.config();
    let work = &config.platforms().telegram.accounts[&"work".parse().unwrap()];
    assert_eq!(work.webhook.as_ref().unwrap().secret.expose(), "shared");
    // A bot with a name alone is enough.
    let lab = Lab::with("telegram:\n  accounts:\n    work: {token: theirs}\n");
    assert!(lab.config().platforms().telegram.platform.enabled);
}

#[test]
fn one_bot_is_not_two_accounts() {
    let lab = Lab::with("telegram: {token: own, accounts: {work: {token: own}}}\n");
    let errors = lab.errors();
    assert!(
        errors.contains("the bot work has the token of another"),
        "{errors}"
    );
    assert!(!errors.contains("own"), "the token is not shown: {errors}");
}

/// As the backends say it of themselves.
fn boundary(kind: BackendKind) -> Boundary {
    match kind {
        BackendKind::Local | BackendKind::Ssh => Boundary::Judged,
        _ => Boundary::Sealed,
    }
}

#[test]
fn each_workspace_of_slack_has_an_app_of_its_own() {
    let lab = Lab::with(
        "slack:\n  token: xoxb-own\n  app_token: xapp-own\n  base_url: http://stand-in\n  accounts:\n    \
         club: {token: xoxb-club, app_token: xapp-club}\n    \
         shop: {token: xoxb-shop, events_url: 'https://bot.example/shop', signing_secret: s, events_port: 3001}\n",
    );
    let config = lab.config();
    let slack = &config.platforms().slack;
    assert!(slack.platform.enabled);
    let names: Vec<_> = slack.accounts.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["club", "default", "shop"]);
    for (name, account) in &slack.accounts {
        assert_eq!(account.base_url.as_deref(), Some("http://stand-in"));
        let by_requests = matches!(account.intake, SlackIntake::EventsApi { port: 3001, .. });
        assert_eq!(by_requests, name.as_str() == "shop");
    }
    for (accounts, wrong) in [
        (
            "{token: xoxb-2, app_token: xapp-own}",
            "the bot two has a token of another",
        ),
        (
            "{token: xoxb-own, app_token: xapp-2}",
            "the bot two has a token of another",
        ),
        (
            "{token: xoxb-2}",
            "the bot two has neither app_token nor events_url",
        ),
        (
            "{token: xoxb-2, events_url: 'https://a.example'}",
            "without a signing secret",
        ),
    ] {
        let text = format!(
            "slack: {{token: xoxb-own, app_token: xapp-own, accounts: {{two: {accounts}}}}}\n"
        );
        let errors = Lab::with(text).errors();
        assert!(errors.contains(wrong), "{errors}");
    }
    // By requests alone no app token is needed.
    let lab = Lab::new().dotenv(
        "SLACK_BOT_TOKEN=xoxb-own\nSLACK_EVENTS_URL=https://bot.example/slack\nSLACK_SIGNING_SECRET=s\n",
    );
    assert_eq!(lab.config().platforms().slack.accounts.len(), 1);
    assert!(lab.config().platforms().slack.platform.enabled);
}

#[test]
fn a_proxy_is_that_of_the_file_else_of_the_environment_and_none_where_that_is_written() {
    let proxies = |lab: &Lab| {
        let config = lab.config();
        let shown = |proxy: Option<&hermetic_upstream::UpstreamProxy>| {
            proxy.map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        let own = shown(config.gateway().proxy.as_ref());
        (own, shown(config.egress().upstream_proxy.as_ref()))
    };
    let pair = |own: &str, sandboxes: &str| (own.to_owned(), sandboxes.to_owned());
    assert_eq!(proxies(&Lab::new()), pair("-", "-"));
    let company = || {
        Lab::new()
            .variable("HTTPS_PROXY", "http://me:hunter22@company:3128")
            .variable("HTTP_PROXY", "http://other:1")
            .variable("NO_PROXY", "git.example,10.0.0.0/8")
    };
    let lab = company();
    let both = "http://company:3128";
    assert_eq!(proxies(&lab), pair(both, both));
    let config = lab.config();
    for proxy in [&config.gateway().proxy, &config.egress().upstream_proxy] {
        let proxy = proxy.as_ref().unwrap();
        assert!(proxy.serves("api.example", 443) && !proxy.serves("git.example", 443));
    }
    assert!(!format!("{config:?}").contains("hunter22"), "{config:?}");
    let file = |text: &str| company().file("config.yaml", text);
    assert_eq!(proxies(&file("gateway: {proxy: none}\n")), pair("-", "-"));
    let own = file("gateway: {proxy: 'http://ours:1', egress: {upstream_proxy: none}}\n");
    assert_eq!(proxies(&own), pair("http://ours:1", "-"));
    let other = file("gateway: {egress: {upstream_proxy: 'http://theirs:2'}}\n");
    assert_eq!(proxies(&other), pair(both, "http://theirs:2"));

    let wrong = Lab::with("gateway: {proxy: 'socks5://u:hunter22@x:1'}\n").errors();
    assert!(
        wrong.contains("socks5://") && !wrong.contains("hunter22"),
        "{wrong}"
    );
    // What is set for other programs stops nobody.
    let socks = Lab::new().variable("ALL_PROXY", "socks5://u:hunter22@x:1");
    assert_eq!(proxies(&socks), pair("-", "-"));
    let told = socks.warnings();
    assert!(told.contains("ALL_PROXY is passed over"), "{told}");
    assert!(!told.contains("hunter22"), "{told}");
}
