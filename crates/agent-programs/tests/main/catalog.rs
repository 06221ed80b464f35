//! From presets to programs.

use std::collections::BTreeMap;
use std::fs;

use hermetic_acp::{AgentPrograms as _, AgentUnavailable};
use hermetic_agent_programs::{AgentFolder, InstalledPrograms, PRESETS, ProgramBackend};
use hermetic_types::Secret;

use crate::Lab;

const KEY: &str = "sk-ant-the-real-one";

fn programs(lab: &Lab, keys: &[&str], backend: ProgramBackend) -> InstalledPrograms {
    let keys = keys.iter().map(|&name| (name.to_owned(), Secret::new(KEY)));
    InstalledPrograms::new(lab.folder(), keys.collect::<BTreeMap<_, _>>(), backend)
}

/// As if it had been installed.
fn put(folder: &AgentFolder, name: &str) {
    fs::create_dir_all(folder.tree(name)).unwrap();
    let record = r#"{"package":"p","version":"9.9.9","files":1,"bytes":1,"checksum":"x"}"#;
    fs::write(folder.root().join(name).join("installed"), record).unwrap();
}

fn why_not(programs: &InstalledPrograms, name: &str) -> String {
    programs.program(name).unwrap_err().to_string()
}

#[test]
fn the_key_is_in_nothing_that_goes_inside() {
    let lab = Lab::new();
    let variables: Vec<_> = PRESETS
        .iter()
        .flat_map(|preset| preset.keys.iter().map(|key| key.variable))
        .collect();
    for name in PRESETS.iter().map(|preset| preset.name).chain(["node"]) {
        put(&lab.folder(), name);
    }
    let programs = programs(&lab, &variables, ProgramBackend::Near);
    for preset in PRESETS {
        let program = programs.program(preset.name).unwrap();
        let inside = (&program.command, &program.environment, &program.files);
        assert!(!format!("{inside:?}").contains(KEY), "{}", preset.name);
        for credential in &program.credentials {
            assert_eq!(credential.secret.expose(), KEY);
            let placeholder = &program.environment[&credential.variable];
            assert!(placeholder.starts_with("hermetic-placeholder-"));
            assert!(program.hosts.contains(&credential.host));
        }
        assert_eq!(program.mounts.len(), 1 + usize::from(preset.needs_node()));
        for mount in &program.mounts {
            assert!(mount.inside.starts_with("/agents") && mount.outside.ends_with("tree"));
        }
    }
    assert!(
        programs
            .list()
            .iter()
            .all(|listing| listing.missing.is_none())
    );
}

#[test]
fn those_whose_keys_are_there_are_foreseen_once_agents_are_kept() {
    let lab = Lab::new();
    let near = programs(&lab, &["ANTHROPIC_API_KEY"], ProgramBackend::Near);
    assert!(near.foreseen().is_empty(), "nobody installs agents here");
    fs::create_dir_all(lab.folder().root()).unwrap();
    let names = |programs: &InstalledPrograms| {
        let foreseen = programs.foreseen().into_iter();
        foreseen.map(|program| program.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&near), ["claude", "opencode"]);
    let hosts: Vec<_> = near.foreseen().remove(0).hosts;
    assert_eq!(hosts, ["api.anthropic.com"]);
    let far = programs(
        &lab,
        &["ANTHROPIC_API_KEY"],
        ProgramBackend::Far("far".to_owned()),
    );
    assert!(names(&far).is_empty());
    // Installed or not, none is started before it is there.
    assert!(why_not(&near, "claude").contains("is not installed"));
}

#[test]
fn where_nothing_can_be_shown_a_copy_is_asked_for_by_its_checksum() {
    let lab = Lab::new();
    for name in ["claude", "node"] {
        put(&lab.folder(), name);
    }
    let program = programs(&lab, &["ANTHROPIC_API_KEY"], ProgramBackend::Copied);
    let program = program.program("claude").unwrap();
    assert!(program.mounts.is_empty());
    let names: Vec<_> = program
        .uploads
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["claude", "node"]);
    for upload in &program.uploads {
        assert_eq!(upload.mark, "x");
        let word = program
            .command
            .iter()
            .find(|word| word.starts_with(upload.inside.to_str().unwrap()));
        assert!(
            word.is_some() && upload.outside.ends_with("tree"),
            "{program:?}"
        );
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_type() {
    let lab = Lab::new();
    let near = |keys: &[&str]| programs(&lab, keys, ProgramBackend::Near);
    let absent = why_not(&near(&["ANTHROPIC_API_KEY"]), "claude");
    assert!(
        absent.contains("`hermetic agents install claude`"),
        "{absent}"
    );
    put(&lab.folder(), "claude");
    // Its interpreter belongs to it.
    let absent = why_not(&near(&["ANTHROPIC_API_KEY"]), "claude");
    assert!(
        absent.contains("`hermetic agents install claude`"),
        "{absent}"
    );
    put(&lab.folder(), "node");
    let keyless = why_not(&near(&[]), "claude");
    assert!(keyless.contains("ANTHROPIC_API_KEY in .env"), "{keyless}");
    assert!(keyless.contains("A subscription"), "{keyless}");
    let far = programs(
        &lab,
        &["ANTHROPIC_API_KEY"],
        ProgramBackend::Far("far away".into()),
    );
    assert!(why_not(&far, "claude").contains("far away"));
    assert!(near(&["ANTHROPIC_API_KEY"]).program("claude").is_ok());

    let unknown = near(&[]).program("clade").unwrap_err();
    assert!(matches!(unknown, AgentUnavailable::Unknown { .. }));
    assert!(unknown.to_string().contains("claude, codex"), "{unknown}");
    // A record that somebody damaged is no agent.
    fs::write(lab.folder().root().join("claude/installed"), "{").unwrap();
    let damaged = why_not(&near(&["ANTHROPIC_API_KEY"]), "claude");
    assert!(
        damaged.contains("`hermetic agents update claude`"),
        "{damaged}"
    );
}

#[test]
fn one_of_several_keys_is_enough_where_any_will_do() {
    let lab = Lab::new();
    put(&lab.folder(), "opencode");
    let program = programs(&lab, &["OPENAI_API_KEY"], ProgramBackend::Near).program("opencode");
    let program = program.unwrap();
    assert_eq!(program.hosts, ["api.openai.com"]);
    assert!(!program.environment.contains_key("ANTHROPIC_API_KEY"));
}
