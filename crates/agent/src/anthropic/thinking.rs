//! How much a model of this dialect thinks and writes.

use serde::Serialize;

use crate::endpoint::{EndpointSettings, ReasoningEffort};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingSettings {
    /// The model decides, given an effort.
    Adaptive,
    Enabled {
        budget_tokens: u32,
    },
    Disabled,
}

#[derive(Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// This dialect wants a limit with every request.
pub(super) fn max_tokens(settings: &EndpointSettings) -> u32 {
    let written = settings.max_output_tokens;
    written.unwrap_or_else(|| most_output(&settings.model))
}

/// The least of what the models of a family accept.
fn most_output(model: &str) -> u32 {
    let is = |part: &str| model.contains(part);
    if is("claude-3-5") || is("claude-3.5") {
        8192
    } else if is("claude-3-7") || is("claude-3.7") {
        64_000
    } else if is("claude-3") || is("claude-2") {
        4096
    } else {
        32_000
    }
}

pub(super) fn thinking(settings: &EndpointSettings) -> Option<ThinkingSettings> {
    let effort = settings.effort?;
    if is_before_thinking(&settings.model) {
        return None;
    }
    if effort == ReasoningEffort::None {
        return Some(ThinkingSettings::Disabled);
    }
    if takes_effort(&settings.model) {
        return Some(ThinkingSettings::Adaptive);
    }
    // Thoughts count as output and must leave room for an answer.
    let room = max_tokens(settings) / 2;
    if max_tokens(settings) <= LEAST_THINKING {
        return None;
    }
    Some(ThinkingSettings::Enabled {
        budget_tokens: effort.tokens().min(room).max(LEAST_THINKING),
    })
}

/// The least that the endpoint takes, and it has to be less than the whole answer.
const LEAST_THINKING: u32 = 1024;

/// Claude thinks since 3.7, and refuses to be asked for it before.
fn is_before_thinking(model: &str) -> bool {
    let is = |part: &str| model.contains(part);
    is("claude-2") || is("claude-3") && !is("claude-3-7") && !is("claude-3.7")
}

pub(super) fn output_config(settings: &EndpointSettings) -> Option<OutputConfig> {
    let effort = match settings.effort? {
        _ if !takes_effort(&settings.model) => return None,
        ReasoningEffort::None => return None,
        ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::ExtraHigh => "max",
    };
    Some(OutputConfig { effort })
}

/// Models before 4.6 are given a number of tokens instead, and so are those of other vendors.
fn takes_effort(model: &str) -> bool {
    const BEFORE: [&str; 9] = [
        "claude-2",
        "claude-3",
        "-4-0",
        "-4-1",
        "-4-5",
        "-4.1",
        "-4.5",
        "sonnet-4-2025",
        "opus-4-2025",
    ];
    model.contains("claude") && !BEFORE.iter().any(|before| model.contains(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ApiDialect;

    #[test]
    fn each_generation_is_asked_in_its_own_way() {
        let ask = |model: &str| {
            let dialect = ApiDialect::AnthropicMessages;
            let mut settings = EndpointSettings::speaking(dialect, "http://h", None, model);
            settings.effort = Some(ReasoningEffort::ExtraHigh);
            let thinking = serde_json::to_value(thinking(&settings)).expect("JSON");
            let effort = output_config(&settings).map(|config| config.effort);
            (thinking.to_string(), effort)
        };
        let adaptive = r#"{"type":"adaptive"}"#.to_owned();
        assert_eq!(ask("claude-opus-4-6"), (adaptive, Some("max")));
        let enabled = |tokens: u32| format!(r#"{{"budget_tokens":{tokens},"type":"enabled"}}"#);
        assert_eq!(ask("claude-sonnet-4-5-20250929"), (enabled(16_000), None));
        for before in ["claude-3-5-haiku-latest", "claude-3-opus-20240229"] {
            assert_eq!(ask(before), ("null".to_owned(), None));
        }
        assert_eq!(ask("claude-3-7-sonnet-latest"), (enabled(24_576), None));
        assert_eq!(ask("MiniMax-M2"), (enabled(16_000), None));
    }

    #[test]
    fn an_answer_without_room_for_thoughts_is_asked_for_without_them() {
        let dialect = ApiDialect::AnthropicMessages;
        let mut settings =
            EndpointSettings::speaking(dialect, "http://h", None, "claude-sonnet-4-5");
        settings.effort = Some(ReasoningEffort::High);
        settings.max_output_tokens = Some(1024);
        assert!(thinking(&settings).is_none());
        settings.max_output_tokens = Some(1025);
        assert!(thinking(&settings).is_some());
    }
}
