//! A service that speaks as Daytona documents it: sandboxes by REST, each with a toolbox.
//!
//! Sandboxes are real: processes in namespaces of their own, with a disk that outlives a stop. The
//! service can be told to fail in the ways a service does.

mod cage;
mod faults;
mod files;
mod pty;
mod sandboxes;
mod sessions;
mod toolbox;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::serve::ListenerExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use cage::Cage;
pub(crate) use cage::lacking;
pub(crate) use faults::{Fault, How};
use pty::Terminal;
use sessions::Session;

pub(crate) const KEY: &str = "dtn_test_key";

/// The whole provider.
pub(crate) struct Cloud {
    pub(crate) address: String,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) world: Mutex<World>,
    /// Counts up to cut every terminal's connection.
    pub(crate) cuts: watch::Sender<u32>,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) sandboxes: BTreeMap<String, Arc<Machine>>,
    pub(crate) faults: Vec<Fault>,
    /// Method and path of every request.
    pub(crate) asked: Vec<String>,
    /// A state in which new sandboxes stay.
    pub(crate) stuck: Option<String>,
    /// New sandboxes have a network, whatever was asked.
    pub(crate) leaky: bool,
}

/// One sandbox.
pub(crate) struct Machine {
    pub(crate) id: String,
    pub(crate) facts: Mutex<Value>,
    pub(crate) cage: tokio::sync::Mutex<Cage>,
    pub(crate) terminals: Mutex<BTreeMap<String, Arc<Terminal>>>,
    pub(crate) sessions: Mutex<BTreeMap<String, Arc<Session>>>,
}

pub(crate) struct Server {
    pub(crate) cloud: Arc<Cloud>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let cloud = Arc::new(Cloud {
            address,
            folder: tempfile::tempdir().unwrap(),
            world: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let routes = Router::new()
            .nest("/api", sandboxes::routes())
            .nest("/toolbox/{sandbox}", toolbox::routes())
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(Arc::clone(&cloud), faults::stand_before))
            .with_state(Arc::clone(&cloud));
        // As real services have it; else each answer waits 40 ms for an acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { cloud, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/api", self.cloud.address)
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.cloud.world().faults.push(fault);
    }

    pub(crate) fn stick_in(&self, state: Option<&str>) {
        self.cloud.world().stuck = state.map(str::to_owned);
    }

    pub(crate) fn cut_links(&self) {
        self.cloud.cuts.send_modify(|count| *count += 1);
    }

    /// How often that was asked.
    pub(crate) fn count(&self, request: &str) -> usize {
        let world = self.cloud.world();
        world.asked.iter().filter(|asked| *asked == request).count()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let world = self.cloud.world();
        let names = world.sandboxes.values().map(|machine| machine.fact("name"));
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn machine(&self, name: &str) -> Arc<Machine> {
        self.cloud.find(name).expect("there is such a sandbox")
    }

    /// All that the idle time of each sandbox brings about.
    pub(crate) async fn let_idle_time_pass(&self) {
        let all: Vec<_> = self.cloud.world().sandboxes.values().cloned().collect();
        for machine in all {
            if machine.fact("autoStopInterval").as_u64() > Some(0) {
                self.cloud.stop(&machine).await;
            }
        }
    }

    pub(crate) async fn end(self) {
        let all: Vec<_> = self.cloud.world().sandboxes.values().cloned().collect();
        for machine in all {
            self.cloud.destroy(&machine).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cloud {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// By id or name.
    pub(crate) fn find(&self, which: &str) -> Option<Arc<Machine>> {
        let world = self.world();
        let mut all = world.sandboxes.values();
        all.find(|machine| machine.id == which || machine.fact("name") == which)
            .cloned()
    }
}

impl Machine {
    pub(crate) fn fact(&self, name: &str) -> Value {
        self.facts.lock().unwrap()[name].clone()
    }

    pub(crate) fn set(&self, name: &str, value: impl Into<Value>) {
        self.facts.lock().unwrap()[name] = value.into();
    }

    pub(crate) fn state(&self) -> String {
        self.fact("state").as_str().unwrap_or_default().to_owned()
    }
}
