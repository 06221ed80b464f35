//! What a script finds inside: its own file, the module, the socket.

use std::collections::BTreeMap;

use futures::future;
use hermetic_warden::client::{InsideListener, WardenCallError, WardenServices};
use hermetic_warden::protocol::{FileKind, ListenEndpoint, PathAt, WriteRequest};
use uuid::Uuid;

/// A folder that nobody can guess, and a token that only this run holds.
#[derive(Debug)]
pub(super) struct ScriptFolder {
    folder: String,
    token: String,
    /// Others may have made it, so no link on the way to it is followed.
    foreign: bool,
}

pub(super) const TMP: &str = "/tmp";
pub(super) const FOLDER: &str = "hermes_exec_";

const SCRIPT: &str = "script.py";
const MODULE: &str = "hermes_tools.py";
pub(super) const SOCKET: &str = "rpc.sock";

/// Connections relayed at once; what the module opens is fewer.
const CONNECTIONS: u16 = 16;
/// Entries removed at most; a script that made more has left them.
const MOST_ENTRIES: usize = 2000;

impl ScriptFolder {
    pub(super) fn choose() -> Self {
        let random = || Uuid::new_v4().simple().to_string();
        Self {
            folder: format!("{TMP}/{FOLDER}{}", random()),
            token: format!("{}{}", random(), random()),
            foreign: false,
        }
    }

    /// A folder that was found, to be cleared.
    pub(super) fn left(name: &str) -> Self {
        Self {
            folder: format!("{TMP}/{name}"),
            token: String::new(),
            foreign: true,
        }
    }

    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn script(&self) -> String {
        self.path(SCRIPT)
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        [
            ("HERMES_RPC_SOCKET", self.path(SOCKET)),
            ("HERMES_RPC_TOKEN", self.token.clone()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("PYTHONIOENCODING", "utf-8".to_owned()),
            // What was printed before a timeout is seen.
            ("PYTHONUNBUFFERED", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    pub(super) async fn prepare(
        &self,
        warden: &WardenServices,
        script: &[u8],
        module: &str,
    ) -> Result<InsideListener, WardenCallError> {
        // The first file makes the folder.
        self.write(warden, SCRIPT, script).await?;
        let socket = ListenEndpoint::Unix(self.path(SOCKET).into());
        let module = self.write(warden, MODULE, module.as_bytes());
        let (listener, ()) = future::try_join(warden.listen(socket, CONNECTIONS), module).await?;
        Ok(listener)
    }

    /// Everything in the folder, and the folder. What cannot be removed goes with the sandbox.
    pub(super) async fn clear(&self, warden: &WardenServices) {
        let mut left = MOST_ENTRIES;
        let mut open = Vec::new();
        self.empty(warden, None, &mut open, &mut left).await;
        while let Some((folder, emptied)) = open.pop() {
            if emptied {
                let _ = warden.remove(self.within(Some(&folder))).await;
            } else {
                open.push((folder.clone(), true));
                self.empty(warden, Some(&folder), &mut open, &mut left)
                    .await;
            }
        }
        if let Err(error) = warden.remove(self.within(None)).await {
            tracing::debug!(%error, "a script's folder is left");
        }
    }

    async fn empty(
        &self,
        warden: &WardenServices,
        folder: Option<&str>,
        open: &mut Vec<(String, bool)>,
        left: &mut usize,
    ) {
        let Ok(entries) = warden.list_dir(self.within(folder)).await else {
            return;
        };
        for entry in entries.into_iter().take(*left) {
            *left -= 1;
            let Ok(name) = String::from_utf8(entry.name.0) else {
                continue;
            };
            let path = folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
            if entry.kind == FileKind::Directory {
                open.push((path, false));
            } else {
                // It may be gone already: the socket goes by itself.
                let _ = warden.remove(self.within(Some(&path))).await;
            }
        }
    }

    /// Links that lead out are not followed: the script may have made some.
    fn within(&self, path: Option<&str>) -> PathAt {
        match path {
            Some(path) if self.foreign => PathAt::resolved(self.path(path)),
            None if self.foreign => PathAt::resolved(self.folder.as_str()),
            Some(path) => PathAt::beneath(self.folder.as_str(), path),
            None => PathAt::anywhere(self.folder.as_str()),
        }
    }

    async fn write(
        &self,
        warden: &WardenServices,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), WardenCallError> {
        let mut write = WriteRequest::new(PathAt::anywhere(self.path(name)));
        write.mode = 0o600;
        write.parents = true;
        let mut file = warden.write_file(write).await?;
        file.write(bytes).await?;
        file.finish().await
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}
