//! The tools, from the configuration.

use std::sync::Arc;

use hermetic_config::{BudgetsConfig, Config, WorkingDirectory};
use hermetic_redact::Redactor;
use hermetic_store::{DocumentRows, ProcessRows};
use hermetic_tools::{
    BackgroundProcesses, BackgroundSettings, BackgroundStarts, CodeSettings, CodeTool, FileTools,
    ImageTool, McpServers, NoWayBack, ResultBounds, SandboxReach, ScriptDirectory,
    SharedDescriptions, SpeechTool, TodoLists, ToolKit,
};
use hermetic_types::{BackendKind, SharedClock, SystemClock};

use super::{mcp_servers, terminal, web};

/// The most of a tool's result that a model is shown.
const RESULT_CHARS: usize = 100_000;

/// The tools for clients whose sandboxes end with them.
pub fn clients_kit(config: &Config, kind: BackendKind, redactor: &Redactor) -> ToolKit {
    let clock = SystemClock::shared();
    let processes = background(config, redactor, None, Arc::new(NoWayBack), &clock);
    kit(
        config,
        kind,
        redactor,
        processes,
        McpServers::none(),
        None,
        &clock,
    )
}

/// The same, with the configured MCP servers, for whoever tries those.
pub fn servers_kit(config: &Config, kind: BackendKind, redactor: &Redactor) -> ToolKit {
    ToolKit {
        mcp: mcp(config, kind, redactor, None, &SystemClock::shared()),
        ..clients_kit(config, kind, redactor)
    }
}

/// Every tool, judged by one policy.
pub(crate) fn kit(
    config: &Config,
    backend: BackendKind,
    redactor: &Redactor,
    background: BackgroundProcesses,
    mcp: McpServers,
    todo: Option<TodoLists>,
    clock: &SharedClock,
) -> ToolKit {
    let policy = Arc::new(terminal::policy(config));
    let output = &config.agent().tool_output;
    let bounds = ResultBounds {
        lines: output.max_lines,
        line_chars: output.max_line_length,
        result_chars: output.max_file_chars.min(RESULT_CHARS),
    };
    let context = terminal::context(config, backend);
    ToolKit {
        terminal: terminal::terminal(config, backend, Arc::clone(&policy), redactor.clone()),
        files: FileTools::new(policy, context, redactor.clone(), bounds),
        background,
        code: code(config, clock),
        mcp,
        web: web::tools(config),
        todo,
        images: web::images(config).map(ImageTool::new),
        speech: web::speech(config).map(SpeechTool::new),
        described: SharedDescriptions::default(),
    }
}

/// The tools of configured servers, judged by the same policy. Without `seen` it is forgotten with the gateway
/// which of them a conversation has seen.
pub(crate) fn mcp(
    config: &Config,
    backend: BackendKind,
    redactor: &Redactor,
    seen: Option<DocumentRows>,
    clock: &SharedClock,
) -> McpServers {
    McpServers::new(
        mcp_servers::mcp_servers(config, redactor, clock),
        Arc::new(terminal::policy(config)),
        terminal::context(config, backend),
        terminal::context(config, BackendKind::Local),
        redactor.clone(),
        seen,
        RESULT_CHARS,
    )
}

/// Without rows background processes are not found again after a restart.
pub(crate) fn background(
    config: &Config,
    redactor: &Redactor,
    rows: Option<ProcessRows>,
    reach: Arc<dyn SandboxReach>,
    clock: &SharedClock,
) -> BackgroundProcesses {
    let settings = BackgroundSettings {
        longest_hold: config.sessions().background_max_age,
        starts: background_starts(config.budgets()),
    };
    BackgroundProcesses::new(settings, redactor.clone(), rows, reach, Arc::clone(clock))
}

/// How long processes run is counted for nobody, so none is started where that is bounded.
fn background_starts(budgets: &BudgetsConfig) -> BackgroundStarts {
    let scopes = [budgets.person, budgets.conversation, budgets.all];
    match scopes.iter().any(|budget| budget.tool_seconds.is_some()) {
        true => BackgroundStarts::RefusedByBudget,
        false => BackgroundStarts::Allowed,
    }
}

fn code(config: &Config, clock: &SharedClock) -> CodeTool {
    let wanted = &config.agent().code_execution;
    let settings = CodeSettings {
        timeout: wanted.timeout,
        most_calls: wanted.max_tool_calls,
        directory: match wanted.directory {
            WorkingDirectory::Project => ScriptDirectory::Project,
            WorkingDirectory::Strict => ScriptDirectory::Strict,
        },
    };
    CodeTool::new(settings, Arc::clone(clock))
}

#[cfg(test)]
mod tests {
    use hermetic_config::DayBudget;

    use super::*;

    #[test]
    fn processes_are_started_where_nobody_bounds_the_time_of_tools() {
        let mut budgets = BudgetsConfig::default();
        budgets.all.dollars = Some(1.0);
        assert_eq!(background_starts(&budgets), BackgroundStarts::Allowed);
        budgets.conversation = DayBudget {
            tool_seconds: Some(60),
            ..DayBudget::default()
        };
        let starts = background_starts(&budgets);
        assert_eq!(starts, BackgroundStarts::RefusedByBudget);
    }
}
