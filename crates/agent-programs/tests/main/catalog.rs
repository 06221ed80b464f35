//! From presets to programs.

use std::collections::BTreeMap;
use std::fs;

use hermetic_acp::{AgentPrograms as _, AgentUnavailable};
use hermetic_agent_programs::{AgentFolder, InstalledPrograms, PRESETS, ProgramBackend};
use hermetic_types::{BackendKind, Secret};

use crate::Lab;

const KEY: &str = "sk-ant-the-real-one";

const NEAR: BackendKind = BackendKind::Native;
const COPIED: BackendKind = BackendKind::Kubernetes;
const FAR: BackendKind = BackendKind::Ssh;

fn programs(lab: &Lab, keys: &[&str]) -> InstalledPrograms {
    let keys = keys.iter().map(|&name| (name.to_owned(), Secret::new(KEY)));
    let reach = |backend| match backend {
        NEAR => ProgramBackend::Near,
        COPIED => ProgramBackend::Copied,
        _ => ProgramBackend::Far("far away".to_owned()),
    };
    InstalledPrograms::new(lab.folder(), keys.collect::<BTreeMap<_, _>>(), reach)
}

/// As if it had been installed.
fn put(folder: &AgentFolder, name: &str) {
    fs::create_dir_all(folder.tree(name)).unwrap();
    let record = r#"{"package":"p","version":"9.9.9","files":1,"bytes":1,"checksum":"x"}"#;
    fs::write(folder.root().join(name).join("installed"), record).unwrap();
}

fn why_not(programs: &InstalledPrograms, name: &str) -> String {
    programs.program(name, NEAR).unwrap_err().to_string()
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
    let programs = programs(&lab, &variables);
    for preset in PRESETS {
        let program = programs.program(preset.name, NEAR).unwrap();
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
            .list(NEAR)
            .iter()
            .all(|listing| listing.missing.is_none())
    );
}

#[test]
fn those_whose_keys_are_there_are_foreseen_once_agents_are_kept() {
    let lab = Lab::new();
    let programs = programs(&lab, &["ANTHROPIC_API_KEY"]);
    let none = programs.foreseen(&[NEAR]);
    assert!(none.is_empty(), "nobody installs agents here");
    fs::create_dir_all(lab.folder().root()).unwrap();
    let names = |backends: &[BackendKind]| {
        let foreseen = programs.foreseen(backends).into_iter();
        foreseen.map(|program| program.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[NEAR]), ["claude", "opencode"]);
    let hosts = programs.foreseen(&[NEAR]).remove(0).hosts;
    assert_eq!(hosts, ["api.anthropic.com"]);
    assert!(names(&[FAR]).is_empty());
    // Whichever of them the usual one is.
    assert_eq!(names(&[FAR, NEAR]), ["claude", "opencode"]);
    // Installed or not, none is started before it is there.
    assert!(why_not(&programs, "claude").contains("is not installed"));
}

#[test]
fn where_nothing_can_be_shown_a_copy_is_asked_for_by_its_checksum() {
    let lab = Lab::new();
    for name in ["claude", "node"] {
        put(&lab.folder(), name);
    }
    let programs = programs(&lab, &["ANTHROPIC_API_KEY"]);
    let program = programs.program("claude", COPIED).unwrap();
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
    // Of one installation, each conversation gets what its own backend needs.
    let near = programs.program("claude", NEAR).unwrap();
    assert_eq!((near.mounts.len(), near.uploads.len()), (2, 0));
    let far = programs.program("claude", FAR).unwrap_err().to_string();
    assert!(far.contains("far away"), "{far}");
    let listed = programs.list(FAR);
    let all_lack = listed.iter().all(|agent| agent.missing.is_some());
    assert!(all_lack, "{listed:?}");
}

#[test]
fn what_is_missing_is_said_with_what_to_type() {
    let lab = Lab::new();
    let near = |keys: &[&str]| programs(&lab, keys);
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
    let usable = near(&["ANTHROPIC_API_KEY"]).program("claude", NEAR);
    assert!(usable.is_ok());

    let unknown = near(&[]).program("clade", NEAR).unwrap_err();
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
    let program = programs(&lab, &["OPENAI_API_KEY"]).program("opencode", NEAR);
    let program = program.unwrap();
    assert_eq!(program.hosts, ["api.openai.com"]);
    assert!(!program.environment.contains_key("ANTHROPIC_API_KEY"));
}
