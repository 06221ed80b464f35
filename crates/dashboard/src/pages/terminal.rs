//! A terminal in the sandbox of one conversation. The script draws it; without one the page says how to get one.

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_types::ConversationKey;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, conversation_link, csrf_field};
use crate::access::Viewer;
use crate::assets;
use crate::failure::PageFailure;
use crate::state::SharedState;

#[derive(Debug, Deserialize)]
pub(crate) struct TerminalQuery {
    key: String,
}

/// Keys that a telephone does not have: name, what is said of it, what is shown.
const TOUCH_KEYS: [(&str, &str, &str); 6] = [
    ("Escape", "Esc", "Esc"),
    ("Tab", "Tab", "Tab"),
    ("ArrowUp", "Up", "↑"),
    ("ArrowDown", "Down", "↓"),
    ("ArrowLeft", "Left", "←"),
    ("ArrowRight", "Right", "→"),
];

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<TerminalQuery>,
) -> Result<Response, PageFailure> {
    if !viewer.may_act() {
        return Err(PageFailure::Forbidden(
            "You may look here, and not act: a terminal is for an operator.",
        ));
    }
    let key = ConversationKey::new(&query.key);
    let entry = state.ledger.of(&key).await?;
    let entry = entry.ok_or(PageFailure::NotFound("This conversation has no sandbox."))?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        link rel="stylesheet" href=(assets::url("terminal.css"));
        p.dim {
            "A shell in the sandbox of " (conversation_link(&key)) ", beside what runs there. Whatever you type is \
             yours: nobody is asked about it. That you opened it is written down, and what you type is not."
        }
        noscript {
            p.note {
                "A terminal needs JavaScript. Without it, on the machine that the gateway runs on:"
            }
            pre { "hermetic sandbox exec " (entry.id) " -t -- bash" }
        }
        (terminal(&viewer, &key))
        script src=(assets::url("terminal-screen.js")) defer {}
        script src=(assets::url("terminal.js")) defer {}
    };
    Ok(Page {
        title: "Terminal",
        path: "/sandboxes",
        viewer: &viewer,
        topics: "",
        waiting,
        body,
    }
    .into_response())
}

fn terminal(viewer: &Viewer, key: &ConversationKey) -> Markup {
    html! {
        section #terminal hidden aria-label="Terminal" {
            form #terminal-form {
                (csrf_field(viewer))
                input type="hidden" name="key" value=(key);
            }
            div.terminal-head {
                p #terminal-state role="status" { "Opening…" }
                button #terminal-again type="button" hidden { "Open again" }
                button #terminal-close type="button" { "Close" }
            }
            div #terminal-view {
                div #terminal-history aria-hidden="true" {}
                div #terminal-grid aria-hidden="true" {}
                textarea #terminal-keys aria-label="Keys for the terminal. F6 leaves it." autocapitalize="off"
                    autocomplete="off" autocorrect="off" spellcheck="false" rows="1" {}
            }
            div.terminal-touch role="group" aria-label="Keys that are not on the screen's keyboard" {
                button #terminal-control type="button" aria-pressed="false" { "Ctrl" }
                @for (name, label, shown) in TOUCH_KEYS {
                    button type="button" data-key=(name) aria-label=(label) { (shown) }
                }
            }
            p.dim { kbd { "F6" } " leaves the terminal. Nothing typed for a quarter of an hour closes it." }
            div.unseen #terminal-said role="log" aria-label="What the terminal printed" {}
        }
    }
}
