//! Every configuration that we hand out, show or have been sent: what `config check` says of it and what a
//! gateway does with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use hermetic_app::Surroundings;
use hermetic_config::{Config, ConfigInputs, HomeFolder, STARTER, resolve_gateway_backend};
use hermetic_sandbox::Backend;
use hermetic_testkit::backend::{Commands, StandInBackend};
use hermetic_types::BackendKind;

const TYPICAL: &str = include_str!("../../../config/tests/main/typical.yaml");

/// A local model in the file that Hermes writes: a section for each task, which says nothing.
const LOCAL_MODEL: &str = "\
model: {default: qwen3, provider: custom, base_url: 'http://127.0.0.1:9/v1', context_length: 32000}
approvals: {mode: smart}
auxiliary:
  approval: {provider: auto, model: '', base_url: '', api_key: '', timeout: 30}
  compression: {provider: auto, model: '', base_url: '', api_key: '', timeout: 120}
  vision: {provider: auto, model: '', base_url: '', api_key: '', timeout: 120}
";

/// Parts of a gateway that one look at the file could miss.
const DOUBTFUL: &[&str] = &[
    "",
    LOCAL_MODEL,
    "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nauxiliary: {vision: {provider: nobody, model: n}}\n",
    "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nauxiliary: {compression: {provider: nobody, model: n}}\n",
    "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nauxiliary: {web_extract: {provider: nobody, model: n}}\n",
    "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\nfallback_model: other\n",
    "timezone: Mars/Olympus\n",
    "timezone: UTC\n",
    "gateway: {dashboard: {port: 8644}}\nplatforms: {webhook: {enabled: true, secret: a-secret-of-some-length}}\n",
    "gateway: {telemetry: {otlp: {endpoint: 'http://127.0.0.1:9'}}}\n",
    "budgets: {person: {bytes_out: 1000, tool_seconds: 1}}\n",
    "web: {backend: searxng, searxng_url: 'http://127.0.0.1:9'}\n",
];

/// Fenced examples of the guides; those of other programs are not ours to read, and fail to load.
fn examples() -> Vec<(String, String)> {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    let mut examples = Vec::new();
    for guide in fs::read_dir(guides).unwrap() {
        let path = guide.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut open: Option<(usize, String)> = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            match &mut open {
                None if line.trim_start().starts_with("```yaml") => {
                    open = Some((indent, String::new()));
                }
                Some(_) if line.trim() == "```" => {
                    let (_, text) = open.take().unwrap();
                    examples.push((name.clone(), text));
                }
                Some((indent, text)) => {
                    text.push_str(line.get(*indent..).unwrap_or_default());
                    text.push('\n');
                }
                None => {}
            }
        }
    }
    examples
}

/// What a home with these variables makes of it; nothing for what is no configuration of ours.
fn read(home: &Path, text: &str, variables: &[(&str, &str)]) -> Option<Config> {
    fs::write(home.join("config.yaml"), text).unwrap();
    let named = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut variables: BTreeMap<_, _> = variables.iter().map(named).collect();
    variables.insert("HOME".to_owned(), home.to_str().unwrap().to_owned());
    hermetic_config::load(&ConfigInputs {
        home: HomeFolder::at(home),
        managed: home.join("no-such-file"),
        variables,
        unreadable: Vec::new(),
    })
    .ok()
}

/// Why a gateway of this configuration is not there, with stand-ins for the machine and the platforms.
async fn refused(config: &Config) -> Option<String> {
    let resolved = resolve_gateway_backend(config).unwrap();
    let stand_in = |kind| {
        let backend = StandInBackend::new(hermetic_app::description(kind), Commands::bash());
        Arc::new(backend) as Arc<dyn Backend>
    };
    let surroundings = Surroundings {
        chats: Some(Vec::new()),
        backends: Some(BackendKind::ALL.iter().copied().map(stand_in).collect()),
        ..Surroundings::default()
    };
    let redactor = hermetic_app::redactor(config);
    let made = hermetic_app::gateway(config, &resolved, redactor, surroundings);
    Box::pin(made)
        .await
        .err()
        .map(|failure| failure.to_string())
}

/// What check says first, and what the start says, of one configuration; nothing for what is none of ours.
async fn both(text: &str, variables: &[(&str, &str)]) -> Option<(Option<String>, Option<String>)> {
    let home = tempfile::tempdir().unwrap();
    let config = read(home.path(), text, variables)?;
    let resolved = resolve_gateway_backend(&config).ok()?;
    let check = hermetic_app::refusals(&config, &resolved);
    let check = check.first().map(ToString::to_string);
    Some((check, refused(&config).await))
}

#[tokio::test]
async fn what_check_says_is_what_a_gateway_does() {
    let keys: &[(&str, &str)] = &[
        ("OPENROUTER_API_KEY", "r-key-of-a-test"),
        ("ANTHROPIC_API_KEY", "a-key-of-a-test"),
        ("OPENAI_API_KEY", "o-key-of-a-test"),
        ("TELEGRAM_BOT_TOKEN", "123:a-token-of-a-test"),
    ];
    let examples = examples();
    let ours = [("the starter", STARTER), ("a typical file", TYPICAL)];
    let doubtful = || DOUBTFUL.iter().map(|text| ("doubtful", *text));
    let with_keys = examples
        .iter()
        .map(|(whose, text)| (whose.as_str(), text.as_str()))
        .chain(ours)
        .chain(doubtful())
        .map(|(whose, text)| (whose, text, keys));
    let without = doubtful().map(|(whose, text)| (whose, text, &[][..]));
    // Some at a time: each waits for its store, and all at once would be many threads.
    let looks = stream::iter(with_keys.chain(without)).map(async |(whose, text, variables)| {
        let (check, start) = both(text, variables).await?;
        assert_eq!(start, check, "{whose}:\n{text}");
        Some(check.is_none())
    });
    let looks: Vec<_> = looks.buffer_unordered(8).collect().await;
    let likes: Vec<_> = looks.into_iter().flatten().collect();
    assert!(examples.len() > 40 && likes.len() > 40, "{}", likes.len());
    let liked = likes.iter().filter(|likes| **likes).count();
    assert!(liked > likes.len() / 2, "{liked} of {}", likes.len());
}
