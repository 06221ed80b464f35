//! What lies in a Hermes home beside its configuration.

use hermetic_memory::Character;
use sha2::{Digest as _, Sha256};

use super::finding::MigrationFinding;
use super::finding::MigrationVerdict::{Different, Lost, Works};
use super::hermes_home::HermesHome;

/// More names are counted instead of written.
const MOST_NAMED: usize = 5;

/// What stands between two memories.
const BETWEEN_MEMORIES: &str = "\n§\n";

pub(super) fn findings(hermes: &HermesHome) -> Vec<MigrationFinding> {
    [
        soul(hermes),
        memories(hermes),
        skills(hermes),
        hooks(hermes),
        plugins(hermes),
        logins(hermes),
        conversations(hermes),
        profiles(hermes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What every installation of Hermes 0.19 is given, as a SHA-256.
const SOUL_AS_GIVEN: &str = "2765a846e1bb371d78d3b93b403dfb0f8d1ba1a9895edb5f608367abfe81194d";

fn soul(hermes: &HermesHome) -> Option<MigrationFinding> {
    let text = hermes.text("SOUL.md")?;
    let text = text.trim();
    // Of before, when it was comments only.
    let says = text.lines().any(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("<!--")
    });
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    (says && hash != SOUL_AS_GIVEN).then(|| match Character::of_text(text) {
        Ok(_) => MigrationFinding::new(
            Works,
            "SOUL.md",
            "is the head of what the model is told; /new takes a change over",
        ),
        Err(finding) => {
            MigrationFinding::new(Different, "SOUL.md", format!("is left out: {finding}"))
                .remedy("write that part in other words")
        }
    })
}

fn memories(hermes: &HermesHome) -> Option<MigrationFinding> {
    let count = |name| {
        let text = hermes.text(name).unwrap_or_default();
        let entries = text.split(BETWEEN_MEMORIES);
        entries.filter(|entry| !entry.trim().is_empty()).count()
    };
    let all = count("memories/MEMORY.md") + count("memories/USER.md");
    (all > 0).then(|| {
        let what = format!(
            "{all} entries, shown to their owner alone and in private; changes are kept here"
        );
        MigrationFinding::new(Different, "memories", what).remedy(
            "where several people may approve, memory.owner says who that is: telegram:4711",
        )
    })
}

fn skills(hermes: &HermesHome) -> Option<MigrationFinding> {
    let skills = hermes.folders_with("skills", "SKILL.md");
    (!skills.is_empty()).then(|| {
        let what = format!(
            "offered to everybody who may write: {}; what an agent writes waits for `hermetic skills approve`",
            named("skill", &skills)
        );
        MigrationFinding::new(Different, "skills", what)
            .remedy("skills.disabled names those that are not offered")
    })
}

fn hooks(hermes: &HermesHome) -> Option<MigrationFinding> {
    let hooks = hermes.folders_with("hooks", "HOOK.yaml");
    (!hooks.is_empty()).then(|| {
        let what = format!("not run: {}", named("hook", &hooks));
        MigrationFinding::new(Lost, "hooks", what)
    })
}

fn plugins(hermes: &HermesHome) -> Option<MigrationFinding> {
    let plugins = hermes.folders_with("plugins", "plugin.yaml");
    (!plugins.is_empty()).then(|| {
        let what = format!("not loaded: {}", named("plugin", &plugins));
        MigrationFinding::new(Lost, "plugins", what)
    })
}

/// Providers one logs into by a browser.
fn logins(hermes: &HermesHome) -> Option<MigrationFinding> {
    let file = hermes.json("auth.json")?;
    let providers: Vec<_> = file["providers"].as_object()?.keys().cloned().collect();
    (!providers.is_empty()).then(|| {
        let what = format!("not used: {} in auth.json", named("login", &providers));
        MigrationFinding::new(Lost, "logins", what).remedy("write the provider's key into .env")
    })
}

fn conversations(hermes: &HermesHome) -> Option<MigrationFinding> {
    hermes.path("state.db").is_file().then(|| {
        MigrationFinding::new(
            Lost,
            "conversations",
            "begin anew: those in state.db stay with Hermes",
        )
    })
}

fn profiles(hermes: &HermesHome) -> Option<MigrationFinding> {
    let profiles = hermes.names_in("profiles");
    (!profiles.is_empty()).then(|| {
        let what = format!("{}: each is a home of its own", named("profile", &profiles));
        MigrationFinding::new(Different, "profiles", what).remedy(format!(
            "`hermetic --home {}/<name> migrate`, and a gateway for each",
            hermes.path("profiles").display()
        ))
    })
}

/// "2 jobs (morning, evening)".
fn named(what: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    let mut shown: Vec<_> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
    if names.len() > MOST_NAMED {
        shown.push("…");
    }
    format!("{} {what}{plural} ({})", names.len(), shown.join(", "))
}
