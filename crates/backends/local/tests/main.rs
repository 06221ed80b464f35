//! The local backend against the contract.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hermetic_local::{Config, Local};
use hermetic_sandbox::conformance::Candidate;
use hermetic_sandbox::{Backend, SystemView};
use hermetic_types::InstallationId;

hermetic_sandbox::conformance!(Some(candidate()));

fn candidate() -> Candidate {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Candidate {
        backend: open(&folder.path().join("one")),
        other: open(&folder.path().join("two")),
        installation: InstallationId::random(),
        system: SystemView::Host,
        keeps_limits: false,
        is_sealed: false,
        resumes: true,
        holds: Box::new(folder),
    }
}

fn open(state: &Path) -> Arc<dyn Backend> {
    std::fs::create_dir_all(state).expect("a folder can be made");
    let local = Local::open(Config {
        state: state.to_owned(),
        program: hermetic_embedded::WARDEN,
        workdir: state.to_owned(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]),
    });
    Arc::new(local.expect("the local backend opens"))
}
