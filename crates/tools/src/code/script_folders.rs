//! The folders that scripts have inside, and those that nobody has any more.
//!
//! A gateway that is killed in the middle of a script leaves its folder in a sandbox that is kept. The
//! first script of the next gateway there finds and removes it. In a sandbox of its own `/tmp` is the
//! conversation's alone; on a machine that others use, only what is old is taken for left.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_sandbox::Sandbox;
use hermetic_types::{Boundary, SandboxId, Timestamp};
use hermetic_warden::protocol::{FileKind, PathAt};

use super::script_folder::{FOLDER, SOCKET, ScriptFolder, TMP};

/// A folder without a socket is being set up, or its script is over.
const SETTING_UP: Duration = Duration::from_secs(600);
/// Nobody lets a script run for longer.
const LONGEST_SCRIPT: Duration = Duration::from_secs(86_400);
/// Sandboxes whose looking into is remembered; looking twice does no harm.
const MOST_REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct ScriptFolders(Mutex<KnownFolders>);

#[derive(Debug, Default)]
struct KnownFolders {
    taken: HashSet<String>,
    looked_into: HashSet<SandboxId>,
}

/// A place that a script of this gateway has.
#[derive(Debug)]
pub(super) struct FolderClaim {
    script_folders: Arc<ScriptFolders>,
    pub(super) place: ScriptFolder,
}

impl ScriptFolders {
    pub(super) fn take(self: &Arc<Self>) -> FolderClaim {
        let place = ScriptFolder::choose();
        // Entered before it is made: the tidying of another conversation must not take it for left.
        self.known().taken.insert(place.folder().to_owned());
        FolderClaim {
            script_folders: Arc::clone(self),
            place,
        }
    }

    /// Removes what an earlier gateway left here; at the first script in a sandbox only.
    pub(super) async fn tidy(&self, sandbox: &Sandbox, now: Timestamp) {
        if !self.is_first_look(sandbox.id()) {
            return;
        }
        let warden = sandbox.warden();
        let Ok(entries) = warden.list_dir(PathAt::anywhere(TMP)).await else {
            return;
        };
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name.0);
            if entry.kind != FileKind::Directory || !name.starts_with(FOLDER) {
                continue;
            }
            let place = ScriptFolder::left(&name);
            if self.known().taken.contains(place.folder()) {
                continue;
            }
            if sandbox.boundary() == Boundary::Sealed || is_old(sandbox, &place, now).await {
                tracing::info!(
                    folder = place.folder(),
                    "a killed script's folder is removed"
                );
                place.clear(warden).await;
            }
        }
    }

    fn is_first_look(&self, sandbox: &SandboxId) -> bool {
        let mut known = self.known();
        if known.looked_into.len() >= MOST_REMEMBERED {
            known.looked_into.clear();
        }
        known.looked_into.insert(sandbox.clone())
    }

    fn known(&self) -> MutexGuard<'_, KnownFolders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FolderClaim {
    fn drop(&mut self) {
        self.script_folders
            .known()
            .taken
            .remove(self.place.folder());
    }
}

async fn is_old(sandbox: &Sandbox, place: &ScriptFolder, now: Timestamp) -> bool {
    let stat = |path: String| sandbox.warden().stat(PathAt::resolved(path));
    let Ok(folder) = stat(place.folder().to_owned()).await else {
        return false;
    };
    let used = stat(place.path(SOCKET)).await.is_ok();
    let enough = if used { LONGEST_SCRIPT } else { SETTING_UP };
    now.since(Timestamp::from_seconds(folder.modified)) > enough
}
