//! The way out of sandboxes, from the configuration.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use hermetic_acp::AgentProgram;
use hermetic_approvals::{EgressRecord, HostApprovals};
use hermetic_config::{
    Config, CredentialSource, EgressConfig as EgressSettings, EgressCredential, EgressMode,
    UpstreamNames,
};
use hermetic_dashboard::EgressFeed;
use hermetic_egress::{
    AllowInstructions, CertificateAuthority, CertificateBundle, ConversationScope, Credential,
    CredentialGrant, Egress, EgressJournal, EgressLimits, EgressMetrics, EgressRecorder,
    EgressRules, InvalidRules, LogRecorder, NameCheck, Proxy, RateLimitedRecorder, RuleBook,
    RuleMode, RulePreset, RuleText, RulesText, SystemResolver, TrustRoots, UpstreamRoute,
    trust_bundle,
};
use hermetic_types::{Secret, SharedClock, SystemClock};
use hermetic_upstream::UpstreamProxy;
use rustix::process::{Resource, getrlimit};

use crate::AppFailure;

/// Where sandboxes find the certificates they have to believe, on every backend.
const BUNDLE_INSIDE: &str = "/tmp/.hermetic/ca.pem";

/// What `allow_private` means. Loopback and metadata services are not in it: those take a rule that
/// names them.
const PRIVATE: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/// Decisions of one conversation that go into the audit record in a minute.
const MOST_A_MINUTE: u32 = 600;

const MOST_SECRET_BYTES: u64 = 64 << 10;

/// Who is asked about hosts, and where what was decided is written down.
#[derive(Debug)]
pub struct EgressApprovers {
    pub(crate) hosts: HostApprovals,
    pub(crate) record: EgressRecord,
    /// Where connections are counted.
    pub(crate) metrics: EgressMetrics,
    /// Who shows connections to people.
    pub(crate) feed: Option<EgressFeed>,
}

/// What the configuration lets out; nothing where its mode is `closed`.
pub fn gate(
    config: &Config,
    people: Option<EgressApprovers>,
) -> Result<Option<Arc<Egress>>, AppFailure> {
    timed_gate(config, people, &[], &SystemClock::shared())
}

/// The same by the clock of whoever builds on it, with what these agents of others may reach.
pub(super) fn timed_gate(
    config: &Config,
    people: Option<EgressApprovers>,
    agents: &[AgentProgram],
    clock: &SharedClock,
) -> Result<Option<Arc<Egress>>, AppFailure> {
    if config.egress().mode == EgressMode::Closed {
        return Ok(None);
    }
    let mut charter = charter(config)?;
    super::agents::add_rules(agents, &mut charter)?;
    let gate = build(config, charter, AllowInstructions::ByRule, people, clock)?;
    Ok(Some(Arc::new(gate.reading(rule_book(config)))))
}

/// Whether the rules and credentials of the file can be understood.
pub(super) fn check(config: &Config) -> Result<(), AppFailure> {
    if config.egress().mode == EgressMode::Closed {
        return Ok(());
    }
    upstream(config.egress())?;
    let nobody = Proxy::new(
        EgressLimits::default(),
        Arc::new(SystemResolver::default()),
        Arc::new(LogRecorder),
    );
    Egress::new(nobody, charter(config)?)
        .map(drop)
        .map_err(|error| invalid_rules(&error))
}

fn charter(config: &Config) -> Result<EgressRules, AppFailure> {
    Ok(EgressRules {
        rules: rules_text(config),
        more: additions(config.egress())?,
        credentials: issued(config.egress())?,
        ..EgressRules::default()
    })
}

/// A gate for these rules of one command alone: neither credentials nor what people added.
pub fn gate_for(config: &Config, rules: RulesText) -> Result<Arc<Egress>, AppFailure> {
    let charter = EgressRules {
        rules,
        ..EgressRules::default()
    };
    for name in &charter.rules.presets {
        RulePreset::named(name).map_err(|error| {
            AppFailure::caused(&error, "`hermetic egress presets` shows what each allows")
        })?;
    }
    let allowing = AllowInstructions::ByFlagOf("hermetic exec");
    build(config, charter, allowing, None, &SystemClock::shared()).map(Arc::new)
}

/// The rules for everybody, as they are written in the file.
pub fn rules_text(config: &Config) -> RulesText {
    let egress = config.egress();
    let mut text = text(&egress.allow, &egress.deny, &egress.presets);
    text.mode = Some(mode(egress.mode));
    if egress.allow_private {
        for rule in &mut text.allow {
            if let RuleText::Line(host) = rule
                && !host.contains(" in ")
            {
                *host = format!("{host} in {}", PRIVATE.join(","));
            }
        }
    }
    text
}

pub fn rule_book(config: &Config) -> RuleBook {
    RuleBook::at(config.home().state().join("egress.rules"))
}

pub fn journal(config: &Config) -> EgressJournal {
    timed_journal(config, &SystemClock::shared())
}

pub(super) fn timed_journal(config: &Config, clock: &SharedClock) -> EgressJournal {
    let path = config.home().state().join("egress.jsonl");
    EgressJournal::at(path, Arc::clone(clock))
}

/// This installation's own, where a host has a credential; made at its first use.
pub(super) fn authority(
    config: &Config,
    clock: &SharedClock,
) -> Result<Option<CertificateAuthority>, AppFailure> {
    let egress = config.egress();
    let has_credentials =
        || !egress.credentials.is_empty() || !super::agents::secrets(config).is_empty();
    if egress.mode == EgressMode::Closed || !has_credentials() {
        return Ok(None);
    }
    open_authority(config, clock)
}

fn open_authority(
    config: &Config,
    clock: &SharedClock,
) -> Result<Option<CertificateAuthority>, AppFailure> {
    CertificateAuthority::open(&config.home().state(), Arc::clone(clock))
        .map(Some)
        .map_err(|error| AppFailure::caused(&error, "mend that file, or remove it for a new one"))
}

/// Every value that must never be shown.
pub(super) fn secrets(egress: &EgressSettings) -> Vec<Secret> {
    let values = egress.credentials.iter();
    let values = values.filter_map(|entry| value(entry).ok());
    let proxy = egress
        .upstream_proxy
        .iter()
        .flat_map(UpstreamProxy::secrets);
    values.chain(proxy).collect()
}

fn build(
    config: &Config,
    charter: EgressRules,
    allowing: AllowInstructions,
    people: Option<EgressApprovers>,
    clock: &SharedClock,
) -> Result<Egress, AppFailure> {
    let egress = config.egress();
    let limits = EgressLimits {
        everybody: connections_for(getrlimit(Resource::Nofile).current),
        budget: egress.budget_bytes,
        ask: egress.ask_timeout,
        ..EgressLimits::default()
    };
    let records = Arc::new(recorders(config, people.as_ref(), clock));
    let mut proxy =
        Proxy::new(limits, Arc::new(SystemResolver::default()), records).advising(allowing);
    if let Some(route) = upstream(egress)? {
        proxy = proxy.leaving_through(route);
    }
    if let Some(people) = people.filter(|_| egress.ask) {
        proxy = proxy.asking(Arc::new(people.hosts));
    }
    let mut bundle = None;
    let authority = match charter.credentials.is_empty() || egress.mode == EgressMode::Closed {
        true => None,
        false => open_authority(config, clock)?,
    };
    if let Some(authority) = authority {
        bundle = Some(CertificateBundle {
            path: BUNDLE_INSIDE.to_owned(),
            pem: trust_bundle(&authority),
        });
        proxy = proxy
            .intercepting(Arc::new(authority), &TrustRoots::System)
            .map_err(|error| AppFailure::caused(&error, "install the ca-certificates package"))?;
    }
    let by_flag = allowing != AllowInstructions::ByRule;
    let gate = Egress::new(proxy, charter).map_err(|error| match by_flag {
        true => AppFailure::new(
            error.to_string(),
            "mend --allow: a host, host:port or *.suffix",
        ),
        false => invalid_rules(&error),
    })?;
    Ok(match bundle {
        Some(bundle) => gate.trusting(bundle),
        None => gate,
    })
}

/// Everybody who is told of a connection.
fn recorders(
    config: &Config,
    people: Option<&EgressApprovers>,
    clock: &SharedClock,
) -> Vec<Arc<dyn EgressRecorder>> {
    let mut records: Vec<Arc<dyn EgressRecorder>> = vec![
        Arc::new(LogRecorder),
        Arc::new(timed_journal(config, clock)),
    ];
    if let Some(people) = people {
        // Kept for ever, so a sandbox must not fill it.
        let record = Arc::new(people.record.clone());
        records.push(Arc::new(RateLimitedRecorder::new(record, MOST_A_MINUTE)));
        records.push(Arc::new(people.metrics.clone()));
        if let Some(feed) = &people.feed {
            records.push(Arc::new(feed.clone()));
        }
    }
    records
}

/// The way through a company's proxy, where there is one.
pub(crate) fn upstream(egress: &EgressSettings) -> Result<Option<UpstreamRoute>, AppFailure> {
    let Some(proxy) = egress.upstream_proxy.clone() else {
        return Ok(None);
    };
    let names = match egress.upstream_names {
        UpstreamNames::Checked => NameCheck::Checked,
        UpstreamNames::Pinned => NameCheck::Pinned,
        UpstreamNames::Proxy => NameCheck::ByProxy,
    };
    UpstreamRoute::new(proxy, names).map(Some).map_err(|error| {
        let remedy = "write gateway.egress.upstream_proxy: http://host:port, or `none`";
        AppFailure::caused(&error, remedy).during("egress")
    })
}

fn invalid_rules(error: &InvalidRules) -> AppFailure {
    AppFailure::caused(error, "mend gateway.egress and run `hermetic config check`")
        .during("egress rules")
}

/// Two files each, and as many are left for everything else.
fn connections_for(files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok());
    files.map_or(usize::MAX, |files| files / 4)
}

fn additions(egress: &EgressSettings) -> Result<Vec<(ConversationScope, RulesText)>, AppFailure> {
    let additions = egress.additions.iter();
    additions
        .map(|addition| {
            let mut text = text(&addition.allow, &addition.deny, &addition.presets);
            text.mode = addition.mode.map(mode);
            Ok((scope("additions", &addition.whom)?, text))
        })
        .collect()
}

fn issued(egress: &EgressSettings) -> Result<Vec<CredentialGrant>, AppFailure> {
    egress.credentials.iter().map(issue).collect()
}

fn issue(entry: &EgressCredential) -> Result<CredentialGrant, AppFailure> {
    let word = entry.placeholder_env.as_deref().unwrap_or(&entry.host);
    let placeholder = format!("hermetic-placeholder-{}", word.to_ascii_lowercase());
    let credential = Credential::new(
        &entry.host,
        &entry.header,
        &entry.scheme,
        value(entry)?,
        placeholder,
    );
    Ok(CredentialGrant {
        credential: credential
            .and_then(|credential| credential.limited_to(&entry.paths))
            .map_err(|error| AppFailure::caused(&error, "mend gateway.egress.credentials"))?,
        scope: entry
            .whose
            .as_deref()
            .map(|whose| scope("credentials", whose))
            .transpose()?,
        variable: entry.placeholder_env.clone(),
        agent: None,
    })
}

fn value(entry: &EgressCredential) -> Result<Secret, AppFailure> {
    match &entry.source {
        CredentialSource::Value(value) => Ok(value.clone()),
        CredentialSource::File(path) => read_secret(path),
    }
}

fn read_secret(path: &Path) -> Result<Secret, AppFailure> {
    let failed = |error| AppFailure::file("read the credential in", path, &error);
    let found = fs::metadata(path).map_err(failed)?;
    if found.mode() & 0o077 != 0 {
        return Err(AppFailure::new(
            format!("others on this machine can read {}", path.display()),
            format!("chmod 600 {}", path.display()),
        ));
    }
    if found.len() > MOST_SECRET_BYTES {
        return Err(AppFailure::new(
            format!("{} is too large for a credential", path.display()),
            "it holds the value and nothing else",
        ));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Ok(Secret::new(text.trim()))
}

fn scope(key: &str, text: &str) -> Result<ConversationScope, AppFailure> {
    text.parse()
        .map_err(|error: hermetic_egress::InvalidScope| {
            AppFailure::new(
                format!("gateway.egress.{key}: {error}"),
                "write `for:` with a platform or the start of a conversation's key",
            )
        })
}

fn text(allow: &[String], deny: &[String], presets: &[String]) -> RulesText {
    RulesText {
        deny: deny.iter().map(|host| host.as_str().into()).collect(),
        presets: presets.to_vec(),
        ..RulesText::allowing(allow.iter().cloned())
    }
}

fn mode(mode: EgressMode) -> RuleMode {
    match mode {
        EgressMode::Allowlist => RuleMode::Allowlist,
        EgressMode::Open => RuleMode::Open,
        EgressMode::Closed => RuleMode::Closed,
    }
}
