//! `hermetic backends`: where commands could run, what is missing elsewhere, and what to do.

use std::fmt::Write as _;

use futures::future::join_all;
use hermetic_app::{self as app, BackendCaller};
use hermetic_config::{Config, resolve_cli_backend, resolve_gateway_backend};
use hermetic_types::{BackendKind, Boundary, InstallationId};
use serde::Serialize;

use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each backend is really tried: where no download is needed, a sandbox is made and removed.

Example:
  hermetic backends --json")]
pub(crate) struct BackendsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct BackendRow {
    backend: BackendKind,
    boundary: Boundary,
    available: bool,
    /// Why it is not, or what is weaker than it could be.
    notes: Vec<BackendNote>,
    /// Who runs there as things are configured.
    used_by: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct BackendNote {
    what: String,
    remedy: Option<String>,
}

pub(crate) fn run(cli: &CommandLine, args: &BackendsArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let installation = app::installation(config.home())?;
    let rows = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(join_all(
            BackendKind::ALL.map(|kind| look(&config, &installation, kind)),
        ));
    if args.json {
        output::print_json(&rows)?;
    } else {
        output::print(&as_text(&rows))?;
    }
    Ok(ExitReason::Ok)
}

async fn look(config: &Config, installation: &InstallationId, kind: BackendKind) -> BackendRow {
    let (available, notes) = match app::backend(config, installation, kind, BackendCaller::Onlooker)
    {
        Err(failure) => (false, vec![BackendNote::of(&failure)]),
        Ok(backend) => {
            let readiness = backend.readiness().await;
            match readiness.missing() {
                Some(layer) => {
                    let note = BackendNote {
                        what: format!("{}: {}", layer.name, layer.detail),
                        remedy: layer.remedy.clone(),
                    };
                    (false, vec![note])
                }
                None => (true, Vec::new()),
            }
        }
    };
    BackendRow {
        backend: kind,
        boundary: app::boundary(kind),
        available,
        notes,
        used_by: used_by(config, kind),
    }
}

fn used_by(config: &Config, kind: BackendKind) -> Vec<&'static str> {
    let mut users = Vec::new();
    if let Ok(chats) = resolve_gateway_backend(config) {
        if chats.backend == kind {
            users.push("chats");
        }
        let platforms = chats.platforms.iter().filter(|(_, own)| **own == kind);
        users.extend(platforms.map(|(platform, _)| *platform));
    }
    if resolve_cli_backend(config).is_ok_and(|own| own == kind) {
        users.push("command line");
    }
    users
}

impl BackendNote {
    fn of(failure: &app::AppFailure) -> Self {
        Self {
            what: failure.to_string(),
            remedy: Some(failure.remedy().to_owned()),
        }
    }
}

fn as_text(rows: &[BackendRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let state = match (row.available, row.boundary) {
            (true, Boundary::Sealed) => "available",
            (true, Boundary::Judged) => "available, not sealed",
            (false, _) => "not available",
        };
        let users = match row.used_by.as_slice() {
            [] => String::new(),
            users => format!("  {DIM}({}){DIM:#}", users.join(", ")),
        };
        let _ = writeln!(
            text,
            "{BOLD}{:12}{BOLD:#} {state}{users}",
            row.backend.name()
        );
        for note in &row.notes {
            let _ = writeln!(text, "{:12} {}", "", note.what);
            if let Some(remedy) = &note.remedy {
                let _ = writeln!(text, "{:12} {DIM}= {remedy}{DIM:#}", "");
            }
        }
    }
    text
}
