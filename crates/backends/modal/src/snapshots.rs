//! `modal_snapshots.json`: which image holds the files of which stopped sandbox.
//!
//! The file and its layout are Hermes's: one flat object, `direct:<task>` to an image's id. Older
//! releases of it wrote the bare task, which is migrated when it is looked at. Entries that are not
//! of our sandboxes are somebody's, and stay as they are.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hermetic_sandbox::BackendError;
use hermetic_types::SandboxId;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

#[derive(Clone, Debug)]
pub(crate) struct SnapshotFile(PathBuf);

const DIRECT: &str = "direct:";

/// Many thousands of conversations; a longer file is something else.
const LONGEST_SNAPSHOT_FILE: u64 = 16 << 20;

impl SnapshotFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) async fn get(&self, id: &SandboxId) -> Result<Option<String>, BackendError> {
        if !is_ours(id.as_str()) {
            return Ok(None);
        }
        let id = id.clone();
        let image = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        self.change(move |entries| {
            let key = format!("{DIRECT}{id}");
            if let Some(old) = entries.remove(id.as_str()) {
                entries.entry(key.clone()).or_insert(old);
            }
            image(entries.get(&key))
        })
        .await
    }

    pub(crate) async fn put(&self, id: &SandboxId, image: String) -> Result<(), BackendError> {
        let key = format!("{DIRECT}{id}");
        self.change(move |entries| {
            entries.insert(key, Value::String(image));
        })
        .await
    }

    pub(crate) async fn remove(&self, id: &SandboxId) -> Result<(), BackendError> {
        if !is_ours(id.as_str()) {
            return Ok(());
        }
        let key = format!("{DIRECT}{id}");
        self.change(move |entries| {
            entries.remove(&key);
        })
        .await
    }

    /// Those of our sandboxes.
    pub(crate) async fn ids(&self) -> Result<Vec<SandboxId>, BackendError> {
        self.change(|entries| {
            let tasks = entries.keys().filter_map(|key| key.strip_prefix(DIRECT));
            tasks
                .filter(|task| is_ours(task))
                .filter_map(|task| task.parse().ok())
                .collect()
        })
        .await
    }

    /// Reads, changes and, where that changed anything, writes the whole file.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Map<String, Value>) -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let path = self.0.clone();
        let step = format!("keep {}", path.display());
        let changed = spawn_blocking(move || {
            let _lock = lock(&path)?;
            let before = read(&path)?;
            let mut entries = before.clone();
            let outcome = change(&mut entries);
            // A look writes nothing: the file may be on a disk that is full, or somebody else's at
            // this moment.
            if entries != before {
                write(&path, &entries)?;
            }
            io::Result::Ok(outcome)
        })
        .await;
        changed
            .unwrap_or_else(|_| Err(io::Error::other("it was given up")))
            .map_err(|error| BackendError::failed(step, error))
    }
}

/// Named as our sandboxes are. A task of Hermes's, such as `default`, is none, whatever an id may
/// otherwise be.
fn is_ours(task: &str) -> bool {
    task.len() == 16 && task.chars().all(|c| c.is_ascii_hexdigit())
}

/// Two of our processes may stop sandboxes at once. A file of its own, for the other one is replaced.
fn lock(path: &Path) -> io::Result<File> {
    let lock = File::create(path.with_extension("lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

fn read(path: &Path) -> io::Result<Map<String, Value>> {
    match fs::metadata(path).map(|about| about.len()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(error),
        Ok(length) if length > LONGEST_SNAPSHOT_FILE => {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path)?;
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // Not overwritten: it may be somebody's in a shape we do not know.
    serde_json::from_str(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// A crash leaves the old file or the new one.
fn write(path: &Path, entries: &Map<String, Value>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut fresh = NamedTempFile::new_in(folder)?;
    let mut text = serde_json::to_vec_pretty(entries)?;
    text.push(b'\n');
    fresh.write_all(&text)?;
    // On the disk before it takes the other's place: after a power cut an empty file would lose
    // every conversation's files.
    fresh.as_file().sync_all()?;
    fresh.persist(path)?;
    // And the folder, in which the new name is written.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Shelf {
        folder: tempfile::TempDir,
        snapshots: SnapshotFile,
    }

    fn shelf(content: &str) -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("modal_snapshots.json");
        fs::write(&path, content).unwrap();
        Shelf {
            snapshots: SnapshotFile::at(path),
            folder,
        }
    }

    impl Shelf {
        fn content(&self) -> Value {
            let path = self.folder.path().join("modal_snapshots.json");
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_found_again_and_strangers_stay() {
        let shelf = shelf(r#"{"direct:default": "im-theirs", "managed:x": {"odd": 1}}"#);
        let id = SandboxId::random();
        assert_eq!(shelf.snapshots.get(&id).await.unwrap(), None);
        shelf.snapshots.put(&id, "im-1".to_owned()).await.unwrap();
        assert_eq!(
            shelf.snapshots.get(&id).await.unwrap().as_deref(),
            Some("im-1")
        );
        assert_eq!(
            shelf.snapshots.ids().await.unwrap(),
            std::slice::from_ref(&id)
        );
        shelf.snapshots.remove(&id).await.unwrap();
        let theirs = json!({"direct:default": "im-theirs", "managed:x": {"odd": 1}});
        assert_eq!(shelf.content(), theirs);
    }

    #[tokio::test]
    async fn a_bare_key_is_migrated_and_does_not_win() {
        let (old, both) = (SandboxId::random(), SandboxId::random());
        let shelf = shelf(&format!(
            r#"{{"{old}": "im-old", "{both}": "im-older", "direct:{both}": "im-newer"}}"#
        ));
        let image = |id: SandboxId| {
            let snapshots = shelf.snapshots.clone();
            async move { snapshots.get(&id).await.unwrap().unwrap() }
        };
        assert_eq!(image(old.clone()).await, "im-old");
        assert_eq!(image(both.clone()).await, "im-newer");
        let expected =
            json!({format!("direct:{old}"): "im-old", format!("direct:{both}"): "im-newer"});
        assert_eq!(shelf.content(), expected);
    }

    #[tokio::test]
    async fn a_file_that_is_not_one_is_left_alone() {
        let shelf = shelf("not json {");
        let id = SandboxId::random();
        assert!(shelf.snapshots.put(&id, "im-1".to_owned()).await.is_err());
        let path = shelf.folder.path().join("modal_snapshots.json");
        assert_eq!(fs::read_to_string(path).unwrap(), "not json {");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_at_once_lose_nothing() {
        let shelf = shelf("{}");
        let puts = (0..50).map(|n| {
            let snapshots = shelf.snapshots.clone();
            tokio::spawn(async move {
                let id = SandboxId::random();
                snapshots.put(&id, format!("im-{n}")).await.unwrap();
            })
        });
        for put in puts.collect::<Vec<_>>() {
            put.await.unwrap();
        }
        assert_eq!(shelf.snapshots.ids().await.unwrap().len(), 50);
        // Nothing but the file and its lock.
        assert_eq!(fs::read_dir(shelf.folder.path()).unwrap().count(), 2);
    }
}
