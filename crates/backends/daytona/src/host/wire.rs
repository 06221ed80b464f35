//! Requests and answers: bounded, repeated where that is safe, and never carried elsewhere.

use std::time::Duration;

use bytes::Bytes;
use hermetic_types::Secret;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::trouble::DaytonaTrouble;

/// A page of a hundred sandboxes is the longest answer.
const LONGEST_API_ANSWER: usize = 4 << 20;
/// What of an error's text a person is shown.
const LONGEST_WORD: usize = 300;

const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(60);
const FIRST_API_RETRY: Duration = Duration::from_millis(250);
const LONGEST_API_RETRY: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub(crate) struct HttpWire {
    client: Client,
    key: Secret,
    organisation: Option<String>,
    /// How long a request is repeated.
    patience: Duration,
}

pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Its kind, and the bytes.
    pub(crate) body: Option<(String, Bytes)>,
    pub(crate) repeat: RepeatPolicy,
}

/// What may be asked again when there was no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatPolicy {
    /// Asking twice is as good as asking once.
    Freely,
    /// Only what certainly was not carried out.
    IfUndone,
}

impl ApiRequest {
    pub(crate) fn get(url: Url) -> Self {
        Self::bare(Method::GET, url)
    }

    pub(crate) fn post(url: Url) -> Self {
        Self::bare(Method::POST, url)
    }

    pub(crate) fn delete(url: Url) -> Self {
        Self::bare(Method::DELETE, url)
    }

    pub(crate) fn json(url: Url, body: &impl serde::Serialize) -> Result<Self, DaytonaTrouble> {
        let body = serde_json::to_vec(body).map_err(|error| DaytonaTrouble::nonsense(&error))?;
        Ok(Self::post(url).with("application/json".to_owned(), body.into()))
    }

    pub(crate) fn with(mut self, kind: String, body: Bytes) -> Self {
        self.body = Some((kind, body));
        self
    }

    pub(crate) fn once(mut self) -> Self {
        self.repeat = RepeatPolicy::IfUndone;
        self
    }

    fn bare(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            body: None,
            repeat: RepeatPolicy::Freely,
        }
    }
}

impl HttpWire {
    pub(crate) fn new(
        key: Secret,
        organisation: Option<String>,
        base: &Url,
        patience: Duration,
    ) -> Result<Self, reqwest::Error> {
        let mut client = Client::builder()
            .connect_timeout(CONNECT)
            // A redirect would carry the key elsewhere.
            .redirect(redirect::Policy::none());
        if is_loopback(base) {
            // What is on this machine is reached directly: a company's proxy would be asked for its
            // own loopback.
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build()?,
            key,
            organisation,
            patience,
        })
    }

    /// Asks until there is an answer, or no hope of one.
    pub(crate) async fn ask(&self, ask: &ApiRequest) -> Result<Bytes, DaytonaTrouble> {
        let deadline = Instant::now() + self.patience;
        let mut wait = FIRST_API_RETRY;
        loop {
            let (trouble, told) = match self.ask_once(ask).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let hope = match &trouble {
                DaytonaTrouble::TooMany => true,
                // It never left this machine, so that even what may not be repeated may be tried
                // again.
                DaytonaTrouble::Unreachable { .. } => true,
                DaytonaTrouble::Lost { .. } => ask.repeat == RepeatPolicy::Freely,
                _ => false,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(pause) = pause(told, wait, left).filter(|_| hope) else {
                return Err(trouble);
            };
            let pause_ms = pause.as_millis();
            tracing::debug!(url = %ask.url, %trouble, pause_ms, "asked again soon");
            sleep(pause).await;
            wait = (wait * 2).min(LONGEST_API_RETRY);
        }
    }

    pub(crate) async fn ask_for<T: DeserializeOwned>(
        &self,
        ask: &ApiRequest,
    ) -> Result<T, DaytonaTrouble> {
        let answer = self.ask(ask).await?;
        serde_json::from_slice(&answer).map_err(|error| DaytonaTrouble::nonsense(&error))
    }

    /// A request with who we are, for what is more than an answer.
    pub(crate) fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let request = self
            .client
            .request(method, url)
            .bearer_auth(self.key.expose());
        match &self.organisation {
            Some(organisation) => request.header("X-Daytona-Organization-ID", organisation),
            None => request,
        }
    }

    /// With the failure comes how long to wait, where that was said.
    async fn ask_once(
        &self,
        ask: &ApiRequest,
    ) -> Result<Bytes, (DaytonaTrouble, Option<Duration>)> {
        let mut request = self
            .request(ask.method.clone(), ask.url.clone())
            .timeout(ANSWER);
        if let Some((kind, body)) = &ask.body {
            request = request.header("content-type", kind).body(body.clone());
        }
        let response = request
            .send()
            .await
            .map_err(|error| (self.unsent(ask, error), None))?;
        let status = response.status();
        let told = retry_after(&response);
        let body = read(response).await.map_err(|trouble| (trouble, None))?;
        if status.is_success() {
            return Ok(body);
        }
        Err((self.trouble(status, &body), told))
    }

    fn unsent(&self, ask: &ApiRequest, error: reqwest::Error) -> DaytonaTrouble {
        let error = error.without_url();
        if error.is_connect() {
            let at = ask.url.host_str().unwrap_or_default().to_owned();
            return DaytonaTrouble::Unreachable { at, source: error };
        }
        DaytonaTrouble::Lost {
            said: format!("no answer: {error}"),
        }
    }

    pub(crate) fn trouble(&self, status: StatusCode, body: &[u8]) -> DaytonaTrouble {
        let said = self.said(status, body);
        match status.as_u16() {
            401 => DaytonaTrouble::Key,
            402 | 403 => DaytonaTrouble::Forbidden { said },
            404 | 410 => DaytonaTrouble::Missing,
            409 => DaytonaTrouble::Conflict { said },
            429 => DaytonaTrouble::TooMany,
            400..=499 => DaytonaTrouble::Refused { said },
            _ => DaytonaTrouble::Lost { said },
        }
    }

    /// The words of an error, which come from elsewhere: short, in one line, and without the key.
    fn said(&self, status: StatusCode, body: &[u8]) -> String {
        let told = serde_json::from_slice::<serde_json::Value>(body).ok();
        let word = |name: &str| match told.as_ref()?.get(name)? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Array(texts) => {
                let texts: Vec<_> = texts.iter().filter_map(|text| text.as_str()).collect();
                Some(texts.join("; "))
            }
            _ => None,
        };
        let text = word("message").or_else(|| word("error"));
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        // A server that repeats what it was sent would otherwise put the key before a person, and
        // into the log.
        let text = text.replace(self.key.expose(), "***");
        // After the key was taken out: cut in the middle, it would not be found any more.
        let line = one_line(&text, LONGEST_WORD);
        if line.is_empty() {
            return status.to_string();
        }
        line
    }
}

/// How long to wait: as long as we were told, and not less than we would wait ourselves. A service that
/// says "at once" each time is not asked at full speed. Nothing where that is longer than is left.
fn pause(told: Option<Duration>, wait: Duration, left: Duration) -> Option<Duration> {
    let pause = told.unwrap_or(wait).max(FIRST_API_RETRY);
    (pause <= left).then_some(pause)
}

pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ").chars().take(longest).collect()
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Seconds; a date is not worth a calendar here.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

async fn read(mut response: Response) -> Result<Bytes, DaytonaTrouble> {
    let mut whole = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(whole.into()),
            Ok(Some(piece)) if whole.len() + piece.len() <= LONGEST_API_ANSWER => {
                whole.extend_from_slice(&piece);
            }
            Ok(Some(_)) => {
                return Err(DaytonaTrouble::Nonsense {
                    why: "it has no end".to_owned(),
                });
            }
            Err(error) => {
                return Err(DaytonaTrouble::Lost {
                    said: format!("the answer was cut off: {}", error.without_url()),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_asks_for_no_pause_is_not_asked_at_full_speed() {
        let left = Duration::from_secs(100);
        let told = |seconds| pause(Some(Duration::from_secs(seconds)), LONGEST_API_RETRY, left);
        assert_eq!(told(0), Some(FIRST_API_RETRY));
        assert_eq!(told(60), Some(Duration::from_secs(60)));
        assert_eq!(
            pause(None, LONGEST_API_RETRY, left),
            Some(LONGEST_API_RETRY)
        );
        // More than any clock can show.
        assert_eq!(told(u64::MAX), None);
    }
}
