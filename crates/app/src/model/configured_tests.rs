use std::collections::BTreeMap;
use std::fs;

use hermetic_agent::endpoint::{ApiDialect, KeyHeader};
use hermetic_config::{ConfigInputs, HomeFolder, load};

use super::*;

/// The models of a home with this as config.yaml and these variables.
fn models(config: &str, variables: &[(&str, &str)]) -> Result<Vec<ConfiguredModel>, String> {
    let (_folder, config) = home(config, variables)?;
    configured_models(&config).map_err(|failure| failure.to_string())
}

fn home(config: &str, variables: &[(&str, &str)]) -> Result<(tempfile::TempDir, Config), String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.yaml"), config).unwrap();
    let named = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut variables: BTreeMap<_, _> = variables.iter().map(named).collect();
    variables.insert("HOME".to_owned(), "/home/ada".to_owned());
    let loaded = load(&ConfigInputs {
        home: HomeFolder::at(folder.path()),
        managed: folder.path().join("managed.yaml"),
        variables,
        unreadable: Vec::new(),
    });
    let config = loaded.map_err(|problems| problems.to_string())?;
    Ok((folder, config))
}

/// Provider, model, dialect, base and key of the first.
fn first(config: &str, variables: &[(&str, &str)]) -> String {
    let models = models(config, variables).unwrap_or_else(|error| panic!("{config}: {error}"));
    let settings = &models[0].settings;
    format!(
        "{} {} {} {} {}",
        models[0].provider,
        settings.model,
        settings.dialect.name(),
        settings.base_url,
        settings.key.as_ref().map_or("-", |key| key.expose()),
    )
}

const KEYS: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "a-key"),
    ("GEMINI_API_KEY", "g-key"),
    ("OPENAI_API_KEY", "o-key"),
    ("GROQ_API_KEY", "q-key"),
];

#[test]
fn a_name_alone_finds_its_maker_or_the_router() {
    let table = [
        (
            "model: claude-opus-4-6",
            "anthropic claude-opus-4-6 anthropic_messages https://api.anthropic.com a-key",
        ),
        (
            "model: google/gemini-3-pro",
            "gemini gemini-3-pro gemini https://generativelanguage.googleapis.com/v1beta g-key",
        ),
        (
            "model: gpt-5.2",
            "openai gpt-5.2 responses https://api.openai.com/v1 o-key",
        ),
        (
            "model: gpt-4o",
            "openai gpt-4o chat_completions https://api.openai.com/v1 o-key",
        ),
        (
            "model: {default: llama-4, provider: groq}",
            "groq llama-4 chat_completions https://api.groq.com/openai/v1 q-key",
        ),
    ];
    for (config, expected) in table {
        assert_eq!(first(config, KEYS), expected);
    }
    let with_router = [KEYS, &[("OPENROUTER_API_KEY", "r-key")]].concat();
    assert_eq!(
        first("model: anthropic/claude-opus-4.6", &with_router),
        "openrouter anthropic/claude-opus-4.6 chat_completions https://openrouter.ai/api/v1 r-key"
    );
}

#[test]
fn an_address_of_ones_own_and_what_it_speaks() {
    let local = "http://127.0.0.1:9/v1";
    let table = [
        (
            format!("model: {{default: m, base_url: '{local}'}}"),
            format!("auto m chat_completions {local} o-key"),
        ),
        (
            format!("model: {{default: m, base_url: '{local}', api_mode: codex_responses}}"),
            format!("auto m responses {local} o-key"),
        ),
        (
            format!("model: {{default: m, provider: anthropic, base_url: '{local}'}}"),
            format!("anthropic m anthropic_messages {local} a-key"),
        ),
        (
            "model: {default: m, base_url: 'https://h/anthropic'}".to_owned(),
            "auto m anthropic_messages https://h/anthropic -".to_owned(),
        ),
        (
            // A key goes to no address of somebody else, neither this provider's nor OpenAI's.
            format!("model: {{default: m, provider: groq, base_url: '{local}'}}"),
            format!("groq m chat_completions {local} -"),
        ),
        (
            format!("model: {{default: m, provider: openai, base_url: '{local}'}}"),
            format!("openai m chat_completions {local} o-key"),
        ),
        (
            format!(
                "model: {{default: m, provider: mine}}\ncustom_providers: [{{name: mine, base_url: '{local}'}}]"
            ),
            format!("mine m chat_completions {local} -"),
        ),
        (
            format!(
                "model: {{default: m, provider: mine}}\ncustom_providers: [{{name: mine, base_url: '{local}', api_key: k, api_mode: anthropic_messages}}]"
            ),
            format!("mine m anthropic_messages {local} k"),
        ),
    ];
    for (config, expected) in table {
        assert_eq!(first(&config, KEYS), expected);
    }
    let router = [KEYS, &[("OPENROUTER_API_KEY", "r-key")]].concat();
    assert_eq!(
        first(
            "model: {default: anthropic/claude-opus-4.6, provider: auto, base_url: 'https://openrouter.ai/api/v1'}",
            &router
        ),
        "openrouter anthropic/claude-opus-4.6 chat_completions https://openrouter.ai/api/v1 r-key",
        "as Hermes' own file has it"
    );
    let moved = [KEYS, &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:8")]].concat();
    assert_eq!(
        first("model: claude-opus-4-6", &moved),
        "anthropic claude-opus-4-6 anthropic_messages http://127.0.0.1:8 a-key"
    );
}

#[test]
fn no_key_goes_to_a_provider_by_a_wire_that_others_read_along() {
    let table = [
        (
            "{default: m, provider: anthropic, base_url: 'http://api.anthropic.com'}",
            "anthropic",
        ),
        ("{default: m, base_url: 'http://api.anthropic.com'}", "auto"),
        ("{default: m, base_url: 'http://api.openai.com/v1'}", "auto"),
        (
            "{default: m, provider: groq, base_url: 'http://api.groq.com/openai/v1'}",
            "groq",
        ),
    ];
    for (model, provider) in table {
        let shown = first(&format!("model: {model}"), KEYS);
        assert!(
            shown.starts_with(provider) && shown.ends_with(" -"),
            "{shown}"
        );
    }
}

#[test]
fn the_token_of_a_subscription_is_said_to_be_none_of_our_keys() {
    let token = [("ANTHROPIC_TOKEN", "sk-ant-oat01-x")];
    let error = models("model: claude-opus-4-6", &token).unwrap_err();
    assert!(error.contains("subscription"), "{error}");
    assert!(!error.contains("oat01"), "{error}");
    let both = [token[0], ("ANTHROPIC_API_KEY", "sk-ant-api03-y")];
    assert!(models("model: claude-opus-4-6", &both).is_ok());
}

#[test]
fn azure_by_deployment_and_by_its_newer_address() {
    let keys = [("AZURE_OPENAI_API_KEY", "z-key")];
    let ask = |base: &str| {
        let config = format!("model: {{default: d, provider: azure, base_url: '{base}'}}");
        models(&config, &keys).unwrap().swap_remove(0).settings
    };
    let old = ask("https://r.openai.azure.com");
    assert_eq!(
        old.base_url,
        "https://r.openai.azure.com/openai/deployments/d"
    );
    assert_eq!(old.query[0].0, "api-version");
    assert_eq!(old.key_header, KeyHeader::Named("api-key"));
    assert!(old.key.is_some());
    let new = ask("https://r.openai.azure.com/openai/v1");
    assert!(new.query.is_empty());
    let error = models("model: {default: d, provider: azure}", &keys).unwrap_err();
    assert!(error.contains("no endpoint is known"), "{error}");
}

#[test]
fn bedrock_by_a_bearer_key_in_every_region_and_wire() {
    let keys = [
        ("AWS_BEARER_TOKEN_BEDROCK", "b-key"),
        ("OPENAI_API_KEY", "o-key"),
    ];
    for (base, mode) in [
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
            "chat_completions",
        ),
        (
            "https://bedrock-mantle.eu-west-1.api.aws/anthropic",
            "anthropic_messages",
        ),
    ] {
        let config = format!(
            "model: {{default: m, provider: bedrock, base_url: '{base}', api_mode: {mode}}}"
        );
        assert_eq!(
            first(&config, &keys),
            format!("bedrock m {mode} {base} b-key")
        );
        let settings = models(&config, &keys).unwrap().swap_remove(0).settings;
        assert_eq!(settings.key_header, KeyHeader::Bearer);
    }
}

#[test]
fn fallbacks_and_tasks_have_providers_of_their_own() {
    let config = "\
model: {default: claude-opus-4-6, context_length: 1000}
fallback_providers: [{provider: gemini, model: gemini-2.5-flash}, {provider: openai, model: gpt-4o}]
auxiliary: {approval: {provider: groq, model: small, timeout: 5}, vision: {model: claude-haiku-4-5}, web: {provider: nobody}}
agent: {reasoning_effort: low}
providers: {gemini: {stale_timeout_seconds: 7}}
";
    let models = models(config, KEYS).unwrap();
    let listed: Vec<_> = models
        .iter()
        .map(|model| {
            (
                model.role.name(),
                model.provider.as_str(),
                model.settings.dialect,
            )
        })
        .collect();
    let row = |role: &str, provider, dialect| (role.to_owned(), provider, dialect);
    assert_eq!(
        listed,
        [
            row("answers", "anthropic", ApiDialect::AnthropicMessages),
            row("fallback 1", "gemini", ApiDialect::Gemini),
            row("fallback 2", "openai", ApiDialect::ChatCompletions),
            row("auxiliary approval", "groq", ApiDialect::ChatCompletions),
            row(
                "auxiliary vision",
                "anthropic",
                ApiDialect::AnthropicMessages
            ),
        ]
    );
    assert_eq!(models[0].context_length, Some(1000));
    assert_eq!(models[1].context_length, Some(1_048_576));
    assert_eq!(models[1].settings.silence.as_secs(), 7);
    assert_eq!(models[3].settings.silence.as_secs(), 5);
    assert!(models[4].settings.price.is_some());
    assert!(models.iter().all(|model| model.settings.effort.is_some()));
}

#[test]
fn a_provider_that_nobody_knows_and_a_wire_that_is_not_here_are_said() {
    let error = models("model: {default: m, provider: nobody}", KEYS).unwrap_err();
    assert!(error.contains("provider nobody"), "{error}");
    let error = models("model: {default: m, api_mode: bedrock_converse}", KEYS).unwrap_err();
    assert!(error.contains("bedrock_converse"), "{error}");
}

const LOCAL: &str = "model: {default: qwen3, provider: custom, base_url: 'http://127.0.0.1:9/v1', context_length: 32000}\n";

#[test]
fn auto_of_a_task_is_the_model_that_answers_whatever_keys_there_are() {
    let with_router = [KEYS, &[("OPENROUTER_API_KEY", "r-key")]].concat();
    let of_hermes = format!(
        "{LOCAL}auxiliary: {{approval: {{provider: auto, model: '', base_url: '', api_key: ''}}, \
         compression: {{provider: auto, model: '', timeout: 120}}, vision: {{provider: auto}}, web: {{provider: auto}}}}\n"
    );
    for keys in [&[][..], &with_router] {
        let (_folder, config) = home(&of_hermes, keys).unwrap();
        for task in [APPROVAL, COMPRESSION, VISION] {
            let model = auxiliary_model(&config, task).unwrap().unwrap();
            assert_eq!(model.settings.base_url, "http://127.0.0.1:9/v1", "{task}");
            assert_eq!(model.settings.model, "qwen3", "{task}");
            assert_eq!(model.context_length, Some(32_000), "{task}");
        }
        let listed = models(&of_hermes, keys).unwrap();
        let roles: Vec<_> = listed.iter().map(|model| model.role.name()).collect();
        assert_eq!(roles, ["answers"], "no other is named");
        let clock = hermetic_types::SystemClock::shared();
        assert!(super::super::vision(&config, &clock).unwrap().is_none());
        assert_eq!(super::super::refusals(&config, &clock).len(), 0);
    }
    let other = format!("{LOCAL}auxiliary: {{vision: {{provider: auto, model: sees}}}}\n");
    let listed = models(&other, &with_router).unwrap();
    let place = |model: &ConfiguredModel| {
        let settings = &model.settings;
        format!(
            "{} {} {}",
            model.role.name(),
            settings.model,
            settings.base_url
        )
    };
    assert_eq!(
        place(&listed[1]),
        "auxiliary vision sees http://127.0.0.1:9/v1"
    );
    assert_eq!(listed[1].context_length, None, "it is another model");
}

#[test]
fn a_fallback_that_names_no_place_is_another_model_at_the_same() {
    let with_router = [KEYS, &[("OPENROUTER_API_KEY", "r-key")]].concat();
    let place = |fallback: &str| {
        let config = format!("{LOCAL}fallback_model: {fallback}\n");
        let listed = models(&config, &with_router).unwrap();
        listed[1].settings.base_url.clone()
    };
    assert_eq!(place("smaller"), "http://127.0.0.1:9/v1");
    assert_eq!(place("{model: smaller}"), "http://127.0.0.1:9/v1");
    assert_eq!(
        place("{model: x/y, provider: auto}"),
        "https://openrouter.ai/api/v1"
    );
    assert_eq!(
        place("{model: m, base_url: 'http://127.0.0.1:8/v1'}"),
        "http://127.0.0.1:8/v1"
    );
}

#[test]
fn what_was_written_for_the_first_goes_to_no_other_that_is_found_by_its_name() {
    let config = "model: {default: claude-opus-4-6, api_key: first-key, api_mode: anthropic_messages}\n\
        fallback_model: gpt-4o\n\
        auxiliary: {vision: {provider: auto, model: gpt-4o}, approval: {timeout: 5}, compression: {model: claude-opus-4-6}}\n";
    let (_folder, read) = home(config, KEYS).unwrap();
    let listed = models(config, KEYS).unwrap();
    let vision = auxiliary_model(&read, VISION).unwrap().unwrap();
    for other in [&listed[1], &vision] {
        assert_eq!(other.provider, "openai");
        assert_eq!(other.settings.dialect, ApiDialect::ChatCompletions);
        let key = other.settings.key.as_ref();
        assert_eq!(key.map(|key| key.expose()), Some("o-key"));
    }
    for task in [APPROVAL, COMPRESSION] {
        let same = auxiliary_model(&read, task).unwrap().unwrap();
        assert_eq!(same.provider, "anthropic", "{task}");
        let key = same.settings.key.as_ref();
        assert_eq!(key.map(|key| key.expose()), Some("first-key"), "{task}");
    }
}

#[test]
fn a_task_that_is_done_here_by_nobody_keeps_from_starting() {
    for task in ["vision", "compression"] {
        let config = format!("{LOCAL}auxiliary: {{{task}: {{provider: nobody, model: n}}}}\n");
        let (_folder, config) = home(&config, &[]).unwrap();
        let clock = hermetic_types::SystemClock::shared();
        let refusals = super::super::refusals(&config, &clock);
        let told = refusals
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(told.contains("provider nobody"), "{task}: {told}");
    }
}
