//! One request to the Graph API and its answer.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::SendFailure;
use hermetic_types::Secret;
use reqwest::multipart::Form;
use reqwest::{Client, RequestBuilder, Response, Url, header, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::refusal::{GraphRefusal, RawError};
use super::{CloudConfig, CloudConfigError};

/// Answers are a few lines.
const ANSWER_BYTES: usize = 1 << 20;

/// Where Meta keeps files. The token goes to no other host, whatever an answer says.
const MEDIA_HOSTS: [&str; 3] = ["fbsbx.com", "facebook.com", "fbcdn.net"];

#[derive(Debug)]
pub(crate) struct GraphApi {
    client: Client,
    base: Url,
    /// The address with the version, without a slash at its end.
    versioned: String,
    token: Secret,
    request: Duration,
}

#[derive(Debug, Error)]
pub(crate) enum GraphCallError {
    /// The request never left.
    #[error("meta cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to meta broke")]
    Broken(#[source] reqwest::Error),
    #[error("meta answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error(transparent)]
    Refused(#[from] GraphRefusal),
    /// Meta asked us before to send nothing for so long.
    #[error("meta wants us to wait {}s", wait.as_secs())]
    Held { wait: Duration },
}

#[derive(Deserialize)]
struct GraphFailure {
    error: RawError,
}

impl GraphApi {
    pub(crate) fn new(config: &CloudConfig) -> Result<Self, CloudConfigError> {
        let base = config.base_url.trim_end_matches('/');
        let url = Url::parse(base).map_err(|_| CloudConfigError::BaseUrl)?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return Err(CloudConfigError::BaseUrl);
        }
        let mut client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            // A redirect would carry the token elsewhere.
            .redirect(redirect::Policy::none());
        // The configuration has read the environment already.
        client = client.no_proxy();
        if let Some(proxy) = &config.proxy {
            client = client.proxy(proxy.for_client());
        }
        Ok(Self {
            client: client.build().map_err(|_| CloudConfigError::Client)?,
            versioned: format!("{base}/{}", config.version),
            base: url,
            token: config.access_token.clone(),
            request: config.timing.request,
        })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, GraphCallError> {
        let request = self.client.get(self.address(path));
        self.call(request.timeout(self.request)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, GraphCallError> {
        let request = self.client.post(self.address(path)).json(body);
        self.call(request.timeout(self.request)).await
    }

    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        form: Form,
        limit: Duration,
    ) -> Result<T, GraphCallError> {
        let request = self.client.post(self.address(path)).multipart(form);
        self.call(request.timeout(limit)).await
    }

    /// The bytes at an address that Meta named; nothing if it is not one of Meta's.
    pub(crate) async fn media(&self, address: &str) -> Option<Result<Response, GraphCallError>> {
        let url = Url::parse(address).ok()?;
        if !self.is_metas(&url) {
            return None;
        }
        let request = self.client.get(url).bearer_auth(self.token.expose());
        Some(request.send().await.map_err(GraphCallError::of))
    }

    fn is_metas(&self, url: &Url) -> bool {
        let is_the_stand_in = url.origin() == self.base.origin();
        let within = |host: &str, domain: &str| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let known = |host: &str| MEDIA_HOSTS.iter().any(|domain| within(host, domain));
        is_the_stand_in || url.scheme() == "https" && url.host_str().is_some_and(known)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, GraphCallError> {
        let request = request.bearer_auth(self.token.expose());
        read(request.send().await.map_err(GraphCallError::of)?).await
    }

    fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.versioned)
    }
}

impl GraphCallError {
    fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(error)
        } else {
            Self::Broken(error)
        }
    }
}

impl From<GraphCallError> for SendFailure {
    fn from(error: GraphCallError) -> Self {
        match error {
            GraphCallError::Refused(refusal) => refusal.into(),
            GraphCallError::Garbled { .. } | GraphCallError::Broken(_) => {
                Self::Uncertain(Box::new(error))
            }
            GraphCallError::Unreachable(_) => Self::NotSent(Box::new(error)),
            GraphCallError::Held { wait } => Self::Throttled { retry_after: wait },
        }
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, GraphCallError> {
    let status = response.status();
    let asked = response.headers().get(header::RETRY_AFTER);
    let asked = asked.and_then(|value| value.to_str().ok()?.parse().ok());
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    let garbled = || GraphCallError::Garbled {
        status: status.as_u16(),
    };
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| GraphCallError::Broken(error.without_url()))?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(garbled());
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| garbled());
    }
    match serde_json::from_slice::<GraphFailure>(&body) {
        Ok(failed) => {
            let asked = asked.map(Duration::from_secs);
            Err(GraphRefusal::answered(failed.error, status.as_u16(), asked).into())
        }
        Err(_) => Err(garbled()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_meta_and_nowhere_else() {
        let config = CloudConfig::new(
            "1",
            Secret::new("EAAtoken"),
            Secret::new("app"),
            hermetic_types::SystemClock::shared(),
        );
        let graph = GraphApi::new(&config).unwrap();
        let is_metas = |url: &str| graph.is_metas(&Url::parse(url).unwrap());
        assert!(is_metas(
            "https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1"
        ));
        assert!(is_metas("https://graph.facebook.com/x"));
        for url in [
            "http://lookaside.fbsbx.com/x",
            "https://evil.example/fbsbx.com",
            "https://evilfbsbx.com/x",
            "https://lookaside.fbsbx.com.evil.example/x",
            "https://lookaside.fbsbx.com@evil.example/x",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert!(!is_metas(url), "{url}");
        }
        assert!(!format!("{graph:?}").contains("EAAtoken"));
    }
}
