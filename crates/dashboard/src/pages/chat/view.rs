//! How the chat looks.

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_store::BrowserMessageState;
use hermetic_types::{RunId, Timestamp};
use maud::{Markup, html};

use super::super::layout::{Page, csrf_field, empty, mark, time};
use super::{ChatPage, ChatQuery, MessageEntry, OpenConversation, chat, load};
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::SharedState;
use crate::{assets, markdown, words};

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<ChatQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &viewer, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let bounds = chat(&state)?.bounds();
    let body = html! {
        div.chat {
            (list(&viewer, &page))
            @match &page.open {
                None => section.panel aria-label="Conversation" {
                    (empty("You have no conversation here yet.", &html! {
                        @if viewer.may_act() { "Open one, and write as on any other platform: it has a sandbox of its own." }
                        @else { "You may look here, and not write. An operator can." }
                    }))
                },
                Some(open) => section.talk aria-label="Conversation" {
                    (conversation(&viewer, &page, open, &query))
                    @if viewer.may_act() { (composer(&viewer, open.id, bounds.files)) }
                    @else { p.note { "You may look here, and not write. An operator can." } }
                }
            }
        }
        script src=(assets::url("chat.js")) defer {}
    };
    Ok(Page {
        title: "Chat",
        path: "/chat",
        viewer: &viewer,
        topics: "chat",
        waiting,
        body,
    }
    .into_response())
}

fn list(viewer: &Viewer, page: &ChatPage) -> Markup {
    let open = page.open.as_ref().map(|open| open.id);
    html! {
        nav.talks aria-label="Conversations" {
            @if viewer.may_act() {
                form method="post" action="/chat/open" {
                    (csrf_field(viewer))
                    button type="submit" { "New conversation" }
                }
            }
            ul #talks data-live {
                @for one in &page.conversations {
                    li data-key={ "c" (one.id) } {
                        a href={ "/chat?c=" (one.id) } aria-current=[(open == Some(one.id)).then_some("page")] {
                            span.title { (one.title) }
                            span.dim { (time(page.now, one.said_at)) }
                        }
                    }
                }
            }
        }
    }
}

fn conversation(
    viewer: &Viewer,
    page: &ChatPage,
    open: &OpenConversation,
    query: &ChatQuery,
) -> Markup {
    html! {
        div.head {
            @if !open.key.is_empty() {
                a href={ "/conversation?" (words::query(&[("key", &open.key)])) } { "Timeline, stop, sandbox" }
            }
            @if viewer.may_act() {
                details.act {
                    summary { span.button { "Delete…" } }
                    form method="post" action="/chat/delete" {
                        (csrf_field(viewer))
                        input type="hidden" name="c" value=(open.id);
                        p { "Deletes what was said here with its files, and destroys the sandbox with everything in it." }
                        p.dim { "What the gateway took in, ran and answered stays in its timeline for 30 days after it ended. The audit record stays." }
                        button.danger type="submit" name="sure" value="yes" { "Delete this conversation" }
                    }
                }
            }
        }
        @if let Some(before) = open.before {
            p { a href={ "/chat?c=" (open.id) "&before=" (before) } { "Earlier messages" } }
        }
        @if query.before.is_some() { p { a href={ "/chat?c=" (open.id) } { "Latest messages" } } }
        // Read aloud as it comes; a message that grows is read when it is asked for.
        div.messages #messages data-live role="log" aria-label="Messages" tabindex="0" {
            ol {
                @for one in &open.messages { (shown(viewer, page.now, open.id, one)) }
                @if open.is_writing {
                    li.theirs data-key="writing" { p.dim { "An answer is being written…" } }
                }
            }
        }
        span #latest {}
        // The script takes it away, where there is one that runs. Without a fragment: to one on the same page
        // a browser goes without asking again.
        p #again { a href={ "/chat?c=" (open.id) } { "Load again" } " to see what was answered." }
    }
}

fn shown(viewer: &Viewer, now: Timestamp, conversation: i64, one: &MessageEntry) -> Markup {
    let is_theirs = one.state == BrowserMessageState::Shown.name();
    html! {
        li class=(if is_theirs { "theirs" } else { "mine" }) data-key={ "m" (one.id) } {
            p.from {
                strong { @if is_theirs { "Hermetic" } @else { "You" } } " "
                span.dim { (time(now, one.said_at)) }
                @match one.state {
                    "waiting" => { " " (mark("busy", "waits to be taken")) }
                    "turned_away" => { " " (mark("bad", "not admitted")) }
                    _ => {}
                }
            }
            div.text {
                @if is_theirs { (markdown::shown(&one.text)) }
                @else if !one.text.is_empty() { p.words { (one.text) } }
            }
            @if !one.files.is_empty() {
                ul.files {
                    @for file in &one.files {
                        li { a href={ "/chat/file?id=" (file.id) } download { (file.name) } " " span.dim { (words::bytes(file.bytes)) } }
                    }
                }
            }
            @if viewer.may_act() {
                @for row in &one.buttons {
                    form.buttons method="post" action="/chat/press" {
                        (csrf_field(viewer))
                        input type="hidden" name="c" value=(conversation);
                        input type="hidden" name="message" value=(one.id);
                        @for button in row {
                            button type="submit" name="data" value=(button.data) { (words::visible(&button.label)) }
                        }
                    }
                }
            }
            @if let Some(notice) = &one.notice { p.note { (notice) } }
        }
    }
}

fn composer(viewer: &Viewer, conversation: i64, files: usize) -> Markup {
    html! {
        form.composer #composer method="post" action="/chat/say" enctype="multipart/form-data" {
            (csrf_field(viewer))
            input type="hidden" name="c" value=(conversation);
            input type="hidden" name="once" value=(RunId::random());
            label.unseen for="text" { "Message" }
            textarea #text name="text" rows="3" placeholder="Write a message, or / for commands" autocomplete="off" {}
            div.acts {
                label.unseen for="files" { "Files, at most " (files) }
                input #files type="file" name="files" multiple;
                button.main type="submit" { "Send" }
            }
            p.note.bad #refused role="alert" hidden {}
        }
    }
}
