//! Traces on their way to a collector, by OTLP over HTTP.
//!
//! A turn only ever puts a finished span into a bounded queue. A task of its own takes them from there in batches;
//! what a collector does not take in time is dropped, because spans that wait would grow with every message and
//! are worth less than any of them.

mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;
use hermetic_config::{Config, TraceConfig};
use hermetic_gateway::{FinishedSpan, MessageTraces, TraceExport};
use hermetic_types::{InstallationId, SharedClock};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, redirect};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::AppFailure;

/// Spans that wait to be sent. A turn has a dozen or two, of some hundred bytes each.
const QUEUE: usize = 4096;

/// Spans of one request.
const BATCH: usize = 512;

/// How long a batch is waited for.
const BATCH_TIME: Duration = Duration::from_secs(2);

/// How long a collector may take for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a collector may ask us to wait before the second try.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long the last spans may take when the gateway stops.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Puts the traces of this configuration together: what stages tell, and who sends it away.
pub(super) fn traces(
    config: &Config,
    installation: &InstallationId,
    clock: &SharedClock,
    registry: &mut Registry,
) -> Result<(MessageTraces, Option<TraceExport>), AppFailure> {
    let Some(wanted) = &config.gateway().traces else {
        return Ok((MessageTraces::default(), None));
    };
    let (sender, spans) = mpsc::channel(QUEUE);
    let salt = installation.to_string();
    let traces = MessageTraces::into_queue(sender, Arc::clone(clock), salt, registry);
    let collector = TraceCollector::new(config, wanted, registry)?;
    let export = TraceExport::new(move |stop| collector.export(spans, stop).boxed());
    Ok((traces, Some(export)))
}

/// One collector and what became of what it was sent.
#[derive(Debug)]
struct TraceCollector {
    client: Client,
    address: String,
    service_name: String,
    exported: Family<ExportLabel, Counter>,
    /// Whether the log knows that it does not answer.
    is_away: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExportLabel {
    outcome: &'static str,
}

/// Why a batch was not taken.
#[derive(Debug)]
enum NotTaken {
    /// The collector asked to be tried again.
    Later(Duration),
    Refused(String),
}

impl TraceCollector {
    fn new(
        config: &Config,
        wanted: &TraceConfig,
        registry: &mut Registry,
    ) -> Result<Self, AppFailure> {
        let mut builder = Client::builder()
            .default_headers(headers(wanted)?)
            .timeout(REQUEST_TIMEOUT)
            // A redirect would carry the collector's key to a host that nobody configured.
            .redirect(redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = &config.gateway().proxy {
            builder = builder.proxy(proxy.for_client());
        }
        let remedy = "check gateway.telemetry.otlp";
        let client = builder.build();
        let client = client.map_err(|error| AppFailure::caused(&error, remedy))?;
        let exported = Family::<ExportLabel, Counter>::default();
        registry.register(
            "trace_spans_exported",
            "Spans by what became of them at the collector",
            exported.clone(),
        );
        for outcome in ["sent", "failed"] {
            drop(exported.get_or_create(&ExportLabel { outcome }));
        }
        Ok(Self {
            client,
            address: wanted.address.clone(),
            service_name: wanted.service_name.clone(),
            exported,
            is_away: false,
        })
    }

    /// Sends what comes, until `stop`; then what is left, as far as there is time. A request that is under way then
    /// is cut as well: a collector that hangs must not hold the gateway's end up.
    async fn export(mut self, spans: mpsc::Receiver<FinishedSpan>, stop: CancellationToken) {
        let out_of_time = async {
            stop.cancelled().await;
            sleep(LAST_SPANS).await;
        };
        tokio::select! {
            () = self.export_all(spans, &stop) => {}
            // Around all of it and not only the last batch: it may be in the middle of a request
            // when the stop comes.
            () = out_of_time => {
                warn!("the last spans of this run did not reach the collector of traces");
            }
        }
    }

    async fn export_all(
        &mut self,
        mut spans: mpsc::Receiver<FinishedSpan>,
        stop: &CancellationToken,
    ) {
        while let Some(Some(first)) = stop.run_until_cancelled(spans.recv()).await {
            let mut batch = vec![first];
            let full_at = Instant::now() + BATCH_TIME;
            while batch.len() < BATCH {
                let next = timeout_at(full_at, stop.run_until_cancelled(spans.recv())).await;
                let Ok(Some(Some(span))) = next else { break };
                batch.push(span);
            }
            self.deliver(&batch, stop).await;
        }
        // By what waits and not until the channel ends: whoever holds its other end may live longer
        // than this task.
        while !spans.is_empty() {
            let mut batch = Vec::new();
            spans.recv_many(&mut batch, BATCH).await;
            self.deliver(&batch, stop).await;
        }
    }

    async fn deliver(&mut self, batch: &[FinishedSpan], stop: &CancellationToken) {
        let body = wire::request(&self.service_name, batch);
        let sent = match self.post(body.clone()).await {
            Err(NotTaken::Later(pause)) => {
                // One more try and no more: the queue behind this batch fills meanwhile, and when
                // it is full newer spans are lost.
                stop.run_until_cancelled(sleep(pause)).await;
                self.post(body).await
            }
            sent => sent,
        };
        let outcome = match sent {
            Ok(()) => {
                self.is_away = false;
                "sent"
            }
            Err(why) => {
                // Said once for as long as it lasts: the figures say how much is lost.
                if !std::mem::replace(&mut self.is_away, true) {
                    let why = why.words();
                    warn!(
                        why,
                        "the collector of traces does not take spans, so they are dropped"
                    );
                }
                "failed"
            }
        };
        let many = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        self.exported
            .get_or_create(&ExportLabel { outcome })
            .inc_by(many);
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), NotTaken> {
        let posted = self.client.post(&self.address).body(body).send().await;
        let answer = posted.map_err(|error| {
            // Without the address, which may hold a key.
            let error = error.without_url();
            match error.is_connect() || error.is_timeout() {
                true => NotTaken::Later(Duration::from_millis(500)),
                false => NotTaken::Refused(error.to_string()),
            }
        })?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(NotTaken::Later(pause(answer.headers()))),
            status => Err(NotTaken::Refused(status.to_string())),
        }
    }
}

impl NotTaken {
    fn words(&self) -> &str {
        match self {
            Self::Later(_) => "it does not answer, or asks to be left alone",
            Self::Refused(why) => why,
        }
    }
}

/// What the collector asked for, within reason.
fn pause(headers: &HeaderMap) -> Duration {
    let asked = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let seconds = asked.and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_secs(seconds).min(LONGEST_PAUSE)
}

fn headers(wanted: &TraceConfig) -> Result<HeaderMap, AppFailure> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-protobuf"),
    );
    for (name, value) in &wanted.headers {
        let remedy = "check gateway.telemetry.otlp.headers";
        let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes())
            .map_err(|error| AppFailure::caused(&error, remedy))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|error| AppFailure::caused(&error, remedy))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
