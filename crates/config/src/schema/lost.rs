//! What somebody misses here who used a key of the original system.
//!
//! Only keys that switch a feature on stand here. The others of [`super::unused`] are about how that
//! system works inside, or hold here whatever they say.

/// By the path of the key, or of the section it belongs to.
const FEATURES: &[(&str, &str)] = &[
    (
        "acp",
        "editors cannot use this agent over the Agent Client Protocol",
    ),
    ("agent.personalities", "personalities cannot be switched"),
    (
        "attachments",
        "files reach the workspace, and pictures and PDF files the model too, within bounds of its own",
    ),
    (
        "browser",
        "the agent has no browser; it reaches the web from its sandbox, within the allowlist",
    ),
    (
        "compression.summary_model",
        "write the model that summarises as auxiliary.compression",
    ),
    (
        "cron.mirror_delivery",
        "what a job says is not part of the conversation it is sent to",
    ),
    ("cron.model", "jobs have the model of the gateway"),
    ("curator", "skills are not kept up by the agent"),
    (
        "delegation.model",
        "subagents have the model of their conversation",
    ),
    ("display.personality", "personalities cannot be switched"),
    (
        "gateway.multiplex_profiles",
        "a gateway serves one home; each profile is a home of its own",
    ),
    (
        "gateway.profile_routes",
        "a gateway serves one home; each profile is a home of its own",
    ),
    (
        "gateway.quick_commands",
        "commands of your own behind a slash are not there",
    ),
    ("goals", "there are no standing goals"),
    ("hooks", "hooks are not run"),
    ("kanban", "there is no board of tasks"),
    ("lsp", "language servers are not asked"),
    (
        "memory.provider",
        "memories are kept here and by no service",
    ),
    (
        "model.default_headers",
        "write them as providers.<name>.extra_headers",
    ),
    (
        "model.extra_headers",
        "write them as providers.<name>.extra_headers",
    ),
    ("model_aliases", "models go by their full names"),
    (
        "multiplex_profiles",
        "a gateway serves one home; each profile is a home of its own",
    ),
    ("personalities", "personalities cannot be switched"),
    (
        "platform_hints",
        "what the model is told of a platform is fixed; agent.system_prompt adds to it",
    ),
    ("platform_toolsets", "every platform has the same tools"),
    ("plugins", "plugins are not loaded"),
    ("prefill_messages_file", "conversations begin empty"),
    (
        "profile_routes",
        "a gateway serves one home; each profile is a home of its own",
    ),
    (
        "proxy",
        "gateway.egress is the way out of sandboxes here, and is on by itself",
    ),
    (
        "quick_commands",
        "commands of your own behind a slash are not there",
    ),
    (
        "skills.inline_shell",
        "a skill is text: commands in it are not run while it is read",
    ),
    (
        "skills.platform_disabled",
        "skills.disabled holds on every platform",
    ),
    ("smart_model_routing", "one model answers everything"),
    ("toolsets", "the set of tools is fixed"),
    ("tts.deepinfra", SPEAKER),
    ("tts.edge", SPEAKER),
    ("tts.elevenlabs", SPEAKER),
    ("tts.gemini", SPEAKER),
    ("tts.minimax", SPEAKER),
    ("tts.mistral", SPEAKER),
    ("tts.xai", SPEAKER),
    ("voice", "answers are not spoken"),
    ("x_search", "X is not searched"),
    ("yolo", "approvals are switched by approvals.mode alone"),
];

/// Platforms that stand in the file and are not spoken to.
const SILENT: &str = "this platform is not spoken to: nobody is answered there";

const SPEAKER: &str = "only an endpoint with OpenAI's wire speaks (tts.openai)";

/// What is missed by whoever wrote this key; nothing for one that is not missed. A platform is missed only
/// where it is switched on: a file that Hermes wrote has a section for each.
pub(crate) fn feature(path: &str, is_switched_on: bool) -> Option<&'static str> {
    let named = |key: &str| {
        let rest = path.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let listed = FEATURES.iter().find(|(key, _)| named(key));
    let listed = listed.map(|(_, missed)| *missed);
    let silent = is_switched_on && is_platform(path);
    listed.or_else(|| silent.then_some(SILENT))
}

/// One of those that may stand at the top or below `platforms`.
fn is_platform(path: &str) -> bool {
    let name = path.strip_prefix("platforms.").unwrap_or(path);
    let below = super::unused::KEYS.iter();
    below
        .filter_map(|key| key.strip_prefix("platforms."))
        .any(|platform| platform == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SCHEMA;

    #[test]
    fn every_name_is_one_of_the_keys_without_effect() {
        for (key, _) in FEATURES {
            assert!(SCHEMA.is_unused(key), "{key}");
        }
    }

    #[test]
    fn a_platform_and_what_is_below_a_feature_are_missed_and_others_are_not() {
        assert_eq!(feature("platforms.email", true), Some(SILENT));
        assert_eq!(feature("email", true), Some(SILENT));
        assert!(feature("browser.engine", false).is_some());
        assert_eq!(feature("browser_of_mine", true), None);
        assert_eq!(feature("_config_version", true), None);
        assert_eq!(feature("matrix", false), None, "as Hermes writes it");
    }
}
