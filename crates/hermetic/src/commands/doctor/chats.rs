//! What the chat platforms say about our accounts.

use std::fmt::Write as _;

use hermetic_app as app;
use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};
use hermetic_config::Config;
use hermetic_types::{AccountId, Platform};
use serde_json::json;

use crate::failure::CommandFailure;
use crate::output::{BOLD, DIM, printable};

/// One account and what came of asking for it.
#[derive(Debug)]
pub(crate) struct CheckedAccount {
    account: AccountId,
    checked: Result<AccountCheck, CheckError>,
}

pub(crate) async fn check(config: &Config) -> Result<Vec<CheckedAccount>, CommandFailure> {
    let checked = app::check_accounts(config).await?;
    let accounts = checked.into_iter();
    Ok(accounts
        .map(|(account, checked)| CheckedAccount { account, checked })
        .collect())
}

impl CheckedAccount {
    pub(crate) fn platform(&self) -> Platform {
        self.account.platform()
    }

    /// Whether messages come and go.
    pub(crate) fn works(&self) -> bool {
        self.checked.is_ok()
    }

    pub(crate) fn was_rejected(&self) -> bool {
        matches!(self.checked, Err(CheckError::Unauthorized { .. }))
    }

    pub(crate) fn as_text(&self) -> String {
        let mut text = String::new();
        let Self { account, checked } = self;
        let account = account.to_string();
        match checked {
            Ok(check) => {
                let name = check.name.as_deref().unwrap_or("can be used");
                let mark = match check.shortcomings.is_empty() {
                    true => "works  ",
                    false => "weaker ",
                };
                let _ = writeln!(text, "  {mark} {account}  {}", printable(name));
                for AccountShortcoming { problem, remedy } in &check.shortcomings {
                    let (problem, remedy) = (printable(problem), printable(remedy));
                    let _ = writeln!(
                        text,
                        "          {problem}\n          {DIM}= {remedy}{DIM:#}"
                    );
                }
            }
            Err(error) => {
                let why = printable(&in_full(error));
                let remedy = remedy(error);
                let _ = writeln!(
                    text,
                    "  FAILS   {account}  {why}\n          {DIM}= {remedy}{DIM:#}"
                );
            }
        }
        text
    }

    pub(crate) fn as_json(&self) -> serde_json::Value {
        let shortcoming =
            |one: &AccountShortcoming| json!({ "problem": one.problem, "remedy": one.remedy });
        match &self.checked {
            Ok(check) => json!({
                "account": self.account,
                "works": true,
                "name": check.name,
                "shortcomings": check.shortcomings.iter().map(shortcoming).collect::<Vec<_>>(),
            }),
            Err(error) => json!({
                "account": self.account,
                "works": false,
                "why": in_full(error),
                "remedy": remedy(error),
            }),
        }
    }
}

/// All of them, below a heading.
pub(super) fn as_text(accounts: &[CheckedAccount]) -> String {
    let rows: String = accounts.iter().map(CheckedAccount::as_text).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("\n{BOLD}chats{BOLD:#}\n{rows}"),
    }
}

fn remedy(error: &CheckError) -> &'static str {
    match error {
        CheckError::Unauthorized { .. } => {
            "get a new token from the platform; `hermetic gateway setup` tries it before it is written"
        }
        CheckError::Refused { .. } => "the platform's guide under docs/guides says what it needs",
        CheckError::Unreachable(_) => {
            "look at the network, base_url and proxy; a gateway goes on trying by itself"
        }
    }
}

fn in_full(error: &CheckError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
