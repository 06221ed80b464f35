//! What a turn costs beyond the model's own time.
//!
//! `cargo bench -p hermetic-agent`

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::endpoint::{EndpointSettings, ModelEndpoint};
use hermetic_agent::{
    Agent, AgentTurn, LanguageModel, Message, NoJournal, SilentObserver, SteeringHandle,
    ToolInvocation, ToolResult, ToolSet, ToolSpec, TurnBounds, TurnInput, TurnObserver,
};
use hermetic_redact::{Redacted, Redactor};
use hermetic_testkit::model::{Line, Reply, ScriptedModel, ScriptedServer};
use hermetic_types::SystemClock;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const TURNS: usize = 500;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let talks = ScriptedModel::new((0..TURNS).map(|_| Line::says("a short answer")));
    measure("in the process, no tool", Arc::new(talks), &[]).await?;

    let calls = (0..TURNS).flat_map(|_| [Line::calls(&[("echo", "{}")]), Line::says("done")]);
    measure(
        "in the process, one tool call",
        Arc::new(ScriptedModel::new(calls)),
        &[],
    )
    .await?;

    let server =
        ScriptedServer::start((0..TURNS).map(|_| Reply::streams(&["a ", "short ", "answer"])))
            .await?;
    let model = ModelEndpoint::new(
        EndpointSettings::new(server.base_url(), None, "m"),
        SystemClock::shared(),
    )?;
    measure("over loopback, no tool", Arc::new(model), &[]).await?;

    let server = ScriptedServer::start((0..TURNS).map(|_| Reply::streams(&["ok"]))).await?;
    let model = ModelEndpoint::new(
        EndpointSettings::new(server.base_url(), None, "m"),
        SystemClock::shared(),
    )?;
    let redactor = redactor();
    let history: Vec<_> = (0..100)
        .flat_map(|_| {
            [
                Message::user(redactor.redact("x".repeat(500))),
                Message::assistant("y".repeat(500)),
            ]
        })
        .collect();
    measure(
        "over loopback, 100 kB of history",
        Arc::new(model),
        &history,
    )
    .await?;
    first_token().await
}

/// From the moment the model's server lets the first piece go to the moment whoever looks on is told.
async fn first_token() -> Result<(), Box<dyn Error>> {
    let gate = Arc::new(Notify::new());
    let replies = (0..TURNS).map(|_| Reply::streams_through(&gate, &[], &["first ", "second"]));
    let server = ScriptedServer::start(replies).await?;
    let model = ModelEndpoint::new(
        EndpointSettings::new(server.base_url(), None, "m"),
        SystemClock::shared(),
    )?;
    let agent = Agent::new(Arc::new(model), TurnBounds::default(), redactor());
    let steer = SteeringHandle::default();
    let mut times = Vec::with_capacity(TURNS);
    for asked in 0..TURNS {
        let heard = FirstHeard::default();
        let turn = AgentTurn {
            system: &Redacted::constant("be brief"),
            summary: None,
            history: &[],
            input: TurnInput::Says("hello"),
            media: &[],
            tools: &Echo,
            journal: &NoJournal,
            observer: &heard,
            steer: &steer,
            meter: &hermetic_agent::NoMeter,
        };
        let taking = agent.take_turn(turn, CancellationToken::new());
        let opening = async {
            server.wait_for(asked + 1).await;
            let let_go = Instant::now();
            gate.notify_one();
            let_go
        };
        let (taken, let_go) = futures::future::join(taking, opening).await;
        taken?;
        times.push(
            heard
                .at()
                .ok_or("nothing was heard")?
                .duration_since(let_go),
        );
    }
    times.sort();
    println!(
        "{:>34}: median {:?}, p95 {:?}, p99 {:?}",
        "the first piece, passed on",
        times[TURNS / 2],
        times[TURNS * 95 / 100],
        times[TURNS * 99 / 100]
    );
    Ok(())
}

/// When the first piece of an answer came.
#[derive(Default)]
struct FirstHeard(Mutex<Option<Instant>>);

impl FirstHeard {
    fn at(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnObserver for FirstHeard {
    fn text(&self, _: &str) {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.get_or_insert_with(Instant::now);
    }
}

async fn measure(
    name: &str,
    model: Arc<dyn LanguageModel>,
    history: &[Message],
) -> Result<(), Box<dyn Error>> {
    let agent = Agent::new(model, TurnBounds::default(), redactor());
    let steer = SteeringHandle::default();
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let turn = AgentTurn {
            system: &Redacted::constant("be brief"),
            summary: None,
            history,
            input: TurnInput::Says("hello"),
            media: &[],
            tools: &Echo,
            journal: &NoJournal,
            observer: &SilentObserver,
            steer: &steer,
            meter: &hermetic_agent::NoMeter,
        };
        let started = Instant::now();
        agent.take_turn(turn, CancellationToken::new()).await?;
        times.push(started.elapsed());
    }
    times.sort();
    let total: Duration = times.iter().sum();
    println!(
        "{name:>34}: median {:?}, p95 {:?}, {:.0} turns/s",
        times[TURNS / 2],
        times[TURNS * 95 / 100],
        f64::from(u16::try_from(TURNS)?) / total.as_secs_f64()
    );
    Ok(())
}

fn redactor() -> Redactor {
    Redactor::new([], hermetic_redact::RedactorSettings::default())
}

struct Echo;

impl ToolSet for Echo {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "echo".into(),
            description: "says it again".into(),
            schema: json!({"type": "object"}).into(),
        }]
    }

    fn call<'a>(
        &'a self,
        _: ToolInvocation<'a>,
        _: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async { ToolResult::new("again") }.boxed()
    }
}
