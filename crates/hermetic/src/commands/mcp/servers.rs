//! `hermetic mcp list` and `check`: the servers whose tools the agent has.

use hermetic_app as app;
use hermetic_config::{McpServerKind, resolve_gateway_backend};
use hermetic_mcp::check_servers;
use serde_json::json;

use super::login::{self, LoginStanding};
use super::{McpArgs, client_sandboxes, stop_on_signal};
use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::{log, output};

struct ServerRow {
    name: String,
    place: String,
    login: Option<LoginStanding>,
}

pub(super) fn list(cli: &CommandLine, json: bool) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let redactor = app::redactor(&config);
    let servers = config.mcp_servers().iter();
    let rows: Vec<ServerRow> = servers
        .map(|server| {
            let place = match &server.kind {
                McpServerKind::Sandbox { words, .. } => {
                    format!("in the sandbox: {}", words.join(" "))
                }
                McpServerKind::Host { words, .. } => {
                    format!("⚠ on this machine, unsealed: {}", words.join(" "))
                }
                McpServerKind::Http { url, .. } => format!("at {url}"),
                McpServerKind::Refused(why) => format!("not used: {why}"),
            };
            ServerRow {
                name: server.name.clone(),
                place: redactor.redact(place).into_inner(),
                login: login::state(&config, server),
            }
        })
        .collect();
    if json {
        let rows = rows.iter().map(|row| match &row.login {
            None => json!({"name": row.name, "place": row.place}),
            Some(login) => json!({"name": row.name, "place": row.place, "login": login.as_json()}),
        });
        output::print_json(&rows.collect::<serde_json::Value>())?;
        return Ok(ExitReason::Ok);
    }
    if rows.is_empty() {
        output::print("no MCP server is configured; write one under mcp_servers\n")?;
    }
    for ServerRow { name, place, login } in rows {
        let login = login.map_or_else(String::new, |login| format!("; {login}"));
        output::print(&format!("{name}: {place}{login}\n"))?;
    }
    Ok(ExitReason::Ok)
}

pub(super) async fn check(
    cli: &CommandLine,
    args: &McpArgs,
    json: bool,
) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let kind = resolve_gateway_backend(&config)?.backend;
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let kit = app::servers_kit(&config, kind, &redactor);
    let sandboxes = client_sandboxes(&config, args, kind, kit)?;
    let checked = check_servers(sandboxes, stop_on_signal()?).await;
    // Afterwards: what was renewed meanwhile is what is said.
    let standing = |name: &str| {
        let server = config
            .mcp_servers()
            .iter()
            .find(|server| server.name == name);
        server.and_then(|server| login::state(&config, server))
    };
    let failed = checked.iter().any(|server| server.tools.is_err());
    if json {
        let rows = checked.iter().map(|server| {
            let mut row = match &server.tools {
                Ok(tools) => json!({"name": server.name, "tools": tools}),
                Err(why) => json!({"name": server.name, "error": why}),
            };
            if let Some(login) = standing(&server.name) {
                row["login"] = login.as_json();
            }
            row
        });
        output::print_json(&rows.collect::<serde_json::Value>())?;
    } else {
        for server in &checked {
            let line = match &server.tools {
                Ok(tools) => format!("✓ {}: {}\n", server.name, tools.join(", ")),
                Err(why) => format!("✗ {}: {why}\n", server.name),
            };
            output::print(&line)?;
            if let Some(login) = standing(&server.name) {
                output::print(&format!("  {login}\n"))?;
            }
        }
    }
    Ok(if failed {
        ExitReason::Failed
    } else {
        ExitReason::Ok
    })
}
