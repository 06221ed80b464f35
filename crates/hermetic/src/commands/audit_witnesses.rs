//! `hermetic audit verify --also …`: records of several gateways, and what each says of the others.

use std::fmt::Write as _;
use std::path::PathBuf;

use hermetic_app as app;
use hermetic_audit::{
    AuditPaths, ChainHead, PublishedHead, VerifiedChain, WitnessReport, check_witnesses, walk_at,
};
use hermetic_config::Config;
use hermetic_gateway::chain_place;
use serde_json::json;

use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

pub(super) fn verify(
    config: &Config,
    also: &[PathBuf],
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let others = also.iter().map(|path| AuditPaths::beside(path));
    let mut chains = Vec::new();
    for places in std::iter::once(app::audit_places(config)).chain(others) {
        if !places.record().exists() && !chains.is_empty() {
            return Err(CommandFailure::new(
                format!("there is no {}", places.record().display()),
                "name the record of another home, with its key and note beside it",
            ));
        }
        chains.push(walk_at(&places)?.finish_for_others()?);
    }
    let report = check_witnesses(&chains);
    if as_json {
        let chains: Vec<_> = chains.iter().map(in_json).collect();
        let holds = report.flaws.is_empty();
        output::print_json(&json!({"holds": holds, "chains": chains, "witnesses": report}))?;
    } else {
        output::print(&in_words(&chains, &report))?;
    }
    holds(&report).map(|()| ExitReason::Ok)
}

/// What this home's gateway told the others of its record, by the rows of the store that they share; nothing where
/// there is no such store.
pub(super) fn told(
    config: &Config,
    places: &AuditPaths,
) -> Result<Option<WitnessReport>, CommandFailure> {
    if matches!(app::StorePlace::of(config)?, app::StorePlace::File(_)) {
        return Ok(None);
    }
    let own = walk_at(places)?.finish_for_others()?;
    let rows = super::on_this_thread(async {
        let store = app::store(config).await?;
        let rows = store.audit_heads().all().await;
        rows.map_err(|error| CommandFailure::caused(&error, error.remedy()))
    })?;
    let place = chain_place(places.record());
    let here = rows.iter().filter(|row| row.place == place);
    let heads = here.filter_map(|row| {
        let published = PublishedHead {
            chain: row.chain.parse().ok()?,
            head: ChainHead {
                seq: row.seq,
                hash: row.hash.parse().ok()?,
            },
            seal: row.seal.parse().ok()?,
        };
        (Some(published.chain) == own.name()).then_some(published)
    });
    let told = VerifiedChain::of_rows(PathBuf::from("audit_heads (in the store)"), heads.collect());
    Ok(Some(check_witnesses(&[own, told])))
}

/// Fails where they saw more than there is.
pub(super) fn holds(report: &WitnessReport) -> Result<(), CommandFailure> {
    match report.flaws.first() {
        None => Ok(()),
        Some(flaw) => Err(CommandFailure::new(
            flaw.to_string(),
            "compare with a copy of that record; what others witnessed of it is in theirs (look for \"witnessed\")",
        )),
    }
}

fn in_json(chain: &VerifiedChain) -> serde_json::Value {
    json!({
        "file": chain.path.display().to_string(),
        "chain": chain.name().map(|name| name.to_string()),
        "report": chain.report,
    })
}

fn in_words(chains: &[VerifiedChain], report: &WitnessReport) -> String {
    let mut text = String::new();
    for chain in chains {
        let _ = write!(
            text,
            "{}: the chain holds: {} records",
            chain.path.display(),
            chain.report.records
        );
        match chain.name() {
            Some(name) => {
                let _ = writeln!(text, " (chain {name})");
            }
            None => {
                text.push_str("; its key is not beside it, so nobody can say which chain it is\n");
            }
        }
    }
    let _ = writeln!(
        text,
        "witnessed: {} heads are where another gateway saw them",
        report.proven
    );
    for flaw in &report.flaws {
        let _ = writeln!(text, "tampered: {flaw}");
    }
    for doubt in &report.doubts {
        let _ = writeln!(text, "not proven: {doubt}");
    }
    text
}
