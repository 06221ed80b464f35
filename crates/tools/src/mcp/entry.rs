//! From the settings of a server to a living connection whose tools were agreed to.

use std::sync::Arc;

use hermetic_policy::{JudgementContext, Verdict};
use hermetic_types::{Command, CommandInput, CommandProgram};
use serde_json::json;
use tokio::time::timeout;

use super::conversation::ServerSeat;
use super::document_act::ServerCapabilities;
use super::http::HttpLink;
use super::link::{ServerConnection, ServerLink};
use super::message::{RequestFailure, agreed_version, initialize};
use super::process::ServerProcess;
use super::seen::SeenTools;
use super::stdio::StdioLink;
use super::{McpCaller, McpServerPlace, McpServerSettings, McpShared};
use crate::ask::settle;
use crate::{DecidedCommand, Held, JudgedAs};

impl McpShared {
    /// A living connection, whose tools this conversation has agreed to. What comes back keeps the sandbox
    /// as long as it is held.
    pub(super) async fn enter(
        &self,
        server: usize,
        seat: &mut ServerSeat,
        caller: McpCaller<'_>,
    ) -> Result<Option<Held>, RequestFailure> {
        let settings = &self.servers[server];
        let held = match &settings.place {
            McpServerPlace::Sandbox { .. } => {
                let held = caller.workplace.sandbox().await;
                Some(held.map_err(|none| RequestFailure(none.to_string()))?)
            }
            McpServerPlace::Refused(why) => return Err(RequestFailure(why.clone())),
            McpServerPlace::Host { .. } | McpServerPlace::Http { .. } => None,
        };
        let sandbox = held.as_ref().map(|held| held.id());
        let is_usable = |connection: &ServerConnection| {
            // Of this very sandbox: a server of the one before it went with that.
            connection.link.is_alive() && connection.sandbox.as_ref() == sandbox
        };
        if !seat.connection.as_ref().is_some_and(is_usable) {
            seat.connection = None;
            let slow = |_| {
                let seconds = settings.connect_timeout.as_secs();
                RequestFailure(format!("it did not start within {seconds} s"))
            };
            let opened = self.open(settings, held.as_ref(), caller);
            let opened = timeout(settings.connect_timeout, opened).await;
            seat.connection = Some(opened.map_err(slow)??);
        }
        let Some(connection) = &mut seat.connection else {
            return Err(RequestFailure("it could not be reached".to_owned()));
        };
        if connection.link.take_tools_changed() {
            connection.is_agreed = false;
        }
        if !connection.is_agreed {
            let tools = match self.list(settings, connection).await {
                Ok(tools) => tools,
                Err(why) => {
                    seat.connection = None;
                    return Err(why);
                }
            };
            if let Err(why) = self.agree_to(settings, &seat.seen, &tools, caller).await {
                seat.connection = None;
                return Err(why);
            }
            connection.is_agreed = true;
            seat.seen = Some(SeenTools::of(settings, &tools));
            seat.tools = Some(tools);
        }
        Ok(held)
    }

    pub(super) async fn open(
        &self,
        settings: &McpServerSettings,
        held: Option<&Held>,
        caller: McpCaller<'_>,
    ) -> Result<ServerConnection, RequestFailure> {
        let link = match (&settings.place, held) {
            (McpServerPlace::Sandbox { words, env }, Some(sandbox)) => {
                let mut command = Command::words(words.clone());
                command.env = env.clone();
                command.stdin = CommandInput::Open;
                let cleared = self.clear_start(settings, command, caller).await?;
                let (process, input) = ServerProcess::start_inside(sandbox, cleared).await?;
                ServerLink::Stdio(StdioLink::over(process, input))
            }
            (McpServerPlace::Host { words, env }, _) => {
                let permit = Arc::clone(&self.on_host).try_acquire_owned();
                let permit = permit.map_err(|_| {
                    RequestFailure("too many servers run on the host already".to_owned())
                })?;
                let cleared = self
                    .clear_start(settings, Command::words(words.clone()), caller)
                    .await?;
                let (process, input) = ServerProcess::start_on_host(cleared, env, permit)?;
                ServerLink::Stdio(StdioLink::over(process, input))
            }
            (
                McpServerPlace::Http {
                    url,
                    headers,
                    login,
                },
                _,
            ) => {
                let client = caller.workplace.egress().await;
                let client = client.map_err(|none| RequestFailure(none.to_string()))?;
                let link = HttpLink::to(client, url, headers, login.clone())?;
                ServerLink::Http(Box::new(link))
            }
            (McpServerPlace::Sandbox { .. } | McpServerPlace::Refused(_), _) => {
                return Err(RequestFailure("it has no sandbox".to_owned()));
            }
        };
        let hello = initialize();
        let answer = link.request("initialize", &hello, settings.connect_timeout);
        let greeting = answer.await?;
        let version = agreed_version(&greeting)?;
        link.agree_on(version);
        link.notify("notifications/initialized", &json!({})).await?;
        Ok(ServerConnection {
            link,
            sandbox: held.map(|held| held.id().clone()),
            is_agreed: false,
            capabilities: ServerCapabilities::read(&greeting),
        })
    }

    pub(super) async fn clear_start(
        &self,
        settings: &McpServerSettings,
        command: Command,
        caller: McpCaller<'_>,
    ) -> Result<hermetic_policy::Cleared, RequestFailure> {
        let mut record = command.clone();
        if let CommandProgram::Words(words) = &mut record.program {
            // Nor is what stands secret in its arguments.
            for word in words {
                *word = self.redactor.redact(&*word).into_inner();
            }
        }
        self.settle(settings, record, caller, |context| {
            self.policy.judge_configured(command.clone(), context)
        })
        .await
    }

    pub(super) async fn settle(
        &self,
        settings: &McpServerSettings,
        record: Command,
        caller: McpCaller<'_>,
        judge: impl FnOnce(&JudgementContext) -> Verdict,
    ) -> Result<hermetic_policy::Cleared, RequestFailure> {
        // What a server is given in its environment is not for the record.
        let mut record = record;
        record.env.clear();
        let context = match settings.place {
            McpServerPlace::Host { .. } => &self.host_context,
            McpServerPlace::Sandbox { .. }
            | McpServerPlace::Http { .. }
            | McpServerPlace::Refused(_) => &self.context,
        };
        let decided = |as_what: JudgedAs<'_>| {
            caller.ask.decided(DecidedCommand {
                backend: context.backend,
                command: &record,
                as_what,
            })
        };
        let settled = settle(judge(context), decided, caller.ask, caller.stop).await;
        settled.map_err(|blocked| RequestFailure(blocked.to_string()))
    }
}
