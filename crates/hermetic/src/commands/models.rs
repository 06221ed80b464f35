//! `hermetic models`: which models the configuration names, where they are, and whether they answer.

use std::fmt::Write as _;

use futures::future::join_all;
use hermetic_agent::{NanoDollars, TokenUsage};
use hermetic_app::{CheckedModel, ConfiguredModel, ModelCatalog, configured_models};
use serde::Serialize;

use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM, printable};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Context and prices come from a table that you can edit: write what --table prints to models.txt in \
your home, and change it there.

Examples:
  hermetic models --check
  hermetic models --table > ~/.hermes/models.txt")]
pub(crate) struct ModelsArgs {
    /// Ask each model one small question, which may cost a fraction of a cent
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the table of contexts and prices that this version came with
    #[arg(long, conflicts_with_all = ["check", "json"])]
    table: bool,
}

/// A model as it is listed. No key is in it.
#[derive(Debug, Serialize)]
struct ModelRow {
    role: String,
    provider: String,
    model: String,
    dialect: &'static str,
    base_url: String,
    key: bool,
    context_length: Option<u32>,
    price: Option<PriceRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckRow>,
}

/// In dollars for a million tokens.
#[derive(Debug, Serialize)]
struct PriceRow {
    input: f64,
    output: f64,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
}

#[derive(Debug, Serialize)]
struct CheckRow {
    ok: bool,
    /// What it said, or why it did not.
    said: String,
    milliseconds: u128,
    usage: TokenUsage,
}

pub(crate) fn run(cli: &CommandLine, args: &ModelsArgs) -> Result<ExitReason, CommandFailure> {
    if args.table {
        output::print(ModelCatalog::embedded_text())?;
        return Ok(ExitReason::Ok);
    }
    let config = load(cli)?;
    let models = configured_models(&config)?;
    let checked = match args.check {
        true => checks(&models)?,
        false => Vec::new(),
    };
    let mut checked = checked.into_iter();
    let rows: Vec<_> = models
        .iter()
        .map(|model| row(model, checked.next()))
        .collect();
    if args.json {
        output::print_json(&rows)?;
    } else {
        output::print(&as_text(&rows))?;
    }
    let failed = |row: &ModelRow| row.check.as_ref().is_some_and(|check| !check.ok);
    match rows.iter().any(failed) {
        true => Ok(ExitReason::Failed),
        false => Ok(ExitReason::Ok),
    }
}

fn checks(models: &[ConfiguredModel]) -> Result<Vec<CheckedModel>, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?;
    let asked = models.iter().map(|model| model.clone().check());
    Ok(runtime.block_on(join_all(asked)))
}

fn row(model: &ConfiguredModel, check: Option<CheckedModel>) -> ModelRow {
    let settings = &model.settings;
    ModelRow {
        role: model.role.name(),
        provider: model.provider.clone(),
        model: settings.model.clone(),
        dialect: settings.dialect.name(),
        base_url: without_password(&settings.base_url),
        key: settings.key.is_some(),
        context_length: model.context_length,
        price: settings.price.map(|price| PriceRow {
            input: price.input.dollars(),
            output: price.output.dollars(),
            cached_input: price.cached_input.map(NanoDollars::dollars),
            cache_write: price.cache_write.map(NanoDollars::dollars),
        }),
        check: check.map(|check| CheckRow {
            ok: check.outcome.is_ok(),
            said: check.outcome.unwrap_or_else(|failure| failure.what),
            milliseconds: check.took.as_millis(),
            usage: check.usage,
        }),
    }
}

/// An address with a name and a password in it is refused where it is used, and not shown here either.
fn without_password(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}"),
        None => address.to_owned(),
    }
}

fn as_text(rows: &[ModelRow]) -> String {
    if rows.is_empty() {
        return "No model is configured. Write model.default into config.yaml and a key into .env.\n"
            .to_owned();
    }
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "{BOLD}{:20}{BOLD:#} {}  {DIM}({}, {}){DIM:#}",
            row.role,
            printable(&row.model),
            printable(&row.provider),
            row.dialect
        );
        let key = if row.key { "a key" } else { "no key" };
        let _ = writeln!(text, "{:20} {}, {key}", "", printable(&row.base_url));
        let _ = writeln!(text, "{:20} {}", "", known(row));
        if let Some(check) = &row.check {
            let _ = writeln!(text, "{:20} {}", "", outcome(check));
        }
    }
    text
}

fn known(row: &ModelRow) -> String {
    let context = match row.context_length {
        Some(tokens) => format!("sees {tokens} tokens"),
        None => "context not known".to_owned(),
    };
    match &row.price {
        Some(price) => format!(
            "{context}; ${} in and ${} out for a million",
            price.input, price.output
        ),
        None => format!("{context}; price not known"),
    }
}

fn outcome(check: &CheckRow) -> String {
    let said = printable(&check.said);
    let seconds = check.milliseconds / 1000;
    let tenths = check.milliseconds % 1000 / 100;
    if !check.ok {
        return format!("FAILED after {seconds}.{tenths} s: {said}");
    }
    let cost = match check.usage.cost {
        Some(cost) => format!(", {cost}"),
        None => String::new(),
    };
    format!(
        "answered in {seconds}.{tenths} s: {said:?} ({} tokens{cost})",
        check.usage.tokens()
    )
}
