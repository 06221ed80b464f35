//! What the configuration and the backends tell, with or without a gateway that runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hermetic_agent::NanoDollars;
use hermetic_config::{
    Config, ConfigInputs, DayBudget, EffectiveSetting, ResolvedBackend, SettingValue,
};
use hermetic_dashboard::{
    BudgetRow, LayerRow, ListedPerson, SealedPlace, SettingRow, SettingsReport,
};
use hermetic_egress::{Egress, RuleMode};
use hermetic_policy::{VerdictExplanation, explain};
use hermetic_sandbox::{Backend, LayerState};
use hermetic_types::{BackendKind, Boundary, Command, ConversationKey};

use crate::{access, boundary, terminal};

/// What the configuration and the backends tell.
#[derive(Debug)]
pub(crate) struct ConfiguredView {
    pub(crate) config: Config,
    pub(crate) resolved: ResolvedBackend,
    pub(crate) backends: Vec<Arc<dyn Backend>>,
    pub(crate) gate: Option<Arc<Egress>>,
}

impl ConfiguredView {
    /// Each backend that conversations run on, with the platforms that have it for themselves.
    pub(crate) fn kinds(&self) -> BTreeMap<&'static str, (BackendKind, Vec<String>)> {
        let usual = self.resolved.backend;
        let mut kinds = BTreeMap::from([(usual.name(), (usual, Vec::new()))]);
        let enabled = self.config.platforms().enabled();
        for platform in enabled {
            if let Some(own) = self.resolved.platforms.get(platform.name) {
                let (_, platforms) = kinds.entry(own.name()).or_insert((*own, Vec::new()));
                platforms.push(platform.name.to_owned());
            }
        }
        kinds
    }

    pub(super) async fn place(&self, kind: BackendKind, platforms: Vec<String>) -> SealedPlace {
        let backend = self.backends.iter().find(|open| open.kind() == kind);
        let is_known = backend.is_some();
        let layers = match backend {
            Some(backend) => backend.readiness().await.layers,
            None => Vec::new(),
        };
        let rows = layers.into_iter().map(|layer| LayerRow {
            name: layer.name.to_owned(),
            state: match layer.state {
                LayerState::Active => "active",
                LayerState::Weaker => "weaker",
                LayerState::Missing => "missing",
                LayerState::Required => "required",
            }
            .to_owned(),
            detail: layer.detail,
            remedy: layer.remedy,
        });
        SealedPlace {
            backend: kind.to_string(),
            is_sealed: boundary(kind) == Boundary::Sealed,
            is_known,
            platforms,
            layers: rows.collect(),
        }
    }

    /// What sandboxes of everybody's can reach, in words.
    pub(super) fn reach(&self) -> String {
        if boundary(self.resolved.backend) == Boundary::Judged {
            return "not filtered: commands have the network of the machine".to_owned();
        }
        let Some(gate) = &self.gate else {
            return "closed: sandboxes reach nothing".to_owned();
        };
        let reach = gate.reach(&ConversationKey::new("hermetic:dashboard"));
        let asks = match self.config.egress().ask {
            true => "; people are asked about others",
            false => "",
        };
        match (reach.mode, reach.allowed.len()) {
            (RuleMode::Open, _) => "open: public hosts, through the proxy".to_owned(),
            (RuleMode::Closed, _) => "closed: egress.rules cannot be understood".to_owned(),
            (RuleMode::Allowlist, 0) => format!("an allowlist that is empty{asks}"),
            (RuleMode::Allowlist, 1) => format!("an allowlist of one host{asks}"),
            (RuleMode::Allowlist, count) => format!("an allowlist of {count} hosts{asks}"),
        }
    }

    fn backend_of(&self, conversation: &ConversationKey) -> BackendKind {
        let platform = conversation.platform();
        let own = platform.and_then(|platform| self.resolved.platforms.get(platform.name()));
        own.copied().unwrap_or(self.resolved.backend)
    }

    pub(crate) fn settings(&self) -> SettingsReport {
        let used = self.config.settings();
        let (now, unreadable) = match self.settings_now() {
            Ok(now) => (Some(now), None),
            Err(why) => (None, Some(why)),
        };
        let now: HashMap<&str, &EffectiveSetting> = now
            .iter()
            .flat_map(|config| config.settings())
            .map(|setting| (setting.name(), setting))
            .collect();
        let rows = used.iter().map(|setting| {
            let value = setting.value();
            let next = now.get(setting.name());
            let differs = next.filter(|next| is_other(value, next.value()));
            SettingRow {
                key: setting.name().to_owned(),
                value: value.map(SettingValue::shown),
                origin: setting.origin().to_string(),
                is_written: setting.origin().is_written(),
                about: setting.about().to_owned(),
                changed_to: differs.map(|next| {
                    let shown = next.value().map(SettingValue::shown);
                    shown.unwrap_or_else(|| "not set".to_owned())
                }),
                no_effect: setting.why_without_effect().map(str::to_owned),
            }
        });
        SettingsReport {
            settings: rows.collect(),
            unreadable,
        }
    }

    pub(crate) fn listed_people(&self) -> Vec<ListedPerson> {
        let config = &self.config;
        let mut people: Vec<ListedPerson> = Vec::new();
        for (account, user) in access::approvers(config) {
            people.push(ListedPerson {
                platform: account.to_string(),
                user: user.to_string(),
                role: "operator".to_owned(),
            });
        }
        for section in config.platforms().enabled() {
            for user in &section.allowed_users {
                let is_there = |one: &ListedPerson| {
                    one.user == *user && one.platform.split('/').next() == Some(section.name)
                };
                if !people.iter().any(is_there) {
                    people.push(ListedPerson {
                        platform: section.name.to_owned(),
                        user: user.clone(),
                        role: "user".to_owned(),
                    });
                }
            }
        }
        people
    }

    pub(crate) fn budgets(&self) -> Vec<BudgetRow> {
        let budgets = self.config.budgets();
        let row = |scope: &str, budget: DayBudget| BudgetRow {
            scope: scope.to_owned(),
            nanodollars: budget
                .dollars
                .and_then(NanoDollars::from_dollars)
                .map(|amount| i64::try_from(amount.get()).unwrap_or(i64::MAX)),
            tokens: budget.tokens,
            tool_seconds: budget.tool_seconds,
        };
        vec![
            row("all", budgets.all),
            row("person", budgets.person),
            row("conversation", budgets.conversation),
        ]
    }

    pub(crate) fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>> {
        let config = &self.config;
        let context = terminal::context(config, self.backend_of(conversation));
        let policy = terminal::policy(config);
        let explained = explain(&policy, &Command::script(command), &context);
        Some(Box::new(explained))
    }

    /// As the files and variables are at this moment.
    fn settings_now(&self) -> Result<Config, String> {
        let inputs = ConfigInputs::of_process(Some(self.config.home().root()));
        let inputs = inputs.map_err(|error| error.to_string())?;
        hermetic_config::load(&inputs).map_err(|problems| problems.to_string())
    }
}

/// Whether two values differ, also secrets, which are compared and never shown.
fn is_other(one: Option<&SettingValue>, other: Option<&SettingValue>) -> bool {
    match (one, other) {
        (Some(SettingValue::Secret(one)), Some(SettingValue::Secret(other))) => one != other,
        (one, other) => one.map(SettingValue::shown) != other.map(SettingValue::shown),
    }
}
