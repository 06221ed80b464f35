//! A cluster of the tests' own: the API's shapes on loopback, and pods that really run, as processes in
//! namespaces of their own. It has no scheduler and one node; other people's clients drive it too.

mod admission;
mod answer;
mod cell;
mod controllers;
mod exec;
mod faults;
mod kubelet;
mod objects;
mod watch_events;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use cell::Cell;
pub(crate) use cell::lacking;
pub(crate) use faults::Fault;
use objects::World;

pub(crate) const TOKEN: &str = "the-token";
pub(crate) const NAMESPACE: &str = "boxes";
/// An image that no node can pull.
pub(crate) const NO_IMAGE: &str = "registry.test/nowhere:none";

pub(crate) struct Cluster {
    pub(crate) world: Mutex<World>,
    /// The version of the newest object, for who watches.
    pub(crate) newest: watch::Sender<u64>,
    pub(crate) cells: Mutex<HashMap<(String, String), Arc<Cell>>>,
    pub(crate) folder: tempfile::TempDir,
    /// Counts up to end every exec as a node does whose kubelet dies.
    pub(crate) cuts: watch::Sender<u32>,
    /// Nobody answers, and open connections are gone.
    pub(crate) away: watch::Sender<bool>,
    pub(crate) habits: Mutex<Habits>,
}

/// What it is like.
pub(crate) struct Habits {
    pub(crate) tokens: Vec<String>,
    /// "verb resource", each of which is not allowed.
    pub(crate) denied: BTreeSet<String>,
    pub(crate) faults: Vec<Fault>,
    /// Method and path of each request.
    pub(crate) asked: Vec<String>,
    /// Execs by the fifth version of their protocol.
    pub(crate) speaks_v5: bool,
    /// Shell text that a pod's network is made with.
    pub(crate) network: String,
    /// What an admission webhook adds to each pod.
    pub(crate) added: Option<Value>,
    /// Why a Job's next pods are not made, one word of the cluster for each attempt.
    pub(crate) refusals: Vec<&'static str>,
    /// Pods are placed, and their node has no network for them.
    pub(crate) no_network: bool,
    /// Pods stay away: there is no room.
    pub(crate) full: bool,
    /// A list that is continued is too old.
    pub(crate) lists_expire: bool,
    /// How many objects a page has at most, whatever was asked.
    pub(crate) page: usize,
}

pub(crate) struct Server {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Whoever a pod runs as comes through here.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(folder.path(), mode).unwrap();
        let cluster = Arc::new(Cluster {
            world: Mutex::default(),
            newest: watch::Sender::new(0),
            cells: Mutex::default(),
            folder,
            cuts: watch::Sender::new(0),
            away: watch::Sender::new(false),
            habits: Mutex::new(Habits {
                tokens: vec![TOKEN.to_owned()],
                denied: BTreeSet::new(),
                faults: Vec::new(),
                asked: Vec::new(),
                speaks_v5: true,
                network: String::new(),
                added: None,
                refusals: Vec::new(),
                no_network: false,
                full: false,
                lists_expire: false,
                page: usize::MAX,
            }),
        });
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": labels},
        });
        cluster.put("namespaces", "", namespace);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&cluster));
        // As real servers have it; else each answer waits 40 ms for an acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { cluster, url, task }
    }

    pub(crate) fn habits(&self) -> MutexGuard<'_, Habits> {
        self.cluster.habits.lock().unwrap()
    }

    /// How often something was asked whose method and path begin so.
    pub(crate) fn count(&self, request: &str) -> usize {
        let habits = self.habits();
        let asked = habits.asked.iter();
        asked.filter(|asked| asked.starts_with(request)).count()
    }

    pub(crate) fn objects(&self, plural: &str) -> Vec<Value> {
        self.cluster.world().all(plural, NAMESPACE)
    }

    /// A kubelet dies: every exec ends with `Success`, and what ran goes on.
    pub(crate) fn cut_links(&self) {
        self.cluster.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn be_away(&self, away: bool) {
        self.cluster.away.send_replace(away);
    }

    /// Of a story's end: whatever still runs is ended.
    pub(crate) async fn end(&self) {
        let cells: Vec<_> = {
            let mut cells = self.cluster.cells.lock().unwrap();
            cells.drain().map(|(_, cell)| cell).collect()
        };
        for cell in cells {
            cell.kill().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(crate) fn habits(&self) -> MutexGuard<'_, Habits> {
        self.habits.lock().unwrap()
    }

    pub(crate) fn put(&self, plural: &str, namespace: &str, object: Value) -> Value {
        let (object, version) = self.world().put(plural, namespace, object);
        self.newest.send_replace(version);
        object
    }

    /// Changes an object that is still the one of that uid.
    pub(crate) fn change(
        &self,
        plural: &str,
        (namespace, name, uid): (&str, &str, &str),
        change: impl FnOnce(&mut Value),
    ) -> bool {
        let mut world = self.world();
        let Some(mut object) = world.get(plural, namespace, name) else {
            return false;
        };
        if object["metadata"]["uid"] != uid {
            return false;
        }
        change(&mut object);
        let (_, version) = world.put(plural, namespace, object);
        drop(world);
        self.newest.send_replace(version);
        true
    }

    pub(crate) fn remove(&self, plural: &str, namespace: &str, name: &str) {
        let version = self.world().remove(plural, namespace, name);
        self.newest.send_replace(version);
    }

    pub(crate) fn path(&self, of: &str, name: &str) -> PathBuf {
        self.folder.path().join(of).join(name)
    }
}

async fn handle(State(cluster): State<Arc<Cluster>>, request: Request) -> Response {
    answer::answer(cluster, request).await
}
