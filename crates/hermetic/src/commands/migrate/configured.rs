//! What a Hermes configuration becomes here.

use hermetic_app as app;
use hermetic_config::{
    Config, ConfigInputs, ConfigProblems, EgressMode, McpServerKind, resolve_gateway_backend,
};
use hermetic_types::BackendKind;

use super::finding::MigrationFinding;
use super::finding::MigrationVerdict::{Different, First, Lost, Works};
use super::hermes_home::HermesHome;

/// Variables by which Hermes connects a platform, with its name.
const PLATFORMS: [(&str, &str); 16] = [
    ("BLUEBUBBLES_SERVER_URL", "bluebubbles"),
    ("DINGTALK_CLIENT_ID", "dingtalk"),
    ("EMAIL_ADDRESS", "email"),
    ("FEISHU_APP_ID", "feishu"),
    ("HASS_TOKEN", "homeassistant"),
    ("IRC_SERVER", "irc"),
    ("LINE_CHANNEL_ACCESS_TOKEN", "line"),
    ("MATRIX_HOMESERVER", "matrix"),
    ("MATTERMOST_URL", "mattermost"),
    ("NTFY_TOPIC", "ntfy"),
    ("QQ_APP_ID", "qqbot"),
    ("TEAMS_CLIENT_ID", "teams"),
    ("TWILIO_ACCOUNT_SID", "sms"),
    ("WECOM_BOT_ID", "wecom"),
    ("WEIXIN_TOKEN", "weixin"),
    ("YUANBAO_APP_ID", "yuanbao"),
];

/// Keys of services that nothing here asks: the tool, and what does the same here, if anything does.
const TOOL_KEYS: [(&str, &str, Option<&str>); 6] = [
    ("BROWSERBASE_API_KEY", "browser", None),
    ("BROWSER_USE_API_KEY", "browser", None),
    ("ELEVENLABS_API_KEY", "speech", Some("tts.provider: openai")),
    ("FAL_KEY", "pictures", Some("image_gen.provider: openai")),
    ("FIRECRAWL_API_KEY", "web search", Some(SEARCH)),
    ("PARALLEL_API_KEY", "web search", Some(SEARCH)),
];

const SEARCH: &str = "web.search_backend: searxng, brave-free, tavily or exa";

pub(super) fn findings(
    hermes: &HermesHome,
    inputs: &ConfigInputs,
    loaded: &Result<Config, ConfigProblems>,
) -> Vec<MigrationFinding> {
    let mut findings = Vec::new();
    match loaded {
        Err(problems) => {
            let (count, file) = (problems.count(), inputs.home.config_file());
            findings.push(
                MigrationFinding::new(
                    First,
                    "configuration",
                    format!("{count} of its lines cannot be taken as they are"),
                )
                .remedy(format!(
                    "`hermetic --home {} config check` shows each with its place",
                    file.parent().unwrap_or(&file).display()
                )),
            );
        }
        Ok(config) => {
            findings.extend(understood(config));
            findings.extend(where_commands_run(config));
            findings.extend(people(config));
            findings.extend(approvals(config));
            findings.extend(without_effect(config));
        }
    }
    findings.extend(by_variable(hermes));
    findings
}

fn understood(config: &Config) -> Vec<MigrationFinding> {
    let settings = config.settings().iter();
    let written = settings.filter(|setting| setting.origin().is_written());
    let mut findings = vec![MigrationFinding::new(
        Works,
        "configuration",
        format!("{} written settings are read as they are", written.count()),
    )];
    if let Some(model) = &config.model().name {
        findings.push(MigrationFinding::new(Works, "model", model.clone()));
    }
    for platform in config.platforms().enabled() {
        findings.push(match app::speaks(platform) {
            true => {
                MigrationFinding::new(Works, platform.name, "connected with the account you have")
            }
            false => MigrationFinding::new(Lost, platform.name, "this build does not speak it"),
        });
    }
    findings
}

fn where_commands_run(config: &Config) -> Vec<MigrationFinding> {
    let resolved = match resolve_gateway_backend(config) {
        Ok(resolved) => resolved,
        Err(doubt) => {
            return vec![
                MigrationFinding::new(First, "commands", doubt.to_string()).remedy(doubt.remedy()),
            ];
        }
    };
    let mut findings: Vec<_> = app::refusals(config, &resolved)
        .iter()
        .map(|refusal| {
            MigrationFinding::new(First, "gateway", refusal.to_string()).remedy(refusal.remedy())
        })
        .collect();
    let kind = resolved.backend;
    let before = config.terminal().backend.unwrap_or(BackendKind::Local);
    let what = match before == kind {
        true => format!(
            "each conversation has a sandbox of its own on {kind}; Hermes had one for all of them"
        ),
        false => format!(
            "commands from chats ran on {before} and run on {kind} now, in a sandbox for each \
             conversation"
        ),
    };
    let found = MigrationFinding::new(Different, "commands", what);
    findings.push(match (before, kind) {
        (BackendKind::Local, BackendKind::Local) => {
            MigrationFinding::new(Works, "commands", "run on the host, as you wrote")
        }
        (BackendKind::Local, _) => found.remedy(
            "files of the host are shown inside by terminal.native_mounts; \
             gateway.terminal_backend: local puts chats back on the host",
        ),
        _ => found,
    });
    let egress = config.egress();
    if egress.mode == EgressMode::Allowlist && egress.allow.is_empty() && egress.presets.is_empty()
    {
        findings.push(
            MigrationFinding::new(
                Different,
                "network",
                "sandboxes reach nothing until you allow it; with Hermes they reached everything",
            )
            .remedy(
                "`hermetic egress allow HOST`, or gateway.egress.presets (`hermetic egress presets` \
                 lists them)",
            ),
        );
    }
    findings
}

fn people(config: &Config) -> Vec<MigrationFinding> {
    let platforms = config.platforms();
    let mut findings = Vec::new();
    for platform in platforms.enabled().filter(|one| app::speaks(one)) {
        let listed = &platform.allowed_users;
        if platform.allow_all_users || listed.iter().any(|one| one == "*") {
            let what = format!("{}: everybody may write, as you wrote", platform.name);
            findings.push(MigrationFinding::new(Works, "allowlist", what));
        } else if !listed.is_empty() {
            let what = format!("{}: {} people", platform.name, listed.len());
            findings.push(MigrationFinding::new(Works, "allowlist", what));
        }
    }
    if platforms.allow_all_users {
        let what = "GATEWAY_ALLOW_ALL_USERS: everybody may write, on every platform";
        findings.push(MigrationFinding::new(Works, "allowlist", what));
    } else if !platforms.allowed_users.is_empty() {
        let what = format!("{} people on every platform", platforms.allowed_users.len());
        findings.push(MigrationFinding::new(Works, "allowlist", what));
    }
    findings
}

fn approvals(config: &Config) -> Vec<MigrationFinding> {
    let approvals = config.approvals();
    let mut findings = vec![MigrationFinding::new(
        Different,
        "approvals",
        "only people you listed answer questions, not everybody who may write, and \"always\" holds for one \
         command, not for a kind of command",
    )];
    if !approvals.allow.is_empty() {
        findings.push(
            MigrationFinding::new(
                Different,
                "approvals",
                format!(
                    "command_allowlist ({}) holds patterns of whole commands here; names of kinds, which Hermes \
                     wrote there, allow nothing",
                    approvals.allow.len()
                ),
            )
            .remedy("`hermetic policy explain COMMAND` shows what is asked about"),
        );
    }
    findings
}

/// Keys that nothing here looks at, and keys that are understood and do nothing yet.
fn without_effect(config: &Config) -> Vec<MigrationFinding> {
    let missed = config.unused().iter().filter_map(|key| {
        let missed = key.missed?;
        // These have findings of their own, which name what is in them.
        (!matches!(key.key.as_str(), "memory" | "skills"))
            .then(|| MigrationFinding::new(Lost, &key.key, missed))
    });
    let settings = config.settings().iter();
    let idle = settings.filter_map(|setting| {
        let why = setting.why_without_effect()?;
        Some(MigrationFinding::new(Different, setting.name(), why))
    });
    let mcp = config.mcp_servers().iter().map(|server| {
        let name = format!("MCP server {}", server.name);
        let (kind, what) = match &server.kind {
            McpServerKind::Sandbox { .. } => (
                Different,
                "runs in each conversation's sandbox: what it needs has to be in there, and it reaches \
                 what gateway.egress allows",
            ),
            McpServerKind::Http { login: Some(_), .. } => (
                Different,
                "is reached where gateway.egress allows its host, once somebody logged in: hermetic mcp \
                 login (tokens of Hermes are not taken over)",
            ),
            McpServerKind::Http { .. } => (
                Different,
                "is reached where gateway.egress allows its host",
            ),
            McpServerKind::Host { .. } => (Works, "runs on this machine, unsealed"),
            McpServerKind::Refused(why) => (Lost, why.as_str()),
        };
        MigrationFinding::new(kind, &name, what)
    });
    missed.chain(mcp).chain(idle).collect()
}

/// What only `.env` knows of.
fn by_variable(hermes: &HermesHome) -> Vec<MigrationFinding> {
    let text = hermes.text(".env").unwrap_or_default();
    let is_set = |name: &str| {
        let value = hermetic_config::dotenv_value(&text, name);
        value.is_some_and(|value| !value.is_empty())
    };
    let platforms = PLATFORMS.iter().filter(|(_, platform)| {
        // One that a later version speaks is told of by its section.
        platform.parse::<hermetic_types::Platform>().is_err()
    });
    let platforms = platforms.filter(|(name, _)| is_set(name));
    let platforms = platforms.map(|(name, platform)| {
        MigrationFinding::new(
            Lost,
            platform,
            format!("{name} is set, and this platform is not spoken to"),
        )
    });
    let keys = TOOL_KEYS.iter().filter(|(name, ..)| is_set(name));
    let keys = keys.map(|(name, tool, here)| match here {
        None => MigrationFinding::new(
            Lost,
            tool,
            format!("{name} is set, and there is no such tool here"),
        ),
        Some(here) => MigrationFinding::new(
            Different,
            tool,
            format!("{name} is set, and this provider is not asked here"),
        )
        .remedy(format!("{here}; docs/guides/web.md has the rest")),
    });
    platforms.chain(keys).collect()
}
