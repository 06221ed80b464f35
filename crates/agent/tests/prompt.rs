use std::time::Duration;

use hermetic_agent::prompt::{Facts, Network, Persistence, Shared, system};
use hermetic_types::{BackendKind, Boundary, Limits};

fn sealed() -> Facts {
    Facts {
        backend: BackendKind::Native,
        boundary: Boundary::Sealed,
        network: Network::Closed,
        workspace: "/workspace".to_owned(),
        shared: Vec::new(),
        limits: Some(Limits::default()),
        persistence: Persistence::Ephemeral,
        lifetime: Some(Duration::from_secs(3600)),
        max_turns: 90,
        chat: "Telegram".to_owned(),
        files: true,
        instructions: None,
    }
}

#[test]
fn sealed_and_closed() {
    insta::assert_snapshot!(system(&sealed()));
}

#[test]
fn sealed_with_some_hosts_and_files_kept() {
    insta::assert_snapshot!(system(&Facts {
        backend: BackendKind::Docker,
        network: Network::Allow(vec!["pypi.org".to_owned(), "*.pythonhosted.org".to_owned()]),
        persistence: Persistence::Kept,
        shared: vec![
            Shared {
                path: "/data".to_owned(),
                writable: false,
            },
            Shared {
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
    insta::assert_snapshot!(system(&Facts {
        backend: BackendKind::Local,
        boundary: Boundary::Judged,
        network: Network::Open,
        workspace: "/home/ada".to_owned(),
        limits: None,
        persistence: Persistence::Kept,
        lifetime: None,
        chat: "a terminal".to_owned(),
        ..sealed()
    }));
}

#[test]
fn an_empty_allowlist_is_a_closed_network() {
    let closed = system(&sealed());
    let empty = system(&Facts {
        network: Network::Allow(Vec::new()),
        ..sealed()
    });
    assert_eq!(closed, empty);
}
