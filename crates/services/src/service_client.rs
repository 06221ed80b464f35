//! One request to a configured service: bounded in time and size, never redirected.

use std::time::Duration;

use hermetic_upstream::UpstreamProxy;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::Value;
use thiserror::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a service gave no answer, in words for the model and the chat. What the service itself said is not
/// among them: it may repeat the key.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("{service} could not be reached")]
    Unreachable { service: &'static str },
    #[error("{service} did not answer within {seconds} s")]
    Slow { service: &'static str, seconds: u64 },
    #[error(
        "{service} did not take the operator's key ({status}); the operator has to look at {key}"
    )]
    Key {
        service: &'static str,
        status: StatusCode,
        key: &'static str,
    },
    #[error("{service} takes no more requests for now ({status}); try again later")]
    Busy {
        service: &'static str,
        status: StatusCode,
    },
    #[error("{service} refused the request ({status})")]
    Refused {
        service: &'static str,
        status: StatusCode,
    },
    #[error("{service} sent more than {most} bytes")]
    TooLarge { service: &'static str, most: usize },
    #[error("{service} answered with something else than it is known to")]
    Unreadable { service: &'static str },
}

impl ServiceError {
    /// Whether the service may have worked on the request, and so wants to be paid for it.
    pub fn may_cost(&self) -> bool {
        match self {
            Self::Slow { .. } | Self::TooLarge { .. } | Self::Unreadable { .. } => true,
            Self::Unreachable { .. }
            | Self::Key { .. }
            | Self::Busy { .. }
            | Self::Refused { .. } => false,
        }
    }
}

/// The reason why a service cannot be used as it is configured.
#[derive(Debug, Error)]
pub enum UnusableService {
    #[error("{0:?} is no http:// or https:// address")]
    Address(String),
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// A client for one service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceClient {
    client: Client,
    service: &'static str,
    /// The setting that holds the key, for whoever has to mend it.
    key: &'static str,
    patience: Duration,
    most_bytes: usize,
}

impl ServiceClient {
    pub(crate) fn new(
        service: &'static str,
        key: &'static str,
        patience: Duration,
        most_bytes: usize,
        proxy: Option<&UpstreamProxy>,
    ) -> Result<Self, UnusableService> {
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(patience)
            // A redirect would carry the key to a host that nobody configured.
            .redirect(redirect::Policy::none())
            // Nothing is taken from the environment: the proxy was read once, together with whom it
            // is not for.
            .no_proxy();
        if let Some(proxy) = proxy {
            builder = builder.proxy(proxy.for_client());
        }
        Ok(Self {
            client: builder.build().map_err(UnusableService::Client)?,
            service,
            key,
            patience,
            most_bytes,
        })
    }

    pub(crate) fn http(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn json(&self, request: RequestBuilder) -> Result<Value, ServiceError> {
        let bytes = self.bytes(request).await?;
        serde_json::from_slice(&bytes).map_err(|_| self.unreadable())
    }

    pub(crate) async fn bytes(&self, request: RequestBuilder) -> Result<Vec<u8>, ServiceError> {
        let mut response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(status));
        }
        self.read(&mut response).await
    }

    pub(crate) fn unreadable(&self) -> ServiceError {
        ServiceError::Unreadable {
            service: self.service,
        }
    }

    async fn read(&self, response: &mut Response) -> Result<Vec<u8>, ServiceError> {
        let mut all = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| self.failed(&error))?
        {
            // Counted as it comes: a length that is announced is only a claim.
            if all.len() + piece.len() > self.most_bytes {
                return Err(ServiceError::TooLarge {
                    service: self.service,
                    most: self.most_bytes,
                });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    fn refused(&self, status: StatusCode) -> ServiceError {
        let service = self.service;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PAYMENT_REQUIRED => {
                ServiceError::Key {
                    service,
                    status,
                    key: self.key,
                }
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                ServiceError::Busy { service, status }
            }
            _ => ServiceError::Refused { service, status },
        }
    }

    fn failed(&self, error: &reqwest::Error) -> ServiceError {
        match error.is_timeout() {
            true => ServiceError::Slow {
                service: self.service,
                seconds: self.patience.as_secs(),
            },
            false => ServiceError::Unreachable {
                service: self.service,
            },
        }
    }
}

/// The address of a path below a base that a person wrote.
pub(crate) fn below(base: &str, path: &str) -> Result<Url, UnusableService> {
    let unusable = || UnusableService::Address(base.chars().take(200).collect());
    let text = format!("{}/{path}", base.trim_end_matches('/'));
    let url = Url::parse(&text).map_err(|_| unusable())?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(unusable()),
    }
}

/// The beginning of a text, as many characters as are kept.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
