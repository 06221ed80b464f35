//! What a turn costs beyond the model's own time.
//!
//! `cargo bench -p hermetic-agent`

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::endpoint::{EndpointSettings, ModelEndpoint};
use hermetic_agent::{
    Agent, AgentTurn, LanguageModel, Message, NoJournal, SilentObserver, SteeringHandle,
    ToolInvocation, ToolResult, ToolSet, ToolSpec, TurnBounds, TurnInput,
};
use hermetic_redact::{Redacted, Redactor};
use hermetic_testkit::model::{Line, Reply, ScriptedModel, ScriptedServer};
use hermetic_types::SystemClock;
use serde_json::json;
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
    .await
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
            name: "echo".to_owned(),
            description: "says it again".to_owned(),
            schema: json!({"type": "object"}),
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
