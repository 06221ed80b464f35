use std::time::Duration;

use hermetic_agent::prompt::{NetworkFacts, PersistenceFacts, PromptFacts, SharedFolder, system};
use hermetic_types::{BackendKind, Boundary, SandboxLimits};

fn sealed() -> PromptFacts {
    PromptFacts {
        backend: BackendKind::Native,
        boundary: Boundary::Sealed,
        network: NetworkFacts::Closed,
        workspace: "/workspace".to_owned(),
        shared: Vec::new(),
        limits: Some(SandboxLimits::default()),
        persistence: PersistenceFacts::Ephemeral,
        lifetime: Some(Duration::from_secs(3600)),
        max_turns: 90,
        chat: "Telegram".to_owned(),
        files: true,
        tasks: None,
        instructions: None,
        character: None,
        project_notes: false,
        remembered: Vec::new(),
    }
}

#[test]
fn sealed_and_closed() {
    insta::assert_snapshot!(system(&sealed()));
}

#[test]
fn sealed_with_some_hosts_and_files_kept() {
    insta::assert_snapshot!(system(&PromptFacts {
        backend: BackendKind::Docker,
        network: NetworkFacts::Allow(vec!["pypi.org".to_owned(), "*.pythonhosted.org".to_owned()]),
        persistence: PersistenceFacts::Kept,
        shared: vec![
            SharedFolder {
                path: "/data".to_owned(),
                writable: false,
            },
            SharedFolder {
                path: "/out".to_owned(),
                writable: true,
            },
        ],
        instructions: Some("Answer in Esperanto.".to_owned()),
        ..sealed()
    }));
}

#[test]
fn on_the_host() {
    insta::assert_snapshot!(system(&PromptFacts {
        backend: BackendKind::Local,
        boundary: Boundary::Judged,
        network: NetworkFacts::Open,
        workspace: "/home/ada".to_owned(),
        limits: None,
        persistence: PersistenceFacts::Kept,
        lifetime: None,
        chat: "a terminal".to_owned(),
        ..sealed()
    }));
}

#[test]
fn an_empty_allowlist_is_a_closed_network() {
    let closed = system(&sealed());
    let empty = system(&PromptFacts {
        network: NetworkFacts::Allow(Vec::new()),
        ..sealed()
    });
    assert_eq!(closed, empty);
}

#[test]
fn open_tasks_leave_the_prompt_as_it_was() {
    let with = |tasks: &str| {
        system(&PromptFacts {
            tasks: Some(tasks.to_owned()),
            ..sealed()
        })
    };
    let shown = with("- water the plants");
    assert!(shown.contains("water the plants"), "{shown}");
    // A provider's cache knows it by its bytes.
    assert_eq!(shown, with("- water the plants"));
}
