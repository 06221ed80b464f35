//! One turn of the agent: its bounds, its tools, how it shows while it works.

use super::{DAY, SchemaKey, ValueShape, YEAR, count, key, seconds};

pub(super) fn keys() -> Vec<SchemaKey> {
    let mut keys = agent();
    keys.extend(compression());
    keys.extend(tools());
    keys.extend(shown());
    keys
}

fn agent() -> Vec<SchemaKey> {
    vec![
        key(
            "agent.max_turns",
            count(1, 100_000),
            "90",
            "steps of one turn",
        )
        .mirrored_by("HERMES_MAX_ITERATIONS"),
        key(
            "agent.gateway_timeout",
            count(0, YEAR),
            "1800",
            "seconds without a sign of life before a turn is ended; 0 for never",
        )
        .mirrored_by("HERMES_AGENT_TIMEOUT"),
        key(
            "agent.gateway_timeout_warning",
            count(0, YEAR),
            "900",
            "seconds before that is announced; 0 for never",
        )
        .mirrored_by("HERMES_AGENT_TIMEOUT_WARNING"),
        key(
            "agent.gateway_notify_interval",
            count(0, YEAR),
            "180",
            "seconds between signs that a turn is still at work; 0 for none",
        )
        .mirrored_by("HERMES_AGENT_NOTIFY_INTERVAL"),
        key(
            "agent.restart_drain_timeout",
            count(0, DAY),
            "0",
            "seconds a restart waits for turns to end",
        ),
        key(
            "agent.gateway_auto_continue_freshness",
            count(0, YEAR),
            "3600",
            "oldest turn, in seconds, that a restart takes up again",
        ),
        key(
            "agent.clarify_timeout",
            seconds(DAY),
            "3600",
            "seconds the agent waits for an answer to its own question",
        ),
        key(
            "agent.image_input_mode",
            ValueShape::OneOf(&["auto", "native", "text"]),
            "auto",
            "whether the model is shown images and PDFs from chats: text only tells of them",
        ),
        key(
            "agent.system_prompt",
            ValueShape::Text,
            "",
            "said to the model before everything else",
        ),
    ]
}

fn compression() -> Vec<SchemaKey> {
    vec![
        key(
            "compression.enabled",
            ValueShape::Flag,
            "true",
            "summarise a conversation before the model's window is full",
        ),
        key(
            "compression.threshold",
            ValueShape::Number {
                least: 0.1,
                most: 0.95,
            },
            "0.5",
            "part of the window from which on it is summarised",
        ),
        key(
            "compression.target_ratio",
            ValueShape::Number {
                least: 0.05,
                most: 0.8,
            },
            "0.2",
            "part of that which is kept as it was said",
        ),
        key(
            "compression.protect_last_n",
            count(0, 200),
            "20",
            "messages at the end that are kept, as long as they are not large",
        ),
    ]
}

fn tools() -> Vec<SchemaKey> {
    vec![
        key(
            "checkpoints.enabled",
            ValueShape::Flag,
            "true",
            "keep a copy of a small workspace before a turn changes it, for /undo",
        ),
        key(
            "code_execution.mode",
            ValueShape::OneOf(&["project", "strict"]),
            "project",
            "working directory of scripts: the project's or an empty one",
        ),
        key(
            "code_execution.timeout",
            seconds(DAY),
            "300",
            "seconds one script may take",
        ),
        key(
            "code_execution.max_tool_calls",
            count(0, 100_000),
            "50",
            "tools one script may call",
        ),
        key(
            "tool_output.max_bytes",
            count(1000, 100_000_000),
            "50000",
            "bytes of output that the model sees",
        ),
        key(
            "tool_output.max_lines",
            count(1, 10_000_000),
            "2000",
            "lines of it",
        ),
        key(
            "tool_output.max_line_length",
            count(1, 10_000_000),
            "2000",
            "characters of a line",
        ),
        key(
            "file_read_max_chars",
            count(1, 100_000_000),
            "100000",
            "characters of a file that the model sees",
        ),
    ]
}

fn shown() -> Vec<SchemaKey> {
    vec![
        key(
            "display.busy_input_mode",
            ValueShape::OneOf(&["interrupt", "queue", "steer"]),
            "interrupt",
            "what a message does while a turn is at work",
        )
        .mirrored_by("HERMES_GATEWAY_BUSY_INPUT_MODE"),
        key(
            "display.busy_ack_enabled",
            ValueShape::Flag,
            "true",
            "say that such a message has arrived",
        )
        .mirrored_by("HERMES_GATEWAY_BUSY_ACK_ENABLED"),
        key(
            "display.tool_progress",
            ValueShape::OneOf(&["off", "new", "all", "verbose"]),
            "all",
            "how much is shown of the tools while a turn works: nothing, other tools, each call, each call with its arguments",
        ),
        key(
            "streaming.enabled",
            ValueShape::Flag,
            "true",
            "show an answer while it is written, where the platform can change a message",
        )
        .also_at(["gateway.streaming.enabled"]),
        key(
            "streaming.transport",
            ValueShape::OneOf(&["auto", "edit", "draft", "off"]),
            "auto",
            "how",
        )
        .also_at(["gateway.streaming.transport"]),
        key(
            "streaming.edit_interval",
            ValueShape::Number {
                least: 0.0,
                most: 3600.0,
            },
            "0.8",
            "seconds between two edits",
        )
        .also_at(["gateway.streaming.edit_interval"]),
        key(
            "streaming.buffer_threshold",
            count(1, 100_000),
            "24",
            "characters that make an edit worth it",
        )
        .also_at(["gateway.streaming.buffer_threshold"]),
        key(
            "streaming.cursor",
            ValueShape::Text,
            " ▉",
            "stands at the end while more is coming",
        )
        .also_at(["gateway.streaming.cursor"]),
        key(
            "streaming.fresh_final_after_seconds",
            ValueShape::Number {
                least: 0.0,
                most: 86_400.0,
            },
            "0",
            "send the end as a new message after so long; 0 for never",
        )
        .also_at(["gateway.streaming.fresh_final_after_seconds"]),
    ]
}
