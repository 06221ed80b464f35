//! The tools, from the configuration.

use std::sync::Arc;

use hermetic_config::{Config, WorkingDirectory};
use hermetic_redact::Redactor;
use hermetic_store::Processes;
use hermetic_tools::{
    Background, BackgroundSettings, Bounds, Code, CodeSettings, Directory, Files, Kit, Reach,
};
use hermetic_types::{BackendKind, SharedClock};

use super::terminal;

/// The most of a tool's result that a model is shown.
const RESULT_CHARS: usize = 100_000;

/// Every tool, judged by one policy.
pub(crate) fn kit(
    config: &Config,
    backend: BackendKind,
    redactor: &Redactor,
    background: Background,
) -> Kit {
    let policy = Arc::new(terminal::policy(config));
    let output = &config.agent().tool_output;
    let bounds = Bounds {
        lines: output.max_lines,
        line_chars: output.max_line_length,
        result_chars: output.max_file_chars.min(RESULT_CHARS),
    };
    let context = terminal::context(config, backend);
    Kit {
        terminal: terminal::terminal(config, backend, Arc::clone(&policy), redactor.clone()),
        files: Files::new(policy, context, redactor.clone(), bounds),
        background,
        code: code(config),
    }
}

/// Without rows background processes are not found again after a restart.
pub(crate) fn background(
    config: &Config,
    redactor: &Redactor,
    rows: Option<Processes>,
    reach: Arc<dyn Reach>,
    clock: SharedClock,
) -> Background {
    let settings = BackgroundSettings {
        longest_hold: config.sessions().background_max_age,
    };
    Background::new(settings, redactor.clone(), rows, reach, clock)
}

fn code(config: &Config) -> Code {
    let wanted = &config.agent().code_execution;
    Code::new(CodeSettings {
        timeout: wanted.timeout,
        most_calls: wanted.max_tool_calls,
        directory: match wanted.directory {
            WorkingDirectory::Project => Directory::Project,
            WorkingDirectory::Strict => Directory::Strict,
        },
    })
}
