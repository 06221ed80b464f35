//! `/sandbox`: making, finding, stopping and deleting.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::cage::Cage;
use super::faults::refuse;
use super::{Cloud, Machine};

type Here = State<Arc<Cloud>>;

/// Few on a page, so that everybody has to turn it.
const PAGE: usize = 2;
/// What a state takes at the least, so that nobody can do without waiting.
const WHILE: Duration = Duration::from_millis(30);

pub(crate) fn routes() -> Router<Arc<Cloud>> {
    Router::new()
        .route("/sandbox", post(create).get(list))
        .route("/sandbox/{which}", get(look).delete(delete))
        .route("/sandbox/{which}/start", post(start))
        .route("/sandbox/{which}/stop", post(stop))
        .route("/sandbox/{which}/last-activity", post(touch))
        .route("/sandbox/{which}/toolbox-proxy-url", get(toolbox))
}

async fn create(State(cloud): Here, Json(wanted): Json<Value>) -> Response {
    let id = format!("sb-{}", uuid::Uuid::new_v4());
    let name = wanted["name"].as_str().unwrap_or(&id).to_owned();
    if cloud.find(&name).is_some() {
        return refuse(409, &format!("Sandbox with name {name} already exists"));
    }
    if wanted["disk"].as_u64() > Some(10) {
        return refuse(
            403,
            "Disk request exceeds maximum allowed per sandbox (10GB)",
        );
    }
    let mut facts = facts(&cloud, &id, &name, &wanted);
    if cloud.world().leaky {
        facts["networkBlockAll"] = json!(false);
    }
    let machine = Arc::new(Machine {
        cage: tokio::sync::Mutex::new(Cage::new(cloud.folder.path(), &id)),
        id: id.clone(),
        facts: facts.into(),
        terminals: Default::default(),
        sessions: Default::default(),
    });
    let stuck = {
        let mut world = cloud.world();
        world.sandboxes.insert(id, Arc::clone(&machine));
        world.stuck.clone()
    };
    let told = machine.facts.lock().unwrap().clone();
    match stuck {
        Some(state) => machine.set("state", state),
        None => drop(tokio::spawn(bring_up(cloud, machine))),
    }
    Json(told).into_response()
}

fn facts(cloud: &Cloud, id: &str, name: &str, wanted: &Value) -> Value {
    let built = wanted["buildInfo"].is_object();
    let or = |key: &str, other: Value| match &wanted[key] {
        Value::Null => other,
        given => given.clone(),
    };
    json!({
        "id": id,
        "organizationId": "org-of-the-test",
        "name": name,
        "user": "root",
        "env": or("env", json!({})),
        "labels": or("labels", json!({})),
        "public": or("public", json!(false)),
        "networkBlockAll": or("networkBlockAll", json!(false)),
        "kvm": false,
        "target": or("target", json!("us")),
        "cpu": or("cpu", json!(1)),
        "gpu": 0,
        "memory": or("memory", json!(1)),
        "disk": or("disk", json!(3)),
        "state": if built { "pending_build" } else { "creating" },
        "desiredState": "started",
        "buildInfo": Value::Null,
        "autoStopInterval": or("autoStopInterval", json!(15)),
        "autoDeleteInterval": or("autoDeleteInterval", json!(-1)),
        "asked": wanted,
        "touched": 0,
        "toolboxProxyUrl": format!("{}/toolbox", cloud.address),
    })
}

async fn bring_up(cloud: Arc<Cloud>, machine: Arc<Machine>) {
    tokio::time::sleep(WHILE).await;
    let mut cage = machine.cage.lock().await;
    if cloud.find(&machine.id).is_none() || machine.state() == "destroying" {
        return;
    }
    cage.start(machine.fact("networkBlockAll") == true).await;
    machine.set("state", "started");
}

async fn list(State(cloud): Here, Query(query): Query<HashMap<String, String>>) -> Response {
    let labels: HashMap<String, Value> = query
        .get("labels")
        .map(|text| serde_json::from_str(text).unwrap())
        .unwrap_or_default();
    let all: Vec<Value> = {
        let world = cloud.world();
        let all = world.sandboxes.values();
        let fits = |machine: &&Arc<Machine>| {
            let own = machine.fact("labels");
            labels.iter().all(|(name, value)| &own[name] == value)
        };
        all.filter(fits)
            .map(|machine| machine.facts.lock().unwrap().clone())
            .collect()
    };
    let from: usize = query.get("cursor").map_or(0, |text| text.parse().unwrap());
    let limit = query
        .get("limit")
        .map_or(PAGE, |text| text.parse().unwrap());
    let to = (from + limit.min(PAGE)).min(all.len());
    let next = (to < all.len()).then(|| to.to_string());
    Json(json!({ "items": all[from..to], "nextCursor": next })).into_response()
}

async fn look(State(cloud): Here, Path(which): Path<String>) -> Response {
    on(&cloud, &which, told)
}

async fn toolbox(State(cloud): Here, Path(which): Path<String>) -> Response {
    on(&cloud, &which, |machine| {
        Json(json!({ "url": machine.fact("toolboxProxyUrl") })).into_response()
    })
}

async fn touch(State(cloud): Here, Path(which): Path<String>) -> Response {
    on(&cloud, &which, |machine| {
        let times = machine.fact("touched").as_u64().unwrap();
        machine.set("touched", times + 1);
        ().into_response()
    })
}

async fn start(State(cloud): Here, Path(which): Path<String>) -> Response {
    let Some(machine) = cloud.find(&which) else {
        return missing(&which);
    };
    if machine.state() != "stopped" {
        return refuse(409, "Sandbox is not in a stopped state");
    }
    machine.set("state", "starting");
    let answer = told(&machine);
    let stuck = cloud.world().stuck.clone();
    match stuck {
        Some(state) => machine.set("state", state),
        None => drop(tokio::spawn(bring_up(cloud, machine))),
    }
    answer
}

async fn stop(State(cloud): Here, Path(which): Path<String>) -> Response {
    let Some(machine) = cloud.find(&which) else {
        return missing(&which);
    };
    if machine.state() != "started" {
        return refuse(409, "Sandbox is not started");
    }
    machine.set("state", "stopping");
    let answer = told(&machine);
    tokio::spawn(async move {
        tokio::time::sleep(WHILE).await;
        cloud.stop(&machine).await;
    });
    answer
}

async fn delete(State(cloud): Here, Path(which): Path<String>) -> Response {
    let Some(machine) = cloud.find(&which) else {
        return missing(&which);
    };
    machine.set("state", "destroying");
    let answer = told(&machine);
    tokio::spawn(async move {
        tokio::time::sleep(WHILE).await;
        cloud.destroy(&machine).await;
    });
    answer
}

impl Cloud {
    /// Every process ends; one that is to be deleted after a stop goes at once.
    pub(crate) async fn stop(&self, machine: &Machine) {
        machine.cage.lock().await.stop().await;
        machine.terminals.lock().unwrap().clear();
        machine.sessions.lock().unwrap().clear();
        machine.set("state", "stopped");
        if machine.fact("autoDeleteInterval") == 0 {
            self.destroy(machine).await;
        }
    }

    pub(crate) async fn destroy(&self, machine: &Machine) {
        let mut cage = machine.cage.lock().await;
        cage.stop().await;
        machine.terminals.lock().unwrap().clear();
        machine.sessions.lock().unwrap().clear();
        machine.set("state", "destroyed");
        cage.remove();
        self.world().sandboxes.remove(&machine.id);
    }
}

fn on(cloud: &Cloud, which: &str, answer: impl FnOnce(&Machine) -> Response) -> Response {
    cloud
        .find(which)
        .map_or_else(|| missing(which), |machine| answer(&machine))
}

fn told(machine: &Machine) -> Response {
    Json(machine.facts.lock().unwrap().clone()).into_response()
}

fn missing(which: &str) -> Response {
    refuse(404, &format!("Sandbox with ID or name {which} not found"))
}
