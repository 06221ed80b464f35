//! `hermetic egress allow|deny|forget|rules|squid`: what may leave, as people write it.

use std::fmt::Write as _;

use hermetic_app as app;
use hermetic_audit::{AuditEvent, RuleChange};
use hermetic_config::{Config, EgressMode};
use hermetic_egress::deploy::squid_allowlist;
use hermetic_egress::{
    ConversationScope, RuleEffect, RulePreset, RuleText, RulesText, WrittenRule,
};
use hermetic_types::{Clock as _, SystemClock};
use serde::Serialize;
use tracing::warn;

use super::super::load;
use crate::cli::CommandLine;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD};
use crate::ownership::refuse_root_for_another;
use crate::{by_hand, log};

pub(super) const HELP: &str = "\
The rule goes into hermetic/egress.rules in the home folder, one line for each, to be read and edited.

Examples:
  hermetic egress allow api.example.com
  hermetic egress allow '*.example.com:8443'
  hermetic egress allow tcp://github.com:22
  hermetic egress allow 'registry.lan in 10.2.0.0/16'
  hermetic egress allow pypi.org --for telegram:dm:42";

#[derive(Debug, clap::Args)]
pub(super) struct RuleChangeArgs {
    /// `host`, `host:port`, `*.suffix`, `tcp://host:port`
    host: String,
    /// Apply it only to these conversations: a platform, or the start of a conversation's key, as in telegram:dm:42
    #[arg(long = "for", value_name = "WHOM")]
    whom: Option<ConversationScope>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RuleListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn allow(cli: &CommandLine, change: &RuleChangeArgs) -> Result<(), CommandFailure> {
    add(cli, RuleEffect::Allow, change)
}

pub(super) fn deny(cli: &CommandLine, change: &RuleChangeArgs) -> Result<(), CommandFailure> {
    add(cli, RuleEffect::Deny, change)
}

fn add(cli: &CommandLine, list: RuleEffect, change: &RuleChangeArgs) -> Result<(), CommandFailure> {
    let config = load(cli)?;
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    let rule = WrittenRule::new(list, &change.host, change.whom.clone()).map_err(|error| {
        CommandFailure::new(error.to_string(), "see `hermetic egress allow --help`")
    })?;
    note_change(&config, RuleChange::Added, &rule.to_string())?;
    let new = app::rule_book(&config).add(&rule)?;
    output::print(&format!(
        "{}{rule}\n",
        if new { "" } else { "already there: " }
    ))
}

pub(super) fn forget(cli: &CommandLine, change: &RuleChangeArgs) -> Result<(), CommandFailure> {
    let config = load(cli)?;
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    let book = app::rule_book(&config);
    let mut gone = book.read()?;
    gone.retain(|rule| rule.rule == change.host && rule.scope == change.whom);
    // Where something is both allowed and denied, the book forgets the denial alone.
    if gone.iter().any(|rule| rule.list == RuleEffect::Deny) {
        gone.retain(|rule| rule.list == RuleEffect::Deny);
    }
    if let Some(rule) = gone.first() {
        note_change(&config, RuleChange::Removed, &rule.to_string())?;
    }
    if book.forget(&change.host, change.whom.as_ref())? {
        return output::print("forgotten\n");
    }
    Err(CommandFailure::new(
        format!("no rule for {} in {}", change.host, book.path().display()),
        "`hermetic egress rules` shows what is written where",
    ))
}

/// Writes the change into the record, before it is made: a rule that nobody can account for is not written.
pub(in crate::commands) fn note_change(
    config: &Config,
    act: RuleChange,
    rule: &str,
) -> Result<(), CommandFailure> {
    // The folder is made with the installation's name.
    app::installation(config.home())?;
    let redactor = app::redactor(config);
    log::hide(&redactor);
    let event = AuditEvent::Rule {
        act,
        rule: redactor.redact(format!("egress: {rule}")).into(),
        by: redactor.redact(by_hand::who()).into(),
    };
    app::audit(config)?.append(&event, SystemClock.now())?;
    Ok(())
}

/// One rule of all that count.
#[derive(Debug, Serialize)]
struct RuleRow {
    verb: &'static str,
    rule: String,
    /// Everybody where absent.
    #[serde(rename = "for")]
    whom: Option<String>,
    written: String,
}

pub(super) fn list(cli: &CommandLine, list: &RuleListArgs) -> Result<(), CommandFailure> {
    let config = load(cli)?;
    let rows = rows(&config)?;
    if list.json {
        return output::print_json(&serde_json::json!({
            "mode": config.egress().mode.name(),
            "rules": rows,
        }));
    }
    let mut text = format!("{BOLD}mode{BOLD:#} {}\n", config.egress().mode.name());
    for row in &rows {
        let whom = row.whom.as_ref().map(|whom| format!(" for {whom}"));
        let _ = writeln!(
            text,
            "{:5} {}{}  ({})",
            row.verb,
            row.rule,
            whom.unwrap_or_default(),
            row.written
        );
    }
    output::print(&text)
}

fn rows(config: &Config) -> Result<Vec<RuleRow>, CommandFailure> {
    let mut rows = Vec::new();
    let egress = config.egress();
    gather(&app::rules_text(config), None, "gateway.egress", &mut rows)?;
    for addition in &egress.additions {
        let text = RulesText {
            deny: addition
                .deny
                .iter()
                .map(|host| host.as_str().into())
                .collect(),
            presets: addition.presets.clone(),
            ..RulesText::allowing(addition.allow.iter().cloned())
        };
        let whom = Some(addition.whom.as_str());
        gather(&text, whom, "gateway.egress.additions", &mut rows)?;
    }
    let book = app::rule_book(config);
    for rule in book.read()? {
        rows.push(RuleRow {
            verb: verb(rule.list),
            rule: rule.rule,
            whom: rule.scope.map(|scope| scope.to_string()),
            written: "egress.rules".to_owned(),
        });
    }
    Ok(rows)
}

fn gather(
    text: &RulesText,
    whom: Option<&str>,
    written: &str,
    rows: &mut Vec<RuleRow>,
) -> Result<(), CommandFailure> {
    let mut push = |list, rule: String, written: String| {
        rows.push(RuleRow {
            verb: verb(list),
            rule,
            whom: whom.map(str::to_owned),
            written,
        });
    };
    for (list, rules) in [
        (RuleEffect::Allow, &text.allow),
        (RuleEffect::Deny, &text.deny),
    ] {
        for rule in rules {
            if let RuleText::Line(rule) = rule {
                push(list, rule.clone(), written.to_owned());
            }
        }
    }
    for name in &text.presets {
        let preset = RulePreset::named(name)
            .map_err(|error| CommandFailure::new(error.to_string(), "mend gateway.egress"))?;
        for rule in preset.lines() {
            push(
                RuleEffect::Allow,
                rule.to_owned(),
                format!("{written}, preset {name}"),
            );
        }
    }
    Ok(())
}

fn verb(list: RuleEffect) -> &'static str {
    match list {
        RuleEffect::Allow => "allow",
        RuleEffect::Deny => "deny",
    }
}

pub(super) fn squid(cli: &CommandLine) -> Result<(), CommandFailure> {
    let config = load(cli)?;
    let (rules, left_out) = for_squid(&config)?;
    for note in &left_out {
        warn!("⚠ not in this list: {note}");
    }
    let text = squid_allowlist(&rules, &left_out).map_err(|error| {
        CommandFailure::caused(&error, "`hermetic egress serve` keeps what Squid cannot")
    })?;
    output::print(&text)
}

/// The rules of everybody, and what a proxy that knows no conversations cannot keep. Whatever is denied to
/// some is denied to all, and what is allowed to some to nobody: the list may be stricter than the rules,
/// never laxer.
fn for_squid(config: &Config) -> Result<(RulesText, Vec<String>), CommandFailure> {
    let mut rules = app::rules_text(config);
    let mut left_out = vec![
        "that a tunnel's TLS name is the one that was asked for, and that its bytes are TLS"
            .to_owned(),
    ];
    let egress = config.egress();
    for addition in &egress.additions {
        let whom = &addition.whom;
        for rule in addition.allow.iter().chain(&addition.presets) {
            left_out.push(format!("allow {rule} for {whom}, whom Squid does not know"));
        }
        for rule in &addition.deny {
            left_out.push(format!(
                "that deny {rule} is for {whom} only: here it is for all"
            ));
            rules.deny.push(rule.as_str().into());
        }
        if let Some(mode) = addition.mode {
            let mode = match mode {
                EgressMode::Allowlist => "allowlist",
                EgressMode::Open => "open",
                EgressMode::Closed => "closed",
            };
            left_out.push(format!("mode {mode} for {whom}, whom Squid does not know"));
        }
    }
    for written in app::rule_book(config).read()? {
        match (&written.scope, written.list) {
            (None, _) => rules = rules.and(&written.as_text()),
            (Some(whom), RuleEffect::Allow) => {
                let rule = &written.rule;
                left_out.push(format!("allow {rule} for {whom}, whom Squid does not know"));
            }
            (Some(whom), RuleEffect::Deny) => {
                let rule = &written.rule;
                left_out.push(format!(
                    "that deny {rule} is for {whom} only: here it is for all"
                ));
                rules = rules.and(&written.as_text());
            }
        }
    }
    if egress.ask {
        left_out.push("that a person is asked about unknown hosts: they are refused".to_owned());
    }
    if let Some(bytes) = egress.budget_bytes {
        left_out.push(format!("the budget of {bytes} bytes for each conversation"));
    }
    for credential in &egress.credentials {
        let host = &credential.host;
        left_out.push(format!("the credential for {host}: it is not put in"));
    }
    Ok((rules, left_out))
}
