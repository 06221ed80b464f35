//! What is counted about messages and turns, and `GET /metrics` for Prometheus.
//!
//! Each part is handed its place to count when it is built; this page only shows what the registry
//! holds, and reads no table for it. Labels come from lists of ours or from the configuration (accounts,
//! models), never from what somebody wrote: everything counted is kept for the life of the process.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hermetic_agent::{SpentTokens, TokenUsage};
use hermetic_chat::{Chat, ChatState};
use hermetic_types::{AccountId, PartHealth, Platform};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::handle::chat_state_words;
use super::{GatewayCondition, exposition};

/// A slash command takes milliseconds, a turn with tools minutes.
const TURN_SECONDS_BUCKETS: [f64; 11] = [
    0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
];

/// Waiting for nobody takes microseconds, a model half a minute, a tool longer.
const STAGE_SECONDS_BUCKETS: [f64; 12] = [
    0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

/// Models that are told apart. The configuration names a few; whatever else answers is counted together.
const MOST_MODELS: usize = 64;

/// What tokens are counted apart. What came from the provider's cache is part of the input.
const TOKEN_KINDS: [&str; 3] = ["input", "output", "cached_input"];

/// Counts messages, turns and their stages, requests to models, replies, and how platforms are. Clones share
/// the counts.
#[derive(Clone, Debug)]
pub struct GatewayMetrics {
    messages: Family<PlatformLabel, Counter>,
    turns: Family<OutcomeLabel, Counter>,
    turn_seconds: Histogram,
    stage_seconds: Family<StageLabel, Histogram>,
    model_requests: Family<ModelOutcomeLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    dollars: Family<ModelLabel, Counter<f64, AtomicU64>>,
    unpriced: Family<ModelLabel, Counter>,
    models: Arc<Mutex<HashMap<String, ModelLabel>>>,
    deliveries: Family<DeliveryLabels, Counter>,
    reconnects: Family<AccountLabel, Counter>,
    degraded: Family<PartLabel, Gauge>,
    active: Gauge,
}

/// How a turn ended, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Answered,
    Failed,
    /// It waits for a person, over a restart.
    Deferred,
}

/// A stage of a message's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageStage {
    /// From its arrival to its place in the store.
    Receipt,
    /// From there to the beginning of its turn.
    Queue,
    /// One request to the model, with what was tried again.
    Model,
    /// One tool call, without the time in which a person was asked.
    Tool,
    /// From a reply that is written down to the platform's word that it has it.
    Delivery,
}

/// What became of an attempt to send a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    Sent,
    /// Tried again later.
    Delayed,
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlatformLabel {
    platform: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabel {
    model: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelOutcomeLabels {
    model: Arc<str>,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    model: Arc<str>,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    platform: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabel {
    account: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    part: String,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self {
            messages: Family::default(),
            turns: Family::default(),
            turn_seconds: Histogram::new(TURN_SECONDS_BUCKETS),
            stage_seconds: Family::new_with_constructor(|| Histogram::new(STAGE_SECONDS_BUCKETS)),
            model_requests: Family::default(),
            tokens: Family::default(),
            dollars: Family::default(),
            unpriced: Family::default(),
            models: Arc::default(),
            deliveries: Family::default(),
            reconnects: Family::default(),
            degraded: Family::default(),
            active: Gauge::default(),
        }
    }
}

impl GatewayMetrics {
    /// Counts in this registry, and shows there how these accounts are.
    pub fn registered(registry: &mut Registry, chats: &[Arc<dyn Chat>]) -> Self {
        let metrics = Self::default();
        registry.register(
            "messages_accepted",
            "Messages that were let in and written down",
            metrics.messages.clone(),
        );
        registry.register("turns", "Turns that ended", metrics.turns.clone());
        registry.register_with_unit(
            "turn",
            "Time from the beginning of a turn to its end",
            Unit::Seconds,
            metrics.turn_seconds.clone(),
        );
        registry.register_with_unit(
            "stage",
            "Time that messages spent in each stage of their life",
            Unit::Seconds,
            metrics.stage_seconds.clone(),
        );
        registry.register(
            "model_requests",
            "Requests to models, by how they ended",
            metrics.model_requests.clone(),
        );
        registry.register(
            "tokens",
            "Tokens that models read and wrote",
            metrics.tokens.clone(),
        );
        registry.register(
            "unpriced_tokens",
            "Tokens of models whose price is not known",
            metrics.unpriced.clone(),
        );
        registry.register(
            "cost_dollars",
            "What models cost, in dollars, as far as their price is known",
            metrics.dollars.clone(),
        );
        registry.register(
            "deliveries",
            "Attempts to send a reply, by what became of them",
            metrics.deliveries.clone(),
        );
        registry.register(
            "platform_reconnects",
            "Times that an account was seen connected after it was not",
            metrics.reconnects.clone(),
        );
        registry.register(
            "part_degraded",
            "Parts of the gateway: 1 while one is in trouble, else 0",
            metrics.degraded.clone(),
        );
        registry.register(
            "conversations_active",
            "Conversations with something going on",
            metrics.active.clone(),
        );
        registry.register_collector(Box::new(PlatformStates(chats.to_vec())));
        // There from the first look, so that a rate is known after the second.
        for stage in MessageStage::ALL {
            drop(metrics.stage_seconds.get_or_create(&stage.label()));
        }
        for end in [TurnEnd::Answered, TurnEnd::Failed, TurnEnd::Deferred] {
            drop(metrics.turns.get_or_create(&end.label()));
        }
        for chat in chats {
            let account = chat.account().to_string();
            drop(metrics.reconnects.get_or_create(&AccountLabel { account }));
            let platform = chat.account().platform().name();
            drop(metrics.messages.get_or_create(&PlatformLabel { platform }));
            for end in [
                DeliveryEnd::Sent,
                DeliveryEnd::Delayed,
                DeliveryEnd::GivenUp,
            ] {
                let outcome = end.name();
                let labels = DeliveryLabels { platform, outcome };
                drop(metrics.deliveries.get_or_create(&labels));
            }
        }
        metrics
    }

    pub(crate) fn accepted(&self, platform: Platform) {
        let label = PlatformLabel {
            platform: platform.name(),
        };
        self.messages.get_or_create(&label).inc();
    }

    pub(crate) fn turn_ended(&self, end: TurnEnd, took: Duration) {
        self.turns.get_or_create(&end.label()).inc();
        self.turn_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn stage_ended(&self, stage: MessageStage, took: Duration) {
        let seconds = self.stage_seconds.get_or_create(&stage.label());
        seconds.observe(took.as_secs_f64());
    }

    /// This model will be asked. What is counted of it is there from the first look on.
    pub(crate) fn expect_model(&self, model: &str) {
        let label = self.model(model);
        for outcome in ["answered", "failed"] {
            let model = Arc::clone(&label.model);
            let labels = ModelOutcomeLabels { model, outcome };
            drop(self.model_requests.get_or_create(&labels));
        }
        for kind in TOKEN_KINDS {
            let model = Arc::clone(&label.model);
            drop(self.tokens.get_or_create(&TokenLabels { model, kind }));
        }
        drop(self.dollars.get_or_create(&label));
        drop(self.unpriced.get_or_create(&label));
    }

    /// A request to a model came to its end.
    pub(crate) fn requested(&self, model: &str, spent: SpentTokens) {
        let ModelLabel { model } = self.model(model);
        let outcome = match spent {
            SpentTokens::Nothing => "failed",
            SpentTokens::Counted(_) => "answered",
        };
        let labels = ModelOutcomeLabels {
            model: Arc::clone(&model),
            outcome,
        };
        self.model_requests.get_or_create(&labels).inc();
        if let SpentTokens::Counted(usage) = spent {
            self.spent(model, usage);
        }
    }

    fn spent(&self, model: Arc<str>, usage: TokenUsage) {
        let many = [usage.input_tokens, usage.output_tokens, usage.cached_tokens];
        for (kind, many) in TOKEN_KINDS.into_iter().zip(many) {
            let model = Arc::clone(&model);
            let counted = self
                .tokens
                .get_or_create_owned(&TokenLabels { model, kind });
            counted.inc_by(many);
        }
        let label = ModelLabel { model };
        match usage.cost {
            #[expect(
                clippy::cast_precision_loss,
                reason = "nine digits of a dollar are more than anybody pays with"
            )]
            Some(cost) => drop(
                self.dollars
                    .get_or_create(&label)
                    .inc_by(cost.get() as f64 / 1e9),
            ),
            None => drop(self.unpriced.get_or_create(&label).inc_by(usage.tokens())),
        }
    }

    /// The name under which a model is counted.
    fn model(&self, name: &str) -> ModelLabel {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = models.get(name) {
            return known.clone();
        }
        let shown = match models.len() < MOST_MODELS {
            true => name,
            false => "other",
        };
        let label = ModelLabel {
            model: shown.into(),
        };
        if models.len() < MOST_MODELS {
            models.insert(name.to_owned(), label.clone());
        }
        label
    }

    pub(crate) fn delivered(&self, platform: Platform, end: DeliveryEnd) {
        let labels = DeliveryLabels {
            platform: platform.name(),
            outcome: end.name(),
        };
        self.deliveries.get_or_create(&labels).inc();
    }

    /// How the gateway is now, and how it was when somebody looked last.
    pub(crate) fn condition(&self, before: Option<&GatewayCondition>, now: &GatewayCondition) {
        self.active
            .set(i64::try_from(now.active).unwrap_or(i64::MAX));
        for part in &now.parts {
            let label = PartLabel {
                part: part.name.clone(),
            };
            let degraded = matches!(part.health, PartHealth::Degraded { .. });
            self.degraded.get_or_create(&label).set(i64::from(degraded));
        }
        let was_connected = |account: &AccountId| {
            let mut accounts = before?.accounts.iter();
            let (_, state) = accounts.find(|(known, _)| known == account)?;
            Some(!matches!(state, ChatState::Retrying { .. }))
        };
        for (account, state) in &now.accounts {
            if *state == ChatState::Connected && was_connected(account) == Some(false) {
                let account = account.to_string();
                self.reconnects
                    .get_or_create(&AccountLabel { account })
                    .inc();
            }
        }
    }
}

impl DeliveryEnd {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delayed => "delayed",
            Self::GivenUp => "given_up",
        }
    }
}

impl TurnEnd {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
        }
    }

    fn label(self) -> OutcomeLabel {
        OutcomeLabel {
            outcome: self.name(),
        }
    }
}

impl MessageStage {
    const ALL: [Self; 5] = [
        Self::Receipt,
        Self::Queue,
        Self::Model,
        Self::Tool,
        Self::Delivery,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Receipt => "receipt",
            Self::Queue => "queue",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Delivery => "delivery",
        }
    }

    fn label(self) -> StageLabel {
        StageLabel { stage: self.name() }
    }
}

/// How each account is, looked at when somebody asks.
struct PlatformStates(Vec<Arc<dyn Chat>>);

impl fmt::Debug for PlatformStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlatformStates")
            .field(&self.0.len())
            .finish()
    }
}

impl Collector for PlatformStates {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut states = encoder.encode_descriptor(
            "platform_state",
            "Chat accounts: 1 for the state that each is in.",
            None,
            MetricType::Gauge,
        )?;
        for chat in &self.0 {
            let account = chat.account().to_string();
            let (is, _) = chat_state_words(&chat.state());
            for state in ["starting", "connected", "retrying", "stopped"] {
                let labels = [("account", account.as_str()), ("state", state)];
                let gauge = ConstGauge::new(i64::from(state == is));
                gauge.encode(states.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn routes(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .with_state(registry)
}

async fn metrics(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    let mut text = String::new();
    if let Err(error) = encode(&mut text, &registry) {
        tracing::error!(%error, "what was counted cannot be written");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|kinds| kinds.contains("application/openmetrics-text")) {
        return ([(CONTENT_TYPE, exposition::OPENMETRICS)], text).into_response();
    }
    let text = exposition::plain_text(&text);
    ([(CONTENT_TYPE, exposition::PLAIN_TEXT)], text).into_response()
}

#[cfg(test)]
mod tests {
    use hermetic_agent::NanoDollars;

    use super::*;

    fn shown(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    fn has(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|shown| shown == *line), "{line} in {text}");
        }
    }

    #[test]
    fn what_was_counted_is_shown_under_the_names_that_dashboards_use() {
        let mut registry = Registry::with_prefix("hermetic");
        let counted = GatewayMetrics::registered(&mut registry, &[]);
        counted.accepted(Platform::Telegram);
        counted.turn_ended(TurnEnd::Answered, Duration::from_millis(20));
        counted.stage_ended(MessageStage::Queue, Duration::from_millis(3));
        counted.delivered(Platform::Telegram, DeliveryEnd::Sent);
        let usage = TokenUsage {
            input_tokens: 100,
            output_tokens: 7,
            cost: Some(NanoDollars::new(2_500_000_000)),
            ..TokenUsage::default()
        };
        counted.requested("m", SpentTokens::Counted(usage));
        counted.requested("m", SpentTokens::Nothing);
        let text = shown(&registry);
        has(
            &text,
            &[
                "hermetic_messages_accepted_total{platform=\"telegram\"} 1",
                "hermetic_turns_total{outcome=\"answered\"} 1",
                "hermetic_turns_total{outcome=\"failed\"} 0",
                "hermetic_turn_seconds_bucket{le=\"0.05\"} 1",
                "hermetic_turn_seconds_count 1",
                "hermetic_stage_seconds_bucket{le=\"0.005\",stage=\"queue\"} 1",
                "hermetic_stage_seconds_count{stage=\"tool\"} 0",
                "hermetic_deliveries_total{platform=\"telegram\",outcome=\"sent\"} 1",
                "hermetic_tokens_total{model=\"m\",kind=\"input\"} 100",
                "hermetic_cost_dollars_total{model=\"m\"} 2.5",
                "hermetic_model_requests_total{model=\"m\",outcome=\"failed\"} 1",
            ],
        );
    }

    #[test]
    fn whatever_answers_there_is_an_end_to_the_names_of_models() {
        let mut registry = Registry::default();
        let counted = GatewayMetrics::registered(&mut registry, &[]);
        for number in 0..MOST_MODELS * 3 {
            let usage = SpentTokens::Counted(TokenUsage::default());
            counted.requested(&format!("model {number}"), usage);
        }
        let text = shown(&registry);
        let lines = text.lines();
        let requests = lines.filter(|line| line.starts_with("model_requests_total"));
        assert_eq!(requests.count(), MOST_MODELS + 1);
        assert!(text.contains("model=\"other\""));
    }
}
