//! From a request to an answer.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::faults::{self, Moment};
use super::objects::is_selected;
use super::{Cluster, admission, controllers, exec, watch_events};

/// What is served: group and version, plural, kind, short name, whether it is in a namespace.
const RESOURCES: [(&str, &str, &str, &str, bool); 10] = [
    ("v1", "namespaces", "Namespace", "ns", false),
    ("v1", "pods", "Pod", "po", true),
    (
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "pvc",
        true,
    ),
    ("v1", "events", "Event", "ev", true),
    ("v1", "serviceaccounts", "ServiceAccount", "sa", true),
    ("v1", "resourcequotas", "ResourceQuota", "quota", true),
    ("batch/v1", "jobs", "Job", "", true),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        "NetworkPolicy",
        "netpol",
        true,
    ),
    ("rbac.authorization.k8s.io/v1", "roles", "Role", "", true),
    (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "RoleBinding",
        "",
        true,
    ),
];

/// A request, taken apart.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) group: String,
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) part: Option<String>,
    pub(crate) query: Vec<(String, String)>,
}

impl Asked {
    pub(crate) fn value(&self, name: &str) -> &str {
        let mut pairs = self.query.iter();
        pairs
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// As Go reads a flag: other clients write `1` or `True`.
    pub(crate) fn says(&self, name: &str) -> bool {
        ["1", "t", "true"].contains(&self.value(name).to_lowercase().as_str())
    }

    fn kind(
        &self,
    ) -> Option<&'static (&'static str, &'static str, &'static str, &'static str, bool)> {
        let mut known = RESOURCES.iter();
        known.find(|known| known.0 == self.group && known.1 == self.plural)
    }
}

pub(crate) async fn answer(cluster: Arc<Cluster>, request: Request) -> Response {
    let line = format!("{} {}", request.method(), request.uri());
    let fault = {
        let mut habits = cluster.habits();
        habits.asked.push(line.clone());
        faults::take(&mut habits.faults, &line)
    };
    if *cluster.away.borrow() {
        // As when nobody listens: a connection that says nothing of use.
        return failure(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        );
    }
    let bearer = request.headers().get(header::AUTHORIZATION);
    let bearer = bearer.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if !bearer.is_some_and(|token| cluster.habits().tokens.iter().any(|known| known == token)) {
        return failure(401, "Unauthorized", "Unauthorized");
    }
    match fault {
        Some(fault) if fault.moment == Moment::Before => planned(fault.status),
        Some(fault) => {
            serve(cluster, request).await;
            planned(fault.status)
        }
        None => serve(cluster, request).await,
    }
}

fn planned(status: u16) -> Response {
    let (reason, message) = match status {
        403 => (
            "Forbidden",
            "forbidden: status unknown for quota: planned, resources: a",
        ),
        409 => (
            "Conflict",
            "Operation cannot be fulfilled on resourcequotas \"planned\": the object has been modified",
        ),
        _ => ("Planned", "a fault that was planned"),
    };
    let mut response = failure(status, reason, message);
    if status == 429 {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

async fn serve(cluster: Arc<Cluster>, request: Request) -> Response {
    let url = format!("http://server{}", request.uri());
    let url: reqwest::Url = url.parse().unwrap();
    let parts: Vec<_> = url
        .path_segments()
        .unwrap()
        .filter(|part| !part.is_empty())
        .collect();
    let (group, rest) = match parts.as_slice() {
        ["version"] => return version(),
        ["api"] => return Json(json!({"kind": "APIVersions", "versions": ["v1"]})).into_response(),
        ["apis"] => return groups(),
        ["api", "v1", rest @ ..] => ("v1".to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => {
            return failure(
                404,
                "NotFound",
                "the server could not find the requested resource",
            );
        }
    };
    let of = |part: Option<&&str>| part.map(|part| (*part).to_owned());
    let (namespace, rest) = match rest {
        [] => return resources(&group),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => ((*namespace).to_owned(), rest),
        rest => (String::new(), rest),
    };
    let asked = Asked {
        method: request.method().to_string(),
        group,
        namespace,
        plural: rest[0].to_owned(),
        name: of(rest.get(1)),
        part: of(rest.get(2)),
        query: url.query_pairs().into_owned().collect(),
    };
    if let Some(denied) = denied(&cluster, &asked) {
        return denied;
    }
    if asked.part.as_deref() == Some("exec") {
        return exec::upgrade(&cluster, &asked, request);
    }
    let body = to_bytes(request.into_body(), 1 << 22).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if asked.plural == "selfsubjectaccessreviews" {
        return review(&cluster, body);
    }
    if asked.kind().is_none() || asked.part.is_some() {
        return failure(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
    }
    act(&cluster, &asked, body)
}

fn act(cluster: &Arc<Cluster>, asked: &Asked, body: Value) -> Response {
    match (asked.method.as_str(), &asked.name) {
        ("GET", Some(name)) => match cluster.world().get(&asked.plural, &asked.namespace, name) {
            Some(object) => Json(object).into_response(),
            None => not_found(asked, name),
        },
        ("GET", None) if asked.says("watch") => watch_events::watch(cluster, asked),
        ("GET", None) => list(cluster, asked),
        ("POST", None) => create(cluster, asked, body),
        ("DELETE", Some(name)) => {
            let object = cluster.world().get(&asked.plural, &asked.namespace, name);
            match object {
                None => not_found(asked, name),
                Some(object) => delete(cluster, asked, &object, &body),
            }
        }
        ("PUT" | "PATCH", Some(name)) => {
            let Some(mut object) = cluster.world().get(&asked.plural, &asked.namespace, name)
            else {
                return not_found(asked, name);
            };
            let sent = &body["metadata"]["resourceVersion"];
            if !sent.is_null() && *sent != object["metadata"]["resourceVersion"] {
                return failure(409, "Conflict", "the object has been modified");
            }
            merge(&mut object, &body);
            Json(cluster.put(&asked.plural, &asked.namespace, object)).into_response()
        }
        _ => failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method",
        ),
    }
}

fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(entries) = patch else {
        *object = patch.clone();
        return;
    };
    for (name, value) in entries {
        if value.is_null() {
            object.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut object[name], value);
        }
    }
}

fn create(cluster: &Arc<Cluster>, asked: &Asked, mut body: Value) -> Response {
    let (group, plural, kind, ..) = asked.kind().unwrap();
    body["apiVersion"] = (*group).into();
    body["kind"] = (*kind).into();
    if body["metadata"]["name"].is_null() {
        let prefix = body["metadata"]["generateName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        body["metadata"]["name"] = format!("{prefix}{}", controllers::suffix()).into();
    }
    let name = body["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if asked.plural == "pods" {
        admission::mutate(cluster, &mut body);
        if let Some(why) = admission::refusal(cluster, &asked.namespace, &body["spec"]) {
            return failure(
                403,
                "Forbidden",
                &format!("pods \"{name}\" is forbidden: {why}"),
            );
        }
    }
    if cluster
        .world()
        .get(plural, &asked.namespace, &name)
        .is_some()
    {
        let why = format!("{plural} \"{name}\" already exists");
        return failure(409, "AlreadyExists", &why);
    }
    if asked.plural == "pods" {
        body["status"] = json!({"phase": "Pending"});
    }
    let made = cluster.put(plural, &asked.namespace, body);
    controllers::created(cluster, plural, &made);
    (StatusCode::CREATED, Json(made)).into_response()
}

fn delete(cluster: &Arc<Cluster>, asked: &Asked, object: &Value, options: &Value) -> Response {
    let wanted = &options["preconditions"]["uid"];
    if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
        return failure(
            409,
            "Conflict",
            "the UID in the precondition does not match",
        );
    }
    controllers::delete(cluster, &asked.plural, object);
    Json(object.clone()).into_response()
}

fn list(cluster: &Cluster, asked: &Asked) -> Response {
    let (group, plural, kind, ..) = asked.kind().unwrap();
    let world = cluster.world();
    let mut objects = world.all(plural, &asked.namespace);
    let version = world.version();
    drop(world);
    objects.retain(|object| {
        is_selected(
            object,
            asked.value("labelSelector"),
            asked.value("fieldSelector"),
        )
    });
    let habits = cluster.habits();
    let begun: usize = asked.value("continue").parse().unwrap_or(0);
    if begun > 0 && habits.lists_expire {
        drop(habits);
        cluster.habits().lists_expire = false;
        return failure(410, "Expired", "The provided continue parameter is too old");
    }
    let most = asked
        .value("limit")
        .parse()
        .unwrap_or(usize::MAX)
        .min(habits.page);
    let end = begun.saturating_add(most).min(objects.len());
    let next = if end < objects.len() {
        end.to_string()
    } else {
        String::new()
    };
    let page = objects.get(begun..end).unwrap_or_default();
    let meta = json!({"resourceVersion": version.to_string(), "continue": next});
    Json(json!({
        "apiVersion": group, "kind": format!("{kind}List"), "metadata": meta, "items": page,
    }))
    .into_response()
}

fn denied(cluster: &Cluster, asked: &Asked) -> Option<Response> {
    let verb = match (asked.method.as_str(), &asked.name) {
        ("GET", Some(_)) => "get",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("DELETE", _) => "delete",
        _ => "update",
    };
    let part = asked
        .part
        .as_ref()
        .map(|part| format!("/{part}"))
        .unwrap_or_default();
    let right = format!("{verb} {}{part}", asked.plural);
    cluster.habits().denied.contains(&right).then(|| {
        let why = format!(
            "User \"tester\" cannot {right} in the namespace \"{}\"",
            asked.namespace
        );
        failure(403, "Forbidden", &why)
    })
}

fn review(cluster: &Cluster, mut body: Value) -> Response {
    let about = &body["spec"]["resourceAttributes"];
    let part = match about["subresource"].as_str() {
        Some(part) if !part.is_empty() => format!("/{part}"),
        _ => String::new(),
    };
    let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
    let right = format!("{} {}{part}", text("verb"), text("resource"));
    let allowed = !cluster.habits().denied.contains(&right);
    body["status"] = json!({"allowed": allowed});
    (StatusCode::CREATED, Json(body)).into_response()
}

fn not_found(asked: &Asked, name: &str) -> Response {
    failure(
        404,
        "NotFound",
        &format!("{} \"{name}\" not found", asked.plural),
    )
}

pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    (StatusCode::from_u16(code).unwrap(), Json(status)).into_response()
}

fn version() -> Response {
    let version = json!({
        "major": "1", "minor": "33", "gitVersion": "v1.33.0-of-the-tests", "platform": "linux/amd64",
        "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "",
    });
    Json(version).into_response()
}

fn groups() -> Response {
    let mut groups: HashMap<&str, Value> = HashMap::new();
    for (group, ..) in RESOURCES.iter().filter(|known| known.0.contains('/')) {
        let (name, version) = group.split_once('/').unwrap();
        let version = json!({"groupVersion": group, "version": version});
        groups.insert(
            name,
            json!({
                "name": name, "versions": [version], "preferredVersion": version,
            }),
        );
    }
    let groups: Vec<_> = groups.into_values().collect();
    Json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})).into_response()
}

fn resources(group: &str) -> Response {
    let of_group = RESOURCES.iter().filter(|known| known.0 == group);
    let list: Vec<_> = of_group
        .map(|(_, plural, kind, short, namespaced)| {
            let verbs = [
                "create", "delete", "get", "list", "patch", "update", "watch",
            ];
            let short: Vec<_> = Some(short)
                .filter(|short| !short.is_empty())
                .into_iter()
                .collect();
            json!({
                "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced,
                "kind": kind, "verbs": verbs, "shortNames": short,
            })
        })
        .collect();
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": list,
    }))
    .into_response()
}
