//! Which models a configuration names, and for what.

use hermetic_agent::endpoint::EndpointSettings;
use hermetic_config::{Config, ModelRef};

use super::catalog::ModelCatalog;
use super::endpoint::{WantedModel, endpoint};
use crate::AppFailure;

/// A model that the configuration names, with all that is needed to ask it.
#[derive(Clone, Debug)]
pub struct ConfiguredModel {
    pub role: ModelRole,
    /// As it is named in the configuration, or as `auto` found it.
    pub provider: String,
    pub settings: EndpointSettings,
    /// Tokens that it can see; unknown where neither the configuration nor the catalog says.
    pub context_length: Option<u32>,
}

/// What a model is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelRole {
    Answers,
    /// The place in the row of those that are tried when the first fails, from 1.
    Fallback(usize),
    /// A task of its own, such as `approval`.
    Auxiliary(String),
}

/// The tasks of Hermes' that are done here by models of their own.
const TASKS_HERE: [&str; 2] = ["approval", "compression"];

impl ModelRole {
    pub fn name(&self) -> String {
        match self {
            Self::Answers => "answers".to_owned(),
            Self::Fallback(place) => format!("fallback {place}"),
            Self::Auxiliary(task) if is_done_here(task) => format!("auxiliary {task}"),
            Self::Auxiliary(task) => format!("{task} (not used here)"),
        }
    }
}

fn is_done_here(task: &str) -> bool {
    TASKS_HERE.contains(&task)
}

/// Every model of the configuration: the one that answers, its fallbacks, and those of tasks.
pub fn configured_models(config: &Config) -> Result<Vec<ConfiguredModel>, AppFailure> {
    let mut models = main_models(config)?;
    for task in config.model().auxiliary.keys() {
        match auxiliary_model(config, task) {
            Ok(model) => models.extend(model),
            Err(failure) if is_done_here(task) => return Err(failure),
            // Nobody asks it, so it keeps nobody from starting.
            Err(_) => {}
        }
    }
    Ok(models)
}

/// The one that answers and its fallbacks, in the order in which they are asked.
pub(super) fn main_models(config: &Config) -> Result<Vec<ConfiguredModel>, AppFailure> {
    let settings = config.model();
    let Some(name) = settings.name.as_deref() else {
        return Ok(Vec::new());
    };
    let catalog = ModelCatalog::of_home(config.home())?;
    let first = WantedModel {
        provider: &settings.provider,
        model: name,
        base_url: settings.base_url.as_deref(),
        key: settings.api_key.as_ref(),
        api_mode: settings.api_mode,
        context_length: settings.context_length,
        timeout: None,
        extra_body: None,
    };
    let mut models = vec![endpoint(config, &catalog, &first, ModelRole::Answers)?];
    for (place, fallback) in settings.fallbacks.iter().enumerate() {
        let wanted = WantedModel {
            provider: fallback.provider.as_deref().unwrap_or(&settings.provider),
            model: fallback.model.as_deref().unwrap_or(name),
            ..elsewhere(fallback)
        };
        let role = ModelRole::Fallback(place + 1);
        models.push(endpoint(config, &catalog, &wanted, role)?);
    }
    Ok(models)
}

pub(super) fn auxiliary_model(
    config: &Config,
    task: &str,
) -> Result<Option<ConfiguredModel>, AppFailure> {
    let settings = config.model();
    let own = settings.auxiliary.get(task).cloned().unwrap_or_default();
    let Some(name) = own.model.as_deref().or(settings.name.as_deref()) else {
        return Ok(None);
    };
    let wanted = elsewhere(&own);
    // A key goes to the endpoint it was written for.
    let wanted = match own.provider.is_some() || own.base_url.is_some() {
        true => WantedModel {
            provider: own.provider.as_deref().unwrap_or(&settings.provider),
            model: name,
            ..wanted
        },
        false => WantedModel {
            provider: &settings.provider,
            model: name,
            base_url: settings.base_url.as_deref(),
            key: own.api_key.as_ref().or(settings.api_key.as_ref()),
            api_mode: own.api_mode.or(settings.api_mode),
            ..wanted
        },
    };
    let catalog = ModelCatalog::of_home(config.home())?;
    let role = ModelRole::Auxiliary(task.to_owned());
    endpoint(config, &catalog, &wanted, role).map(Some)
}

fn elsewhere(model: &ModelRef) -> WantedModel<'_> {
    WantedModel {
        provider: "",
        model: "",
        base_url: model.base_url.as_deref(),
        key: model.api_key.as_ref(),
        api_mode: model.api_mode,
        context_length: None,
        timeout: model.timeout,
        extra_body: Some(&model.extra_body),
    }
}

#[cfg(test)]
#[path = "configured_tests.rs"]
mod tests;
