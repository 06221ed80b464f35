//! The models of a configuration: which there are, where they are, and what they cost.

mod catalog;
mod check;
mod configured;
mod endpoint;
mod vendor;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermetic_agent::endpoint::ModelEndpoint;
use hermetic_agent::{
    Agent, CompactionSettings, LanguageModel, ModelRetries, NoModel, RetryingModel, TurnBounds,
};
use hermetic_config::{Config, KnownProvider, ModelRef};
use hermetic_redact::Redactor;
use hermetic_types::SharedClock;

pub use catalog::{CatalogEntry, ModelCatalog};
pub use check::{CheckFailure, CheckedModel};
pub use configured::{ConfiguredModel, ModelRole, configured_models};

use crate::AppFailure;
use configured::{APPROVAL, COMPRESSION, VISION, auxiliary_model, main_models};

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

/// The model that judges commands: one of its own, or the one that answers. `None` where there is neither.
pub(crate) fn reviewing(
    config: &Config,
    clock: &SharedClock,
) -> Result<Option<Arc<dyn LanguageModel>>, AppFailure> {
    auxiliary_model(config, APPROVAL)?
        .map(|model| connected(model, clock))
        .transpose()
}

/// The model that looks at pictures in the place of the one that answers. `None` where none is named: that
/// one is shown them itself.
pub(crate) fn vision(
    config: &Config,
    clock: &SharedClock,
) -> Result<Option<Arc<dyn LanguageModel>>, AppFailure> {
    let own = config.model().auxiliary.get(VISION);
    match own.is_some_and(ModelRef::names_a_model) {
        true => auxiliary_model(config, VISION)?
            .map(|model| connected(model, clock))
            .transpose(),
        false => Ok(None),
    }
}

/// What keeps the models of this configuration from being asked, each in its part: the one that answers with
/// its fallbacks, the one that summarises, the one that looks at pictures.
pub(crate) fn refusals(config: &Config, clock: &SharedClock) -> Vec<AppFailure> {
    let parts = [
        model(config, clock).err(),
        compaction(config, clock).err(),
        vision(config, clock).err(),
    ];
    parts.into_iter().flatten().collect()
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
    lines.push(
        "The operator names them in config.yaml. With /model NAME somebody who may approve has a fallback \
         answer here."
            .to_owned(),
    );
    lines.join("\n")
}

/// Whoever takes turns with this model, within the bounds of the configuration.
pub(crate) fn agent(
    config: &Config,
    model: Arc<dyn LanguageModel>,
    redactor: &Redactor,
    clock: &SharedClock,
) -> Result<Agent, AppFailure> {
    let agent = Agent::new(model, limits(config), redactor.clone());
    Ok(agent.summarising(compaction(config, clock)?))
}

/// The fallbacks as models that may answer a conversation by themselves, if somebody chooses one.
pub(crate) fn others(
    config: &Config,
    usual: &Agent,
    clock: &SharedClock,
) -> Result<BTreeMap<String, Agent>, AppFailure> {
    let mut others = BTreeMap::new();
    for model in main_models(config)?.into_iter().skip(1) {
        let name = model.settings.model.clone();
        if name == usual.model_name() || others.contains_key(&name) {
            continue;
        }
        let window = model.context_length.map(|tokens| tokens as usize);
        // Without fallbacks: who chose a model by name is told when it fails, and not answered by
        // another.
        let patient = RetryingModel::new(connected(model, clock)?, [], ModelRetries::default());
        others.insert(name, usual.with_model(Arc::new(patient), window));
    }
    Ok(others)
}

fn limits(config: &Config) -> TurnBounds {
    let limits = TurnBounds {
        max_turns: config.agent().max_turns,
        ..TurnBounds::default()
    };
    let main = main_models(config).unwrap_or_default();
    match main.first().and_then(|model| model.context_length) {
        Some(tokens) => limits.with_window(tokens as usize),
        None => limits,
    }
}

/// How long conversations are summarised, and by whom.
fn compaction(config: &Config, clock: &SharedClock) -> Result<CompactionSettings, AppFailure> {
    let wanted = config.agent().compression;
    // The schema bounds both to less than one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its range was looked at when the file was read"
    )]
    let percent = |part: f64| (part * 100.0).round().clamp(0.0, 100.0) as u8;
    let own = config.model().auxiliary.get(COMPRESSION);
    let own = match own.is_some_and(|own| !own.is_empty()) {
        true => auxiliary_model(config, COMPRESSION)?,
        // The one that answers, which has fallbacks.
        false => None,
    };
    let own = own.map(|model| {
        let window = model
            .context_length
            .map_or(USUAL_WINDOW, |tokens| tokens as usize);
        Ok::<_, AppFailure>((connected(model, clock)?, window))
    });
    Ok(CompactionSettings {
        threshold_percent: if wanted.enabled {
            percent(wanted.threshold)
        } else {
            0
        },
        target_percent: percent(wanted.target_ratio),
        protect_last: wanted.protect_last_n,
        model: own.transpose()?,
    })
}

/// The window of a model of which nobody says it. Small: what is too long for it is refused as a whole.
const USUAL_WINDOW: usize = 64_000;

impl ConfiguredModel {
    /// The model itself.
    pub fn connect(self, clock: SharedClock) -> Result<ModelEndpoint, AppFailure> {
        ModelEndpoint::new(self.settings, clock).map_err(|error| {
            AppFailure::caused(&error, "look at model.base_url and the provider's key").of_client()
        })
    }
}

fn connected(
    model: ConfiguredModel,
    clock: &SharedClock,
) -> Result<Arc<dyn LanguageModel>, AppFailure> {
    Ok(Arc::new(model.connect(Arc::clone(clock))?))
}
