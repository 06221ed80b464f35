//! The end of what a running tool call has written, growing.

use hermetic_types::ConversationKey;
use maud::{Markup, html};
use serde::Serialize;

use crate::state::DashboardState;
use crate::words;

/// What is shown of a running call's output.
#[derive(Debug, Serialize)]
pub(crate) struct OutputTail {
    pub(crate) text: String,
    /// All that was written, shown or not.
    pub(crate) bytes: u64,
    pub(crate) is_cut: bool,
}

impl OutputTail {
    /// Of the call that runs in a conversation; nothing where none runs or it wrote nothing.
    pub(crate) fn of(state: &DashboardState, conversation: &ConversationKey) -> Option<Self> {
        let output = state.gateway.running_output(conversation)?;
        Some(Self {
            // Redacted already, by whoever had the raw bytes.
            text: words::visible(output.text.as_str()),
            bytes: output.bytes,
            is_cut: output.is_cut,
        })
    }

    /// Only the last lines, each of bounded length.
    pub(crate) fn last_lines(mut self, most: usize) -> Self {
        const MOST_CHARS: usize = 160;
        let lines: Vec<&str> = self.text.trim_end().lines().collect();
        let from = lines.len().saturating_sub(most);
        self.is_cut |= from > 0;
        let short = lines[from..]
            .iter()
            .map(|line| match line.char_indices().nth(MOST_CHARS) {
                Some((at, _)) => format!("{}…", &line[..at]),
                None => (*line).to_owned(),
            });
        self.text = short.collect::<Vec<_>>().join("\n");
        self
    }
}

/// Takes the same room before the first word as after the last, so that nothing below it moves. `kind` is
/// `short` or `long`.
pub(crate) fn tail(output: Option<&OutputTail>, kind: &str) -> Markup {
    html! {
        pre class={ "tail " (kind) } tabindex="0" aria-label="Output so far" {
            // The last line stays in sight: the box is filled from below.
            span {
                @match output {
                    Some(output) => {
                        @if output.is_cut {
                            span.dim { "… " (words::bytes(output.bytes)) " so far" } "\n"
                        }
                        (output.text)
                    }
                    None => { span.dim { "No output yet" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_few_and_short() {
        let text = format!("one\ntwo\n{}\nfour\n\n", "ä".repeat(500));
        let whole = OutputTail {
            bytes: text.len() as u64,
            text,
            is_cut: false,
        };
        let short = whole.last_lines(2);
        assert!(short.is_cut);
        let lines: Vec<_> = short.text.lines().collect();
        assert_eq!(
            (lines.len(), lines[0].chars().count(), lines[1]),
            (2, 161, "four")
        );
        let escaped = tail(
            Some(&OutputTail {
                text: "<script>".to_owned(),
                bytes: 8,
                is_cut: true,
            }),
            "long",
        );
        assert!(escaped.into_string().contains("&lt;script&gt;"));
    }
}
