//! How each kind of entry looks.

use std::time::Duration;

use hermetic_types::Timestamp;
use maud::{Markup, html};

use super::{TimelineEntry, TimelineEvent};
use crate::pages::layout::{state_mark, time};
use crate::pages::running_output::tail;
use crate::words;

/// One entry. While a turn is at work, a call without a result shows what it has written so far.
pub(super) fn shown(now: Timestamp, is_busy: bool, entry: &TimelineEntry) -> Markup {
    let (kind, body) = match &entry.event {
        TimelineEvent::Message {
            who,
            text,
            files,
            state,
            note,
            took_ms,
        } => (
            "message",
            html! {
                p.head { strong { (who) } " " (state_mark(state)) (lasted(*took_ms)) }
                div.words { (text) }
                @for file in files { p.dim { "file: " (file) } }
                @if let Some(note) = note { p.note.fair { (note) } }
            },
        ),
        TimelineEvent::Tool {
            tool,
            arguments,
            result,
            more_chars,
            took_ms,
            output,
        } => (
            "tool",
            html! {
                p.head {
                    strong { (tool) } " "
                    @if result.is_none() { (state_mark("working")) }
                    (lasted(*took_ms))
                }
                pre.scroll tabindex="0" { (arguments) }
                @if result.is_none() && is_busy { (tail(output.as_ref(), "long")) }
                @if let Some(result) = result {
                    details {
                        summary { "What came back" }
                        pre.scroll tabindex="0" { (result) }
                        @if *more_chars > 0 { p.dim { (words::count(*more_chars)) " more characters" } }
                    }
                }
            },
        ),
        TimelineEvent::Question {
            id,
            subject,
            what,
            asker,
            state,
            scope,
            by,
            via,
        } => (
            "question",
            html! {
                p.head {
                    "Question " a href={ "/approvals#" (id) } { (id) } " about a " (subject) " "
                    (state_mark(state))
                    @if let Some(scope) = scope { " " (scope) }
                }
                pre.scroll tabindex="0" { (what) }
                p.dim {
                    "for " (asker)
                    @if let Some(by) = by { ", answered by " (by) }
                    @if let Some(via) = via { " (" (via) ")" }
                }
            },
        ),
        TimelineEvent::Reply {
            account,
            text,
            files,
            state,
            note,
        } => (
            "reply",
            html! {
                p.head { "Reply on " (account) " " (state_mark(state)) }
                @if !text.is_empty() { div.words { (text) } }
                @for file in files { p.dim { "file: " (file) } }
                @if let Some(note) = note { p.note.fair { (note) } }
            },
        ),
        TimelineEvent::Connection {
            host,
            port,
            verdict,
            why,
            rule,
            bytes_up,
            bytes_down,
        } => (
            "connection",
            html! {
                p.head {
                    code { (host) ":" (port) } " " (state_mark(verdict))
                    @if *bytes_up + *bytes_down > 0 {
                        span.dim { " ↑ " (words::bytes(*bytes_up)) " ↓ " (words::bytes(*bytes_down)) }
                    }
                }
                p.dim { @if let Some(why) = why { (why) " · " } (rule) }
            },
        ),
        TimelineEvent::Sandbox {
            sandbox,
            backend,
            what,
            note,
        } => (
            "sandbox",
            html! {
                p.head { "Sandbox " code { (sandbox) } " on " (backend) " " (became(what)) }
                @if let Some(note) = note { p.note.fair { (note) } }
            },
        ),
    };
    html! {
        li class={ "entry " (kind) } data-key=(entry.entry) {
            div.when { (time(now, entry.at)) span.clock { (words::clock_time(entry.at)) } }
            div.what { (body) }
        }
    }
}

fn became(what: &str) -> &str {
    match what {
        "named" => "is being made",
        "ready" => "is ready",
        "stopped" => "was stopped",
        "resumed" => "goes on",
        "given" => "was given to this conversation",
        "set_aside" => "was set aside for its files",
        "taken_back" => "is in use again",
        "failed" => "could not be stopped or destroyed",
        "gone" => "is gone, with what was in it",
        other => other,
    }
}

fn lasted(took_ms: Option<u64>) -> Markup {
    html! {
        @if let Some(took) = took_ms {
            span.dim { " " (words::span(Duration::from_millis(took))) }
        }
    }
}
