//! One HTTP request on a conversation's behalf, through its egress.
//!
//! Every request has a connection of its own: the proxy judges connections, and none is kept for which the
//! rules may have changed. What comes is bounded in time and size, and no redirection is followed: where it
//! leads is said.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hermetic_egress::{EgressClient, EgressClientError};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

/// A request for one address.
#[derive(Debug)]
pub(crate) struct WebRequest {
    pub(crate) method: Method,
    pub(crate) address: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// The head of what came back, and the way to the rest.
#[derive(Debug)]
pub(crate) struct WebAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    deadline: Instant,
    /// Ends the connection.
    _driver: AbortOnDrop,
}

#[derive(Debug, Error)]
pub(crate) enum WebRequestError {
    #[error("{0} is no http:// or https:// address of a host")]
    Address(String),
    #[error(transparent)]
    Egress(#[from] EgressClientError),
    /// By our own proxy, in its words.
    #[error("{0}")]
    Refused(String),
    #[error("it did not answer in time")]
    Slow,
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("it sent more than {0} bytes")]
    TooLarge(usize),
}

#[derive(Debug)]
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// By which our proxy says that an answer is its own.
const REFUSED: &str = "x-hermetic-refused";
const LONGEST_REFUSAL: usize = 8 * 1024;

impl WebRequest {
    pub(crate) fn new(method: Method, address: Uri) -> Self {
        Self {
            method,
            address,
            headers: HeaderMap::new(),
            body: String::new(),
        }
    }

    /// The same request once more.
    pub(crate) fn again(&self) -> Self {
        Self {
            method: self.method.clone(),
            address: self.address.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
        }
    }

    /// Everything, to the end of the answer's body, has to be over within `patience`.
    pub(crate) async fn send(
        self,
        client: &EgressClient,
        patience: Duration,
    ) -> Result<WebAnswer, WebRequestError> {
        let deadline = Instant::now() + patience;
        let sent = timeout_at(deadline, self.send_until(client, deadline));
        let mut answer = sent.await.map_err(|_| WebRequestError::Slow)??;
        if answer.headers.contains_key(REFUSED) {
            let words = answer.text(LONGEST_REFUSAL).await?;
            return Err(WebRequestError::Refused(words.trim().to_owned()));
        }
        Ok(answer)
    }

    async fn send_until(
        self,
        client: &EgressClient,
        deadline: Instant,
    ) -> Result<WebAnswer, WebRequestError> {
        let shown = || self.address.to_string().chars().take(300).collect();
        let unusable = || WebRequestError::Address(shown());
        let host = self.address.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(unusable)?.to_owned();
        let authority = self.address.authority().ok_or_else(unusable)?;
        // A name and a password in an address would end up in the journal.
        if authority.as_str().contains('@') {
            return Err(unusable());
        }
        let is_secure = match self.address.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(unusable()),
        };
        let stream = match is_secure {
            true => {
                let port = self.address.port_u16().unwrap_or(443);
                client.secure(&host, port).await?
            }
            false => client.plain(),
        };
        let broken = |error: hyper::Error| WebRequestError::Broken(error.to_string());
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(broken)?;
        let driver = tokio::spawn(async move {
            // Its failure is the request's.
            let _ = connection.await;
        });
        let driver = AbortOnDrop(driver);
        // A proxy is told the whole address, a host its own part of it.
        let target = match is_secure {
            true => {
                let path = self.address.path_and_query();
                path.map_or("/", |path| path.as_str()).to_owned()
            }
            false => self.address.to_string(),
        };
        let mut request = Request::builder()
            .method(self.method)
            .uri(target)
            .header("host", authority.as_str())
            .body(self.body)
            .map_err(|error| WebRequestError::Broken(error.to_string()))?;
        request.headers_mut().extend(self.headers);
        let answer: Response<Incoming> = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = answer.into_parts();
        Ok(WebAnswer {
            status: head.status,
            headers: head.headers,
            body,
            deadline,
            _driver: driver,
        })
    }
}

impl WebAnswer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, WebRequestError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let frame = timeout_at(self.deadline, frame);
            match frame.await.map_err(|_| WebRequestError::Slow)? {
                None => return Ok(None),
                Some(Err(error)) => return Err(WebRequestError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// What comes of the body, up to so many bytes and no further, and whether there was more.
    pub(crate) async fn beginning(
        &mut self,
        most: usize,
    ) -> Result<(Vec<u8>, bool), WebRequestError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            let room = most - all.len();
            all.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    /// All of the body, if that is no more than so many bytes.
    pub(crate) async fn bytes(&mut self, most: usize) -> Result<Vec<u8>, WebRequestError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            if all.len() + piece.len() > most {
                return Err(WebRequestError::TooLarge(most));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    pub(crate) async fn text(&mut self, most: usize) -> Result<String, WebRequestError> {
        let bytes = self.bytes(most).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
