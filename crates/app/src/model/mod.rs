//! The models of a configuration: which there are, where they are, and what they cost.

mod catalog;
mod check;
mod configured;
mod endpoint;
mod vendor;

use std::sync::Arc;

use hermetic_agent::endpoint::ModelEndpoint;
use hermetic_agent::{
    HistoryBudget, LanguageModel, ModelRetries, NoModel, RetryingModel, TurnBounds,
};
use hermetic_config::{Config, KnownProvider};
use hermetic_types::SharedClock;

pub use catalog::{CatalogEntry, ModelCatalog};
pub use check::{CheckFailure, CheckedModel};
pub use configured::{ConfiguredModel, ModelRole, configured_models};

use crate::AppFailure;
use configured::{auxiliary_model, main_models};

/// The model that answers, with its fallbacks behind it.
pub(crate) fn model(
    config: &Config,
    clock: &SharedClock,
) -> Result<Arc<dyn LanguageModel>, AppFailure> {
    let mut models = main_models(config)?
        .into_iter()
        .map(|model| connected(model, clock))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let Some(first) = models.next() else {
        return Ok(Arc::new(NoModel));
    };
    Ok(Arc::new(RetryingModel::new(
        first,
        models,
        ModelRetries::default(),
    )))
}

/// The model of a task of its own, or the one that answers. `None` where there is neither.
pub(crate) fn auxiliary(
    config: &Config,
    task: &str,
    clock: &SharedClock,
) -> Result<Option<Arc<dyn LanguageModel>>, AppFailure> {
    auxiliary_model(config, task)?
        .map(|model| connected(model, clock))
        .transpose()
}

/// The names of providers whose address is known, with the variable that holds the key.
pub fn known_providers() -> impl Iterator<Item = (&'static str, &'static str)> {
    KnownProvider::all()
        .iter()
        .filter(|known| known.base_url.is_some())
        .filter_map(|known| Some((known.name, *known.keys.first()?)))
}

/// What `/model` says: which model answers, and which are tried when it fails.
pub(crate) fn told(config: &Config, name: &str) -> String {
    let models = main_models(config).unwrap_or_default();
    let mut lines: Vec<_> = models
        .iter()
        .map(|model| {
            format!(
                "{}: {} ({}, {})",
                model.role.name(),
                model.settings.model,
                model.provider,
                model.settings.dialect.name()
            )
        })
        .collect();
    if lines.is_empty() {
        lines.push(format!("answers: {name}"));
    }
    lines.push("The operator chooses it, as model.default in config.yaml.".to_owned());
    lines.join("\n")
}

pub(crate) fn limits(config: &Config) -> TurnBounds {
    let mut limits = TurnBounds {
        max_turns: config.agent().max_turns,
        ..TurnBounds::default()
    };
    let main = main_models(config).unwrap_or_default();
    if let Some(tokens) = main.first().and_then(|model| model.context_length) {
        limits.budget = HistoryBudget::for_context(usize::try_from(tokens).unwrap_or(usize::MAX));
    }
    limits
}

impl ConfiguredModel {
    /// The model itself.
    pub fn connect(self, clock: SharedClock) -> Result<ModelEndpoint, AppFailure> {
        ModelEndpoint::new(self.settings, clock).map_err(|error| {
            AppFailure::caused(&error, "look at model.base_url and the provider's key")
        })
    }
}

fn connected(
    model: ConfiguredModel,
    clock: &SharedClock,
) -> Result<Arc<dyn LanguageModel>, AppFailure> {
    Ok(Arc::new(model.connect(Arc::clone(clock))?))
}
