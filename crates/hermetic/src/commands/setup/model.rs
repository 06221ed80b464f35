//! The model, from its provider to an answer of its own.

use std::fmt::Write as _;

use hermetic_app::{self as app, AppFailure, ConfiguredModel, ModelRole};
use hermetic_config::{Config, ConfigInputs};

use super::config_file::{self, StagedHome};
use super::{MOST_ATTEMPTS, SetupArgs};
use crate::commands::gateway::setup::dotenv_file::DotenvFile;
use crate::commands::gateway::setup::prompt::SetupPrompt;
use crate::failure::CommandFailure;
use crate::output::{self, printable};

/// The variable of an endpoint that nobody knows.
const CUSTOMARY: &str = "OPENAI_API_KEY";

/// Where to ask, and for what.
struct ChosenModel {
    name: String,
    provider: Option<&'static str>,
    base_url: Option<String>,
    /// Where its key is looked for.
    variable: &'static str,
}

pub(super) async fn choose(
    inputs: &ConfigInputs,
    prompt: SetupPrompt,
    args: &SetupArgs,
) -> Result<(), CommandFailure> {
    let config = hermetic_config::load(inputs)?;
    if let Some(name) = &config.model().name {
        output::print(&format!(
            "   {} is set already and stays\n",
            printable(name)
        ))?;
        return match tried(&config).await? {
            true => Ok(()),
            false => may_stay(prompt, args),
        };
    }
    if args.model.is_none() && !prompt.is_somebody() {
        return output::print(
            "   none: messages are not answered, /sh works; name one with --model\n",
        );
    }
    for _ in 0..MOST_ATTEMPTS {
        let chosen = chosen(prompt, args)?;
        let mut dotenv = DotenvFile::read(&inputs.home)?;
        take_key(&chosen, inputs, &mut dotenv, prompt)?;
        let text = config_file::with_model(inputs, &section(&chosen))?;
        let staged = StagedHome::build(inputs, &text, dotenv.text())?;
        let works = tried(&staged.config()?).await?;
        if works || !prompt.is_somebody() || !prompt.confirms("Try another?")? {
            if !works {
                may_stay(prompt, args)?;
            }
            // The key first: without it, a model that is set would stay and never be asked for one again.
            dotenv.write(&inputs.home)?;
            // Read again: somebody may have written to it while the questions were answered.
            let text = config_file::with_model(inputs, &section(&chosen))?;
            return config_file::write(inputs, &text);
        }
    }
    Err(CommandFailure::new(
        "no model was found that answers",
        "nothing was written; docs/guides/configuration.md has the keys",
    ))
}

/// Whether it answers, said aloud.
async fn tried(config: &Config) -> Result<bool, CommandFailure> {
    output::progress("   asking it for a word …", false);
    let (what, remedy) = match answers(config) {
        Ok(Some(model)) => match model.check().await.outcome {
            Ok(said) => {
                output::progress(&format!("   it answers: {said}"), true);
                return Ok(true);
            }
            Err(failure) => (failure.what, failure.remedy),
        },
        Ok(None) => ("no model is named".to_owned(), "name one".to_owned()),
        Err(failure) => (failure.to_string(), failure.remedy().to_owned()),
    };
    output::progress(&format!("   it does not answer: {what}"), true);
    output::progress(&format!("   = {remedy}"), true);
    Ok(false)
}

/// The one that answers when nothing goes wrong; its fallbacks are not asked.
fn answers(config: &Config) -> Result<Option<ConfiguredModel>, AppFailure> {
    let mut models = app::configured_models(config)?.into_iter();
    Ok(models.find(|model| model.role == ModelRole::Answers))
}

fn may_stay(prompt: SetupPrompt, args: &SetupArgs) -> Result<(), CommandFailure> {
    if args.unchecked || prompt.confirms("Keep it without an answer?")? {
        return Ok(());
    }
    Err(CommandFailure::new(
        "the model could not be tried",
        "mend what is said above, or add --unchecked; nothing was written",
    ))
}

fn chosen(prompt: SetupPrompt, args: &SetupArgs) -> Result<ChosenModel, CommandFailure> {
    let (provider, base_url) = match (&args.provider, &args.base_url) {
        (Some(provider), _) => (Some(known(provider)?), None),
        (None, Some(url)) => (None, Some(url.clone())),
        (None, None) => endpoint(prompt)?,
    };
    let name = match &args.model {
        Some(name) => name.clone(),
        None => prompt.value("model", "its name, as the provider writes it", false)?,
    };
    Ok(ChosenModel {
        name,
        provider: provider.map(|(name, _)| name),
        base_url,
        variable: provider.map_or(CUSTOMARY, |(_, variable)| variable),
    })
}

/// A provider with the variable of its key.
type KnownProvider = (&'static str, &'static str);

/// A provider by its name or number, or an address, until it is one.
fn endpoint(
    prompt: SetupPrompt,
) -> Result<(Option<KnownProvider>, Option<String>), CommandFailure> {
    let known_names: Vec<_> = app::known_providers().map(|(name, _)| name).collect();
    let mut menu = String::from("   Who answers?\n");
    for (number, name) in (1..).zip(&known_names) {
        let _ = writeln!(menu, "     {number}  {name}");
    }
    menu.push_str("     or the address of any OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1\n");
    output::print(&menu)?;
    for _ in 0..MOST_ATTEMPTS {
        let typed = prompt.line("number, name or address")?;
        if typed.contains("://") {
            return Ok((None, Some(typed)));
        }
        let by_number = typed.parse::<usize>().ok();
        let by_number = by_number.and_then(|number| known_names.get(number.checked_sub(1)?));
        let name = by_number
            .map_or(&*typed.to_lowercase(), |name| name)
            .to_owned();
        match known(&name) {
            Ok(provider) => return Ok((Some(provider), None)),
            Err(unknown) => {
                output::print(&format!("   {}\n", printable(&unknown.to_string())))?;
            }
        }
    }
    Err(CommandFailure::new(
        "no provider was chosen",
        "docs/guides/models.md has them with their keys; nothing was written",
    ))
}

fn known(name: &str) -> Result<KnownProvider, CommandFailure> {
    app::known_providers()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| {
            let names: Vec<_> = app::known_providers().map(|(name, _)| name).collect();
            CommandFailure::new(
                format!("no provider {name:?} is known"),
                format!("known: {}; or give --base-url", names.join(", ")),
            )
        })
}

/// One that is there stays; an endpoint of one's own may need none.
fn take_key(
    chosen: &ChosenModel,
    inputs: &ConfigInputs,
    dotenv: &mut DotenvFile,
    prompt: SetupPrompt,
) -> Result<(), CommandFailure> {
    let name = chosen.variable;
    let there = dotenv.value(name);
    let there = there.or_else(|| {
        inputs
            .variables
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    });
    match there {
        Some(there) if prompt.keeps(name)? => dotenv.set(name, &there),
        _ if chosen.base_url.is_some() && !prompt.confirms("Does it need a key?")? => {}
        _ => dotenv.set(name, &prompt.value(name, "the provider's key", true)?),
    }
    Ok(())
}

/// The lines for `config.yaml`.
fn section(chosen: &ChosenModel) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("model:\n  default: {}\n", quoted(&chosen.name));
    if let Some(provider) = chosen.provider {
        let _ = writeln!(text, "  provider: {provider}");
    }
    if let Some(url) = &chosen.base_url {
        let _ = writeln!(text, "  base_url: {}", quoted(url));
    }
    text
}
