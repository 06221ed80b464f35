//! One request and its answer, both bodies at once.
//!
//! An origin may answer before it has read everything, and may ask for the body first (`100 Continue`).
//! So sending and receiving run side by side; the answer decides when the exchange is over.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, split};

use super::body::{BodyEncoding, BodyError, BodyReader};
use super::framing::{BodyFraming, FramingError};
use super::head::{HeadError, HttpVersion, ResponseHead};
use super::source::{ReadAhead, ReadHeadError};
use crate::account::BudgetSpent;
use crate::audit::ByteMeter;
use crate::credential::CredentialRedactor;
use crate::limits::EgressLimits;
use crate::stream::PeekedStream;

/// Answers before the answer (`100 Continue` and its kin); an honest exchange has one or two.
const MOST_INTERIM: usize = 32;

/// A request, checked and ready to go out.
pub(crate) struct OutgoingRequest {
    pub(crate) head: Vec<u8>,
    pub(crate) method: String,
    pub(crate) framing: BodyFraming,
    /// The sandbox asked to turn the connection into a websocket.
    pub(crate) upgrade: bool,
    /// A proxy reads it and passes it on.
    pub(crate) forwarded: bool,
    pub(crate) client_version: HttpVersion,
    /// The sandbox wants the connection kept.
    pub(crate) keep: bool,
}

/// How an exchange ended that did not fail.
pub(crate) enum ExchangeEnd {
    Answered {
        keep_client: bool,
        keep_upstream: bool,
    },
    /// From here on the two sides talk freely.
    Upgraded,
}

/// The reason why an exchange failed.
#[derive(Debug, Error)]
pub(crate) enum ExchangeError {
    #[error("the request body: {0}")]
    Request(BodyError),
    #[error("the answer has a malformed head: {0}")]
    AnswerHead(#[from] HeadError),
    #[error("the answer is framed in a way that can be read twice: {0}")]
    AnswerFraming(#[from] FramingError),
    #[error("the answer: {0}")]
    AnswerRead(#[from] ReadHeadError),
    #[error("the answer's body: {0}")]
    AnswerBody(BodyError),
    #[error("no answer came")]
    NoAnswer,
    #[error("no answer came within {} s", after.as_secs())]
    Slow { after: Duration },
    #[error("the answer switches protocols without being asked")]
    Switch,
    #[error("more than {MOST_INTERIM} interim answers came and no last one")]
    TooManyInterim,
    #[error("the answer is compressed, so it cannot be searched for the credential")]
    Compressed,
    #[error("the proxy in between wants another login")]
    ProxyLogin,
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

/// An error and whether the sandbox has already seen part of an answer.
pub(crate) struct ExchangeFailure {
    pub(crate) error: ExchangeError,
    pub(crate) begun: bool,
}

pub(crate) async fn run(
    client: &mut PeekedStream,
    upstream: &mut PeekedStream,
    request: &OutgoingRequest,
    meter: &ByteMeter,
    limits: &EgressLimits,
    redactor: Option<CredentialRedactor>,
) -> Result<ExchangeEnd, ExchangeFailure> {
    let (client, client_ahead) = client.parts();
    let (upstream, upstream_ahead) = upstream.parts();
    let (client_reader, client_writer) = split(client);
    let (upstream_reader, upstream_writer) = split(upstream);

    let mut begun = false;
    let upload = send(
        ReadAhead::new(client_reader, client_ahead),
        upstream_writer,
        request,
        meter,
        limits.idle,
    );
    let answer = ResponseRelay {
        source: ReadAhead::new(upstream_reader, upstream_ahead),
        client: client_writer,
        request,
        meter,
        limits,
        redactor,
        begun: &mut begun,
    };
    let result = side_by_side(upload, answer.pass_on()).await;
    result.map_err(|error| ExchangeFailure { error, begun })
}

async fn side_by_side(
    upload: impl Future<Output = Result<UploadEnd, ExchangeError>>,
    answer: impl Future<Output = Result<ExchangeEnd, ExchangeError>>,
) -> Result<ExchangeEnd, ExchangeError> {
    tokio::pin!(upload, answer);
    let mut sent = None;
    loop {
        tokio::select! {
            result = &mut upload, if sent.is_none() => sent = Some(result?),
            result = &mut answer => return Ok(match (result?, sent) {
                (ExchangeEnd::Answered { keep_client, keep_upstream }, sent) => {
                    // A request that was not sent to its end leaves the connection in the middle of
                    // a body, where nothing else can begin.
                    let whole = matches!(sent, Some(UploadEnd::Whole));
                    let (keep_client, keep_upstream) = (keep_client && whole, keep_upstream && whole);
                    ExchangeEnd::Answered { keep_client, keep_upstream }
                }
                (ExchangeEnd::Upgraded, _) => ExchangeEnd::Upgraded,
            }),
        }
    }
}

/// How the sending of a request's body ended.
#[derive(Clone, Copy)]
enum UploadEnd {
    Whole,
    /// The other side stopped listening; its answer may still come.
    Stopped,
}

async fn send<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut source: ReadAhead<'_, R>,
    mut upstream: W,
    request: &OutgoingRequest,
    meter: &ByteMeter,
    idle: Duration,
) -> Result<UploadEnd, ExchangeError> {
    meter.up(request.head.len())?;
    if BodyEncoding::Plain
        .write(&mut upstream, &request.head, idle)
        .await
        .is_err()
    {
        // No error: an origin that has heard enough closes, and what it says about that is on its
        // way.
        return Ok(UploadEnd::Stopped);
    }
    let wrap = match request.framing {
        BodyFraming::Chunked => BodyEncoding::Chunks,
        BodyFraming::Empty | BodyFraming::Length(_) | BodyFraming::UntilClose => {
            BodyEncoding::Plain
        }
    };
    let mut body = BodyReader::new(request.framing, idle);
    while let Some(data) = body
        .next(&mut source)
        .await
        .map_err(ExchangeError::Request)?
    {
        meter.up(data.len())?;
        if wrap.write(&mut upstream, &data, idle).await.is_err() {
            return Ok(UploadEnd::Stopped);
        }
    }
    Ok(if wrap.finish(&mut upstream, idle).await.is_ok() {
        UploadEnd::Whole
    } else {
        UploadEnd::Stopped
    })
}

/// Passes the response on to the sandbox.
struct ResponseRelay<'a, R, W> {
    source: ReadAhead<'a, R>,
    client: W,
    request: &'a OutgoingRequest,
    meter: &'a ByteMeter,
    limits: &'a EgressLimits,
    redactor: Option<CredentialRedactor>,
    begun: &'a mut bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ResponseRelay<'_, R, W> {
    async fn pass_on(mut self) -> Result<ExchangeEnd, ExchangeError> {
        for _ in 0..=MOST_INTERIM {
            let head = self.head().await?;
            match head.status {
                // It is asked of us, and no business of the sandbox.
                407 if self.request.forwarded => return Err(ExchangeError::ProxyLogin),
                101 => return self.switch(head).await,
                100..200 => self.interim(head).await?,
                _ => return self.last(head).await,
            }
        }
        Err(ExchangeError::TooManyInterim)
    }

    async fn head(&mut self) -> Result<ResponseHead, ExchangeError> {
        // A long upload is progress too, so the wait starts over while bytes move.
        let mut seen = self.meter.total();
        let wait = self.limits.first_byte;
        loop {
            match self.source.first_byte(wait).await {
                Some(Ok(true)) => break,
                Some(Ok(false)) => return Err(ExchangeError::NoAnswer),
                Some(Err(error)) => return Err(error.into()),
                None if self.meter.total() != seen => seen = self.meter.total(),
                None => return Err(ExchangeError::Slow { after: wait }),
            }
        }
        let limits = self.limits;
        let bytes = self
            .source
            .head(limits.head_bytes, limits.head_time)
            .await?;
        let bytes = bytes.ok_or(ExchangeError::NoAnswer)?;
        self.meter.down(bytes.len())?;
        Ok(ResponseHead::parse(&bytes)?)
    }

    async fn switch(mut self, mut head: ResponseHead) -> Result<ExchangeEnd, ExchangeError> {
        if !self.request.upgrade || !head.fields.lists("upgrade", "websocket") {
            return Err(ExchangeError::Switch);
        }
        // We asked for none, and could not search what is compressed.
        if self.redactor.is_some() && head.fields.has("sec-websocket-extensions") {
            return Err(ExchangeError::Compressed);
        }
        head.fields.strip_hop_by_hop();
        head.fields.push("Connection", b"Upgrade");
        head.fields.push("Upgrade", b"websocket");
        self.write_head(&head).await?;
        Ok(ExchangeEnd::Upgraded)
    }

    async fn interim(&mut self, mut head: ResponseHead) -> Result<(), ExchangeError> {
        // That version knows no answer before the answer.
        if self.request.client_version == HttpVersion::Http10 {
            return Ok(());
        }
        BodyFraming::of_response(&head, &self.request.method)?;
        head.fields.strip_hop_by_hop();
        head.fields.remove("content-length");
        self.write_head(&head).await
    }

    async fn last(mut self, mut head: ResponseHead) -> Result<ExchangeEnd, ExchangeError> {
        let framing = BodyFraming::of_response(&head, &self.request.method)?;
        let identity = |value: &[u8]| value.eq_ignore_ascii_case(b"identity");
        // What is compressed cannot be searched, and was not asked for. Refused before a byte of it
        // is seen.
        if self.redactor.is_some() && !head.fields.all("content-encoding").all(identity) {
            return Err(ExchangeError::Compressed);
        }
        let closes = head.fields.lists("connection", "close");
        let old =
            head.version == HttpVersion::Http10 && !head.fields.lists("connection", "keep-alive");
        let keep_upstream = !closes && !old && framing != BodyFraming::UntilClose;

        let wrap = match (framing, self.request.client_version) {
            (BodyFraming::Chunked, HttpVersion::Http11) => BodyEncoding::Chunks,
            _ => BodyEncoding::Plain,
        };
        let unframed = framing == BodyFraming::UntilClose
            || (framing == BodyFraming::Chunked && wrap == BodyEncoding::Plain);
        let keep_client = self.request.keep && !unframed;

        head.fields.strip_hop_by_hop();
        if wrap == BodyEncoding::Chunks {
            head.fields.push("Transfer-Encoding", b"chunked");
        }
        if !keep_client {
            head.fields.push("Connection", b"close");
        } else if self.request.client_version == HttpVersion::Http10 {
            head.fields.push("Connection", b"keep-alive");
        }
        self.write_head(&head).await?;
        self.body(framing, wrap).await?;
        Ok(ExchangeEnd::Answered {
            keep_client,
            keep_upstream,
        })
    }

    async fn write_head(&mut self, head: &ResponseHead) -> Result<(), ExchangeError> {
        let mut bytes = format!("HTTP/1.1 {} ", head.status).into_bytes();
        bytes.extend_from_slice(&head.reason);
        bytes.extend_from_slice(b"\r\n");
        head.fields.write(&mut bytes);
        if let Some(redactor) = &self.redactor {
            redactor.mask(&mut bytes);
        }
        // Before the write: part of it may have gone out when it fails.
        *self.begun = true;
        Ok(BodyEncoding::Plain
            .write(&mut self.client, &bytes, self.limits.idle)
            .await?)
    }

    async fn body(
        &mut self,
        framing: BodyFraming,
        wrap: BodyEncoding,
    ) -> Result<(), ExchangeError> {
        let idle = self.limits.idle;
        let mut body = BodyReader::new(framing, idle);
        while let Some(data) = body
            .next(&mut self.source)
            .await
            .map_err(ExchangeError::AnswerBody)?
        {
            self.meter.down(data.len())?;
            let data = match &mut self.redactor {
                Some(redactor) => redactor.push(&data),
                None => data,
            };
            if !data.is_empty() {
                wrap.write(&mut self.client, &data, idle).await?;
            }
        }
        let rest = self
            .redactor
            .as_mut()
            .map(CredentialRedactor::finish)
            .unwrap_or_default();
        if !rest.is_empty() {
            wrap.write(&mut self.client, &rest, idle).await?;
        }
        Ok(wrap.finish(&mut self.client, idle).await?)
    }
}
