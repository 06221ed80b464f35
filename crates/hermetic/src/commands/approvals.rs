//! `hermetic approvals …`: questions that wait for a person, answered from here.
//!
//! The running gateway learns of an answer through the store, within half a second.

mod allow;

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_approvals::{Answerer, ApprovalRegistry};
use hermetic_config::Config;
use hermetic_store::{AnswerOutcome, ApprovalRequest, ApprovalScope, GivenAnswer, RequestState};
use hermetic_types::{Clock as _, RequestId, SystemClock};

use super::load;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look};
use crate::log;
use crate::output::{self, BOLD, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: ApprovalsCommand,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// List the questions that wait
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say yes to exactly what was asked
    Approve {
        /// The id that `list` shows
        request: RequestId,
        /// Allow it for the rest of this session, not only once
        #[arg(long)]
        session: bool,
    },
    /// Say no
    Deny {
        /// The id that `list` shows
        request: RequestId,
        /// Tell the agent this reason
        reason: Vec<String>,
    },
    /// Add a rule to command_allowlist in the configuration
    #[command(after_help = "\
The pattern is compared with each command that would really run; `*` matches anything. It must name \
the program: a rule that allows everything is not written.

Example:
  hermetic approvals allow 'docker compose restart *'")]
    Allow { pattern: String },
}

pub(crate) fn run(cli: &CommandLine, args: &ApprovalsArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    if let ApprovalsCommand::Allow { pattern } = &args.command {
        by_hand::or_refuse(&config)?;
        return allow::run(cli, &config, pattern);
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(act(&config, &args.command))
}

async fn act(config: &Config, command: &ApprovalsCommand) -> Result<ExitReason, CommandFailure> {
    // Makes the state folder where there is none yet.
    app::installation(config.home())?;
    let store = app::store(config).await?;
    log::hide(&app::redactor(config));
    let approvals = app::approvals(config, &store)?;
    let given = match command {
        ApprovalsCommand::List { json } => {
            list(&approvals.pending().await?, *json)?;
            return Ok(ExitReason::Ok);
        }
        ApprovalsCommand::Approve { session: false, .. } => GivenAnswer::Yes(ApprovalScope::Once),
        ApprovalsCommand::Approve { session: true, .. } => GivenAnswer::Yes(ApprovalScope::Session),
        ApprovalsCommand::Deny { .. } | ApprovalsCommand::Allow { .. } => GivenAnswer::No,
    };
    by_hand::or_refuse(config)?;
    let (request, reason) = match command {
        ApprovalsCommand::Approve { request, .. } => (request, String::new()),
        ApprovalsCommand::Deny { request, reason } => (request, reason.join(" ")),
        ApprovalsCommand::List { .. } | ApprovalsCommand::Allow { .. } => {
            return Ok(ExitReason::Ok);
        }
    };
    let reason = (!reason.is_empty()).then_some(reason.as_str());
    answer(config, &approvals, request, given, reason).await
}

async fn answer(
    config: &Config,
    approvals: &ApprovalRegistry,
    id: &RequestId,
    given: GivenAnswer,
    reason: Option<&str>,
) -> Result<ExitReason, CommandFailure> {
    let by = by_hand::who();
    let answerer = Answerer {
        by: &by,
        via: "command line",
    };
    let settled = match approvals.answer(id, given, answerer, reason).await? {
        AnswerOutcome::First(request) => request,
        AnswerOutcome::TooLate(request) => {
            return Err(CommandFailure::new(
                format!("{id} {}", became(request.state)),
                "`hermetic approvals list` shows what waits",
            ));
        }
        AnswerOutcome::Unknown => {
            return Err(CommandFailure::new(
                format!("no question is called {id}"),
                "`hermetic approvals list` shows what waits",
            ));
        }
    };
    let running = !matches!(look(config.home()), ObservedGateway::Stopped(_));
    if !running {
        // Nobody waits for it who would write it down.
        approvals
            .tidy()
            .await
            .map_err(|error| CommandFailure::caused(&error, "look with `hermetic audit verify`"))?;
    }
    let later = match running {
        true => "",
        false => "; the gateway is not running and takes it up if it is asked the same again",
    };
    output::print(&format!("{id} {}{later}\n", became(settled.state)))?;
    Ok(ExitReason::Ok)
}

fn list(pending: &[ApprovalRequest], as_json: bool) -> Result<(), CommandFailure> {
    if as_json {
        return output::print_json(&pending);
    }
    let now = SystemClock.now();
    let mut text = String::new();
    for request in pending {
        let seconds = request.expires_at.since(now).as_secs();
        let _ = writeln!(
            text,
            "{BOLD}{}{BOLD:#}  {}  asked by {}, {seconds} s left",
            request.id,
            request.subject.name(),
            printable(&request.asker),
        );
        for line in request.what.lines() {
            let _ = writeln!(text, "       {}", printable(line));
        }
        for reason in &request.reasons {
            let _ = writeln!(text, "     - {}", printable(reason));
        }
    }
    if text.is_empty() {
        text.push_str("nothing waits for an answer\n");
    }
    output::print(&text)
}

fn became(state: RequestState) -> &'static str {
    match state {
        RequestState::Approved => "is allowed",
        RequestState::Denied => "is refused",
        RequestState::Expired => "ran out of time, which is a no",
        RequestState::Withdrawn => "is not waited for any more",
        RequestState::Pending => "waits",
    }
}
