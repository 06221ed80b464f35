//! Which models a configuration names, and for what.

use hermetic_agent::endpoint::EndpointSettings;
use hermetic_config::{Config, ModelConfig, ModelRef};

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
const TASKS_HERE: [&str; 3] = [APPROVAL, COMPRESSION, VISION];

/// The tasks by Hermes' names for them: judging a command, summarising, and looking at pictures in the place
/// of the model that answers.
pub(super) const APPROVAL: &str = "approval";
pub(super) const COMPRESSION: &str = "compression";
pub(super) const VISION: &str = "vision";

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
    for (task, own) in &config.model().auxiliary {
        // Hermes' own file has a section for each task. One that names no model leaves it to the model that
        // answers, which is listed.
        if !own.names_a_model() {
            continue;
        }
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
        // `auto` looks at the credentials here: whoever writes it wants another provider.
        let is_elsewhere = fallback.provider.is_some() || fallback.base_url.is_some();
        let wanted = beside(settings, fallback, name, is_elsewhere);
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
    // `auto` is Hermes' word for the model that answers. Whoever writes it sends nothing to anybody else,
    // whatever keys there are.
    let names_provider = own.provider.as_deref().is_some_and(|name| name != "auto");
    let is_elsewhere = names_provider || own.base_url.is_some();
    let wanted = beside(settings, &own, name, is_elsewhere);
    let catalog = ModelCatalog::of_home(config.home())?;
    let role = ModelRole::Auxiliary(task.to_owned());
    endpoint(config, &catalog, &wanted, role).map(Some)
}

/// A model that is named beside the one that answers: at an endpoint of its own, or at the same. A key goes
/// to the endpoint it was written for.
fn beside<'a>(
    settings: &'a ModelConfig,
    own: &'a ModelRef,
    name: &'a str,
    is_elsewhere: bool,
) -> WantedModel<'a> {
    let model = own.model.as_deref().unwrap_or(name);
    let elsewhere = WantedModel {
        provider: own.provider.as_deref().unwrap_or(&settings.provider),
        model,
        base_url: own.base_url.as_deref(),
        key: own.api_key.as_ref(),
        api_mode: own.api_mode,
        context_length: None,
        timeout: own.timeout,
        extra_body: Some(&own.extra_body),
    };
    let is_the_same = settings.name.as_deref() == Some(model);
    // Where nobody said where the first one is, each is found by its name, and may be somebody else's: what was
    // written for the first is not.
    let is_found = settings.base_url.is_none() && matches!(&*settings.provider, "auto" | "");
    if is_elsewhere || is_found && !is_the_same {
        return elsewhere;
    }
    WantedModel {
        provider: &settings.provider,
        base_url: settings.base_url.as_deref(),
        key: elsewhere.key.or(settings.api_key.as_ref()),
        api_mode: elsewhere.api_mode.or(settings.api_mode),
        context_length: settings.context_length.filter(|_| is_the_same),
        ..elsewhere
    }
}

#[cfg(test)]
#[path = "configured_tests.rs"]
mod tests;
