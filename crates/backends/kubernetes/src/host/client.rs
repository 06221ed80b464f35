//! Requests to the cluster: bounded, repeated where that is safe, and with a token that is never old.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{jittered, jittered_start};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::access::ClusterAccess;
use super::trouble::{ClusterTrouble, FailedRequest, deepest};

/// A page of a list is the longest answer.
const LONGEST_ANSWER: usize = 16 << 20;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(2);
/// However long a server asks us to wait.
const LONGEST_ADVISED_RETRY: Duration = Duration::from_secs(30);
/// Over how long those are spread that were asked to wait the same time.
const ADVISED_SPREAD: Duration = Duration::from_secs(1);
const PAGE: &str = "500";
/// A bound for a server that never says that was all.
const MOST_PAGES: usize = 100;
/// How often a list is begun anew because it was begun too long ago.
const MOST_LIST_STARTS: usize = 3;

/// The API of one cluster, for one namespace.
#[derive(Debug)]
pub(crate) struct ClusterClient {
    pub(crate) access: Arc<ClusterAccess>,
    /// How long a request is repeated.
    pub(crate) patience: Duration,
}

/// The kinds that are asked about, each in the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Job,
    Pod,
    Claim,
    Event,
    NetworkPolicy,
}

impl ObjectKind {
    fn path(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Job => (&["apis", "batch", "v1"], "jobs"),
            Self::Pod => (&["api", "v1"], "pods"),
            Self::Claim => (&["api", "v1"], "persistentvolumeclaims"),
            Self::Event => (&["api", "v1"], "events"),
            Self::NetworkPolicy => (&["apis", "networking.k8s.io", "v1"], "networkpolicies"),
        }
    }
}

impl ClusterClient {
    /// Where objects of that kind are, and below it one of them and its parts.
    pub(crate) fn url(&self, kind: ObjectKind, rest: &[&str]) -> Url {
        let (group, plural) = kind.path();
        let namespaced = ["namespaces", self.access.namespace(), plural];
        let words: Vec<_> = group
            .iter()
            .chain(&namespaced)
            .chain(rest)
            .copied()
            .collect();
        self.at(&words)
    }

    pub(crate) fn at(&self, words: &[&str]) -> Url {
        let mut url = self.access.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(words);
        }
        url
    }

    pub(crate) async fn get(&self, url: Url) -> Result<Value, ClusterTrouble> {
        self.ask(Method::GET, url, None, true).await
    }

    /// Asked again only where it certainly was not carried out.
    pub(crate) async fn post(&self, url: Url, body: &Value) -> Result<Value, ClusterTrouble> {
        self.ask(Method::POST, url, Some(body), false).await
    }

    pub(crate) async fn delete(&self, url: Url, body: &Value) -> Result<Value, ClusterTrouble> {
        self.ask(Method::DELETE, url, Some(body), true).await
    }

    /// All objects with these labels.
    pub(crate) async fn list(
        &self,
        kind: ObjectKind,
        (selector, wanted): (&str, &str),
    ) -> Result<Vec<Value>, ClusterTrouble> {
        let mut last = ClusterTrouble::lost("a list without an end");
        for _ in 0..MOST_LIST_STARTS {
            match self.list_once(kind, selector, wanted).await {
                Err(expired @ ClusterTrouble::Expired { .. }) => last = expired,
                other => return other,
            }
        }
        Err(last)
    }

    async fn list_once(
        &self,
        kind: ObjectKind,
        selector: &str,
        wanted: &str,
    ) -> Result<Vec<Value>, ClusterTrouble> {
        let mut found = Vec::new();
        let mut next = String::new();
        for _ in 0..MOST_PAGES {
            let mut url = self.url(kind, &[]);
            url.query_pairs_mut()
                .append_pair(selector, wanted)
                .append_pair("limit", PAGE);
            if !next.is_empty() {
                url.query_pairs_mut().append_pair("continue", &next);
            }
            let mut page = self.get(url).await?;
            if let Value::Array(items) = page["items"].take() {
                found.extend(items);
            }
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => next = more.to_owned(),
                _ => return Ok(found),
            }
        }
        Err(ClusterTrouble::lost("a list without an end"))
    }

    async fn ask(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
        freely: bool,
    ) -> Result<Value, ClusterTrouble> {
        let deadline = Instant::now() + self.patience;
        let mut wait = FIRST_RETRY;
        let mut renewed = false;
        loop {
            let asked = self.ask_once(method.clone(), url.clone(), body).await;
            let (trouble, advised) = match asked {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            if matches!(trouble, ClusterTrouble::Unauthenticated) && !renewed {
                // A token that ran out in the middle, or was rotated.
                renewed = true;
                self.access.credential.forget().await;
                continue;
            }
            // Not before the server's own word, and not all who heard it at that moment either.
            let pause = match advised {
                Some(advised) => {
                    advised.min(LONGEST_ADVISED_RETRY) + jittered_start(ADVISED_SPREAD)
                }
                None => jittered(wait),
            };
            let pause = pause.max(FIRST_RETRY / 2);
            if !trouble.passes(freely) || Instant::now() + pause > deadline {
                return Err(trouble);
            }
            tracing::debug!(%url, %trouble, pause_ms = pause.as_millis(), "asked again soon");
            sleep(pause).await;
            wait = (wait * 2).min(LONGEST_RETRY);
        }
    }

    async fn ask_once(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Value, FailedRequest> {
        let mut request = self
            .request(method, url)
            .await
            .map_err(|trouble| (trouble, None))?
            .timeout(ANSWER_TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = self
            .send(request)
            .await
            .map_err(|trouble| (trouble, None))?;
        let status = response.status();
        let advised = retry_after(&response);
        let body = read(response).await.map_err(|trouble| (trouble, None))?;
        if !status.is_success() {
            return Err((ClusterTrouble::of(status, &body), advised));
        }
        let nonsense = |_| (ClusterTrouble::lost("an answer that is no JSON"), None);
        serde_json::from_slice(&body).map_err(nonsense)
    }

    /// A request with who we are, for what is more than an answer.
    pub(crate) async fn request(
        &self,
        method: Method,
        url: Url,
    ) -> Result<RequestBuilder, ClusterTrouble> {
        let request = self.access.client.request(method, url);
        Ok(match self.access.credential.token().await? {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        })
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClusterTrouble> {
        request.send().await.map_err(|error| {
            let error = error.without_url();
            let why = deepest(&error);
            if error.is_connect() {
                let at = self.access.base.host_str().unwrap_or_default().to_owned();
                return ClusterTrouble::Unreachable { at, why };
            }
            ClusterTrouble::lost(format!("no answer: {why}"))
        })
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let retried = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let said = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = said.trim().parse().ok().map(Duration::from_secs);
    seconds.filter(|_| retried.contains(&response.status()))
}

pub(crate) async fn read(mut response: Response) -> Result<Vec<u8>, ClusterTrouble> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(ClusterTrouble::lost("an answer that is too long")),
            Ok(None) => return Ok(body),
            Err(error) => {
                let why = deepest(&error.without_url());
                return Err(ClusterTrouble::lost(format!("the answer broke off: {why}")));
            }
        }
    }
}
