//! `watch=true`: what happens, from a version on, as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::Cluster;
use super::answer::Asked;
use super::objects::is_selected;

/// Who asks for bookmarks gets one so often.
const BOOKMARK_INTERVAL: Duration = Duration::from_millis(500);

struct Watching {
    cluster: Arc<Cluster>,
    plural: String,
    namespace: String,
    labels: String,
    fields: String,
    seen: u64,
    bookmarks: bool,
    until: Instant,
    over: bool,
}

pub(crate) fn watch(cluster: &Arc<Cluster>, asked: &Asked) -> Response {
    let seconds = asked.value("timeoutSeconds").parse().unwrap_or(3600);
    let from = asked.value("resourceVersion").parse().unwrap_or(0);
    let watching = Watching {
        cluster: Arc::clone(cluster),
        plural: asked.plural.clone(),
        namespace: asked.namespace.clone(),
        labels: asked.value("labelSelector").to_owned(),
        fields: asked.value("fieldSelector").to_owned(),
        seen: from,
        bookmarks: asked.says("allowWatchBookmarks"),
        until: Instant::now() + Duration::from_secs(seconds),
        over: false,
    };
    let stream = futures::stream::unfold(watching, async |mut watching| {
        let piece = watching.next().await?;
        Some((Ok::<_, Infallible>(piece), watching))
    });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, Body::from_stream(stream)).into_response()
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut newest = self.cluster.newest.subscribe();
        loop {
            if self.is_too_old() {
                self.over = true;
                let gone = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
                    "code": 410, "message": "too old resource version",
                });
                return Some(line("ERROR", &gone));
            }
            let text = self.fresh();
            if !text.is_empty() {
                return Some(text.into());
            }
            let soon = (Instant::now() + BOOKMARK_INTERVAL).min(self.until);
            let told = timeout_at(soon, newest.changed()).await;
            if Instant::now() >= self.until || *self.cluster.away.borrow() {
                return None;
            }
            if told.is_err() && self.bookmarks {
                let version = self.seen.to_string();
                let mark = json!({"metadata": {"resourceVersion": version}, "spec": {}});
                return Some(line("BOOKMARK", &mark));
            }
        }
    }

    fn is_too_old(&self) -> bool {
        let world = self.cluster.world();
        self.seen > 0 && self.seen < world.forgotten
    }

    fn fresh(&mut self) -> Vec<u8> {
        let world = self.cluster.world();
        let mut text = Vec::new();
        for event in world
            .events
            .iter()
            .filter(|event| event.version > self.seen)
        {
            let here = event.plural == self.plural
                && (self.namespace.is_empty() || event.namespace == self.namespace);
            if here && is_selected(&event.object, &self.labels, &self.fields) {
                text.extend_from_slice(&line(event.kind, &event.object));
            }
        }
        self.seen = world.version();
        text
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({"type": kind, "object": object})).into()
}
