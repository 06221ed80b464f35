//! One turn of the agent.

use std::time::Duration;

use super::pick::{SettingPicker, words};

#[derive(Clone, Debug)]
pub struct AgentConfig {
    pub max_turns: u32,
    /// `None` for never.
    pub timeout: Option<Duration>,
    pub timeout_warning: Option<Duration>,
    pub notify_interval: Option<Duration>,
    pub drain_timeout: Duration,
    pub auto_continue_freshness: Duration,
    pub clarify_timeout: Duration,
    pub system_prompt: Option<String>,
    pub image_input: ImageInput,
    pub busy_input: BusyInput,
    pub busy_ack: bool,
    pub tool_progress: ToolProgressConfig,
    /// Whether what an agent of others thinks is shown.
    pub show_reasoning: bool,
    pub streaming: StreamingConfig,
    pub code_execution: CodeExecution,
    pub tool_output: ToolOutput,
    pub compression: CompressionConfig,
    /// Whether a workspace is kept before a turn changes it.
    pub checkpoints: bool,
}

/// When a long conversation is summarised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressionConfig {
    pub enabled: bool,
    /// The part of the model's window from which on it happens.
    pub threshold: f64,
    /// The part of that which is kept as it was said.
    pub target_ratio: f64,
    /// Messages at the end that are kept.
    pub protect_last_n: usize,
}

/// How images from chats reach the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageInput {
    /// Shown, until the model refuses them.
    Auto,
    Native,
    /// Only told of.
    Text,
}

words!(ImageInput { "auto" => Auto, "native" => Native, "text" => Text });

/// What a message does while a turn is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyInput {
    Interrupt,
    Queue,
    Steer,
}

words!(BusyInput { "interrupt" => Interrupt, "queue" => Queue, "steer" => Steer });

/// How much is shown of the tools that a turn uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolProgressConfig {
    Off,
    New,
    All,
    Verbose,
}

words!(ToolProgressConfig { "off" => Off, "new" => New, "all" => All, "verbose" => Verbose });

#[derive(Clone, Debug)]
pub struct StreamingConfig {
    pub enabled: bool,
    pub transport: String,
    pub edit_interval: Duration,
    pub buffer_threshold: usize,
    pub cursor: String,
    pub fresh_final_after: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct CodeExecution {
    pub directory: WorkingDirectory,
    pub timeout: Duration,
    pub max_tool_calls: u32,
}

/// Where a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingDirectory {
    Project,
    /// An empty one of its own.
    Strict,
}

words!(WorkingDirectory { "project" => Project, "strict" => Strict });

/// How much of a tool's output the model sees.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    pub max_bytes: usize,
    pub max_lines: usize,
    pub max_line_length: usize,
    pub max_file_chars: usize,
}

impl AgentConfig {
    pub(super) fn build(pick: &SettingPicker<'_>) -> Self {
        Self {
            max_turns: pick.count("agent.max_turns"),
            timeout: pick.seconds_or_never("agent.gateway_timeout"),
            timeout_warning: pick.seconds_or_never("agent.gateway_timeout_warning"),
            notify_interval: pick.seconds_or_never("agent.gateway_notify_interval"),
            drain_timeout: pick.seconds("agent.restart_drain_timeout"),
            auto_continue_freshness: pick.seconds("agent.gateway_auto_continue_freshness"),
            clarify_timeout: pick.seconds("agent.clarify_timeout"),
            system_prompt: pick.maybe_text("agent.system_prompt"),
            image_input: pick.choice("agent.image_input_mode"),
            busy_input: pick.choice("display.busy_input_mode"),
            busy_ack: pick.flag("display.busy_ack_enabled"),
            tool_progress: pick.choice("display.tool_progress"),
            show_reasoning: pick.flag("display.show_reasoning"),
            streaming: StreamingConfig {
                enabled: pick.flag("streaming.enabled"),
                transport: pick.text("streaming.transport"),
                edit_interval: pick.seconds("streaming.edit_interval"),
                buffer_threshold: pick.count("streaming.buffer_threshold"),
                cursor: pick.text("streaming.cursor"),
                fresh_final_after: pick.seconds_or_never("streaming.fresh_final_after_seconds"),
            },
            checkpoints: pick.flag("checkpoints.enabled"),
            compression: CompressionConfig {
                enabled: pick.flag("compression.enabled"),
                threshold: pick.number("compression.threshold"),
                target_ratio: pick.number("compression.target_ratio"),
                protect_last_n: pick.count("compression.protect_last_n"),
            },
            code_execution: CodeExecution {
                directory: pick.choice("code_execution.mode"),
                timeout: pick.seconds("code_execution.timeout"),
                max_tool_calls: pick.count("code_execution.max_tool_calls"),
            },
            tool_output: ToolOutput {
                max_bytes: pick.count("tool_output.max_bytes"),
                max_lines: pick.count("tool_output.max_lines"),
                max_line_length: pick.count("tool_output.max_line_length"),
                max_file_chars: pick.count("file_read_max_chars"),
            },
        }
    }
}
