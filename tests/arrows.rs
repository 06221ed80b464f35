//! The shape of the workspace, read from its manifests.
//!
//! A layered design decays by one convenient dependency at a time. The tables below are the whole
//! rule; a crate that is not in them has no place yet and fails too. Dev-dependencies are free: a
//! test may look anywhere.

use std::fs;
use std::path::Path;

use crate::manifests::{Package, Workspace};

/// Low to high. A crate may depend on what stands in a lower line, and on nothing else of ours.
const LAYERS: [&[&str]; 10] = [
    // `embedded` is bytes with a name, `search` and `attack` are a question and its answers, `listen`
    // is a socket that knows nothing of us, `pictures` makes few bytes of many, `workspace-copy` copies a
    // folder.
    &[
        "types",
        "embedded",
        "search",
        "attack",
        "listen",
        "pictures",
        "workspace-copy",
    ],
    &[
        "policy", "access", "redact", "audit", "store", "upstream", "schedule",
    ],
    // `services` are those of others, which the gateway itself calls.
    &["chat", "sandbox", "warden", "egress", "services", "oauth"],
    &["session", "tools", "memory", BACKENDS, PLATFORMS],
    // Two ways to hold the tools: an agent of ours, and anybody's. And anybody's agent, sealed.
    &["agent", "mcp", "acp"],
    // Questions to people; a model may look first. And which agents of others there are.
    &["approvals", "agent-programs"],
    // The life of a message, and what people see of it: neither knows the other.
    &["gateway", "dashboard"],
    // It knows the parts; being above them all, no part can know it.
    &["config"],
    // A configuration in, a gateway out.
    &["app"],
    &["hermetic"],
];

/// Pairs inside one line of `LAYERS` that may look at each other: (who, whom, why).
const NEIGHBOURS: [(&str, &str, &str); 4] = [
    (
        "acp",
        "agent",
        "somebody else's agent takes a turn where our own would",
    ),
    (
        "sandbox",
        "warden",
        "the contract is spoken over the warden's protocol",
    ),
    (
        "audit",
        "redact",
        "what is written down has been redacted, and the type proves it",
    ),
    (
        "singularity",
        "native",
        "inside an instance stands the native cage, and nothing else",
    ),
];

/// Crates outside the layers, and all of ours that each may depend on.
const APART: [(&str, &[&str]); 4] = [
    // The static program: the warden, the search, the copy of a workspace, the attack, the native cage and the
    // far sides of ssh, Daytona and Kubernetes in one file.
    (
        "inside",
        &[
            "daytona",
            "kubernetes",
            "warden",
            "native",
            "search",
            "attack",
            "workspace-copy",
            "ssh",
        ],
    ),
    // Stands in for the world in tests of everything up to the gateway.
    (
        "testkit",
        &[
            "types", "policy", "access", "redact", "audit", "store", "chat", "sandbox", "warden",
            "egress", "session", "tools", "agent",
        ],
    ),
    ("promises", &[]),
    ("xtask", &[]),
];

/// Stands for every crate under `crates/backends/`.
const BACKENDS: &str = "backends/*";

/// Stands for every crate under `crates/platforms/`.
const PLATFORMS: &str = "platforms/*";

/// Who may name a backend's crate.
const KNOWS_BACKENDS: [&str; 2] = ["app", "inside"];

/// Who may name a platform's crate.
const KNOWS_PLATFORMS: [&str; 1] = ["app"];

/// Crates that speak SQL to something, and the one crate of ours that may use them.
const SQL: [&str; 5] = [
    "sqlx",
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "diesel",
];
const KNOWS_SQL: &str = "store";

/// Where `unsafe` may be written: in these crates, in files under a `sys` folder or in `sys.rs`.
const UNSAFE: [&str; 2] = ["warden", "native"];

#[test]
fn dependencies_point_one_way() {
    none(&upward_arrows(&Workspace::ours()));
}

#[test]
fn only_the_app_knows_which_backends_exist() {
    none(&backends_named_elsewhere(&Workspace::ours()));
}

#[test]
fn only_the_app_knows_which_platforms_exist() {
    none(&platforms_named_elsewhere(&Workspace::ours()));
}

#[test]
fn only_the_store_knows_sql() {
    none(&sql_elsewhere(&Workspace::ours()));
}

#[test]
fn unsafe_code_stays_in_its_two_places() {
    let workspace = Workspace::ours();
    let mut found = Vec::new();
    for package in &workspace.packages {
        if UNSAFE.contains(&package.name.as_str()) {
            unsafe_outside_sys(&package.folder.join("src"), &mut found);
        } else {
            found.extend(roots_that_do_not_forbid(package));
        }
    }
    none(&found);
}

#[test]
fn every_package_is_private_and_keeps_the_workspace_rules() {
    let mut found = Vec::new();
    for package in &Workspace::ours().packages {
        let manifest = package.folder.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("cargo just read it");
        for (line, why) in [
            (
                "publish.workspace = true",
                "nothing is published by accident",
            ),
            ("license.workspace = true", "one licence for all"),
            ("edition.workspace = true", "one language"),
            ("rust-version.workspace = true", "one toolchain"),
        ] {
            if !text.lines().any(|written| written == line) {
                found.push(format!("{}: lacks `{line}` ({why})", manifest.display()));
            }
        }
        if !text.contains("[lints]\nworkspace = true") {
            found.push(format!(
                "{}: does not inherit the lints",
                manifest.display()
            ));
        }
        if !package.private {
            found.push(format!("{}: can be published", manifest.display()));
        }
    }
    none(&found);
}

#[test]
fn the_rules_catch_what_they_are_for() {
    let bad = Workspace::of(&[
        ("policy", "crates/policy", &["hermetic-store"]),
        ("agent", "crates/agent", &["hermetic-config", "sqlx"]),
        ("session", "crates/session", &["hermetic-docker"]),
        ("docker", "crates/backends/docker", &["hermetic-native"]),
        (
            "sandbox",
            "crates/sandbox",
            &["hermetic-warden", "hermetic-testkit"],
        ),
        ("egress", "crates/egress", &["hermetic-types", "tokio"]),
        ("telegram", "crates/platforms/telegram", &["hermetic-chat"]),
        ("gateway", "crates/gateway", &["hermetic-telegram"]),
        ("utils", "crates/utils", &[]),
    ]);
    assert_eq!(
        upward_arrows(&bad),
        [
            "policy must not depend on store: both stand in line 2 of LAYERS",
            "agent must not depend on config: it stands above, in line 8 of LAYERS",
            "session must not depend on docker: both stand in line 4 of LAYERS",
            "docker must not depend on native: both stand in line 4 of LAYERS",
            "sandbox must not depend on testkit: nothing may, except in a test",
            "utils has no place in LAYERS or APART",
        ]
    );
    assert_eq!(
        backends_named_elsewhere(&bad),
        [
            "session names the backend docker",
            "docker names the backend native",
        ]
    );
    assert_eq!(
        platforms_named_elsewhere(&bad),
        ["gateway names the platform telegram"]
    );
    assert_eq!(
        sql_elsewhere(&bad),
        ["agent depends on sqlx; only store may"]
    );
}

fn none(found: &[String]) {
    assert!(
        found.is_empty(),
        "the shape of the workspace is broken:\n  {}\nThe rules are the tables in tests/arrows.rs.",
        found.join("\n  ")
    );
}

fn upward_arrows(workspace: &Workspace) -> Vec<String> {
    workspace.packages.iter().flat_map(arrows_of).collect()
}

fn arrows_of(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    if let Some((_, allowed)) = APART.iter().find(|(apart, _)| *apart == name) {
        return package
            .ours()
            .filter(|whom| !allowed.contains(whom))
            .map(|whom| format!("{name} must not depend on {whom}: APART does not list it"))
            .collect();
    }
    let Some(height) = layer(name, group(package)) else {
        return vec![format!("{name} has no place in LAYERS or APART")];
    };
    package
        .ours()
        .filter_map(|whom| objection(name, height, whom))
        .map(|why| format!("{name} must not depend on {why}"))
        .collect()
}

fn objection(who: &str, height: usize, whom: &str) -> Option<String> {
    if APART.iter().any(|(apart, _)| *apart == whom) {
        return Some(format!("{whom}: nothing may, except in a test"));
    }
    // Of the crates that no line names, only backends and platforms can be depended on, which stand in
    // one line: anything else is reported as having no place.
    let theirs = layer(whom, Some(BACKENDS))?;
    if theirs < height || is_neighbour(who, whom) {
        return None;
    }
    Some(if theirs == height {
        format!("{whom}: both stand in line {} of LAYERS", height + 1)
    } else {
        format!("{whom}: it stands above, in line {} of LAYERS", theirs + 1)
    })
}

fn is_neighbour(who: &str, whom: &str) -> bool {
    NEIGHBOURS
        .iter()
        .any(|(one, other, _)| (*one, *other) == (who, whom))
}

fn layer(name: &str, group: Option<&str>) -> Option<usize> {
    let line_of = |wanted: &str| LAYERS.iter().position(|line| line.contains(&wanted));
    line_of(name).or_else(|| line_of(group?))
}

fn group(package: &Package) -> Option<&'static str> {
    match package {
        backend if backend.is_backend() => Some(BACKENDS),
        platform if platform.is_platform() => Some(PLATFORMS),
        _ => None,
    }
}

fn platforms_named_elsewhere(workspace: &Workspace) -> Vec<String> {
    let is_platform = |name: &str| {
        let here = |package: &Package| package.name == name && package.is_platform();
        workspace.packages.iter().any(here)
    };
    let others = workspace.packages.iter();
    let others = others.filter(|package| !KNOWS_PLATFORMS.contains(&package.name.as_str()));
    others
        .flat_map(|package| {
            let named = package.ours().filter(|whom| is_platform(whom));
            named.map(|whom| format!("{} names the platform {whom}", package.name))
        })
        .collect()
}

fn backends_named_elsewhere(workspace: &Workspace) -> Vec<String> {
    let backends = [
        "native",
        "local",
        "docker",
        "ssh",
        "modal",
        "daytona",
        "kubernetes",
        "singularity",
    ];
    let is_backend = |name: &str| {
        let here = |package: &Package| package.name == name && package.is_backend();
        backends.contains(&name) || workspace.packages.iter().any(here)
    };
    let mut found = Vec::new();
    for package in &workspace.packages {
        if KNOWS_BACKENDS.contains(&package.name.as_str()) {
            continue;
        }
        let named = package.ours().filter(|whom| {
            let who = package.name.as_str();
            is_backend(whom) && !is_neighbour(who, whom)
        });
        found.extend(named.map(|whom| format!("{} names the backend {whom}", package.name)));
    }
    found
}

fn sql_elsewhere(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for package in workspace
        .packages
        .iter()
        .filter(|one| one.name != KNOWS_SQL)
    {
        let used = package
            .needs
            .iter()
            .filter(|need| SQL.contains(&need.as_str()));
        found.extend(
            used.map(|need| format!("{} depends on {need}; only {KNOWS_SQL} may", package.name)),
        );
    }
    found
}

fn roots_that_do_not_forbid(package: &Package) -> Vec<String> {
    package
        .roots
        .iter()
        .filter(|root| {
            let text = fs::read_to_string(root).expect("cargo named it");
            !text.lines().any(|line| line == "#![forbid(unsafe_code)]")
        })
        .map(|root| format!("{}: lacks `#![forbid(unsafe_code)]`", root.display()))
        .collect()
}

fn unsafe_outside_sys(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a crate has a src folder") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_stem().unwrap_or_default();
        if name == "sys" {
            continue;
        }
        if path.is_dir() {
            unsafe_outside_sys(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            for (number, line) in text.lines().enumerate().filter(|(_, line)| is_unsafe(line)) {
                let place = format!("{}:{}", path.display(), number + 1);
                found.push(format!("{place}: `unsafe` outside sys: {}", line.trim()));
            }
        }
    }
}

fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    [
        "unsafe {",
        "unsafe fn",
        "unsafe impl",
        "unsafe extern",
        "unsafe trait",
        "#[unsafe(",
    ]
    .iter()
    .any(|form| code.contains(form))
}
