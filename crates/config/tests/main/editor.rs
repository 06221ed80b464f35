//! The JSON Schema, the starter file and the guide agree with what is read.

use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use hermetic_config::{EffectiveSetting, STARTER, json_schema};
use serde_json::json;

use crate::lab::Lab;

struct Editor {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Editor {
    /// Compiling checks the schema against the one for schemas.
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler
            .add_resource("hermetic.json", json_schema())
            .unwrap();
        let index = compiler
            .compile("hermetic.json", &mut schemas)
            .unwrap_or_else(|error| panic!("{error:#}"));
        Self { schemas, index }
    }

    fn complains(&self, document: &serde_json::Value) -> Option<String> {
        let complaint = self.schemas.validate(document, self.index).err()?;
        Some(format!("{complaint:#}"))
    }
}

#[test]
fn the_schema_is_a_json_schema_and_takes_good_files() {
    let editor = Editor::new();
    for document in [
        json!({}),
        json!({"model": "a", "streaming": true}),
        json!({"model": {"default": "a"}, "terminal": {"backend": "docker", "container_memory": "5GB"}}),
        json!({"approvals": {"mode": false}, "gateway": {"sandbox_lifetime": 60, "strict": "off"}}),
        json!({"platforms": {"telegram": {"token": "${X}", "allowed_users": "1,2"}}}),
        json!({"telegram": {"allowed_users": [1, "2"]}, "memory": {"unknown": [1]}}),
        json!({"gateway": {"egress": {"credentials": [{"host": "a.b", "value_env": "X"}]}}}),
        json!({"gateway": null, "max_concurrent_sessions": null}),
        json!({"gateway": {"api_server": {"max_concurrent_runs": 3, "port": 1}, "platforms": {"slack": {}}}}),
    ] {
        assert_eq!(editor.complains(&document), None, "{document}");
    }
}

#[test]
fn the_schema_refuses_bad_files() {
    let editor = Editor::new();
    for document in [
        json!([]),
        json!({"terminal": "docker"}),
        json!({"terminal": {"backend": "docer"}}),
        json!({"gateway": {"sandbox_lifetime": -1}}),
        json!({"terminal": {"container_memory": "5GBB"}}),
        json!({"terminal": {"docker_volumes": "/a:/b"}}),
        json!({"approvals": {"mode": "yolo"}}),
        json!({"telegram": {"webhook_port": "x"}}),
        json!({"gateway": {"platforms": {"slack": {"extra": {"reactions": "maybe"}}}}}),
        json!({"gateway": {"egress": {"credentials": [{"value_env": "X"}]}}}),
    ] {
        assert!(editor.complains(&document).is_some(), "{document}");
    }
}

#[test]
fn the_starter_file_is_right_and_says_nothing_but_defaults() {
    let (starter, nothing) = (Lab::with(STARTER), Lab::new());
    assert_eq!(starter.warnings(), "");
    assert!(starter.config().unused().is_empty());
    let values = |lab: &Lab| -> Vec<String> {
        let config = lab.config();
        let shown = |setting: &EffectiveSetting| {
            format!(
                "{} {:?}",
                setting.name(),
                setting.value().map(|v| v.shown())
            )
        };
        config
            .settings()
            .iter()
            // Spelled out, so that nobody has to guess what holds.
            .filter(|setting| setting.name() != "gateway.terminal_backend")
            .map(shown)
            .collect()
    };
    assert_eq!(values(&starter), values(&nothing));
}

/// Without the comment signs it is a bigger file, and that must be right as well.
#[test]
fn the_starter_file_is_right_with_everything_switched_on() {
    let text: String = STARTER
        .lines()
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(rest) if rest.contains(": ") || rest.ends_with(':') || rest.starts_with("  ") => {
                let indent = line.len() - line.trim_start().len();
                format!("{}{rest}\n", " ".repeat(indent))
            }
            _ => format!("{line}\n"),
        })
        .filter(|line| !line.starts_with("Others:"))
        .collect();
    let lab = Lab::with(text).dotenv("TELEGRAM_BOT_TOKEN=1:a\nOPENROUTER_API_KEY=k\n");
    assert!(lab.config().platforms().telegram.platform.enabled);
    assert!(lab.config().egress().ask);
}

#[test]
fn the_guide_names_every_key_its_default_and_its_variable() {
    let guide = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guides/configuration.md"
    ))
    .unwrap();
    let config = Lab::new().config();
    for setting in config.settings() {
        let name = match setting.name().strip_prefix("platforms.") {
            Some(rest) => rest.split_once('.').map_or(rest, |(_, key)| key),
            None => setting.name(),
        };
        assert!(
            guide.contains(&format!("`{name}`")),
            "{name} is not in the guide"
        );
        if let Some(variable) = setting.variable() {
            assert!(
                guide.contains(&format!("`{variable}`")),
                "{variable} is not in the guide"
            );
        }
    }
}
