//! What every page has around it.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use hermetic_types::{ConversationKey, Timestamp};
use maud::{DOCTYPE, Markup, html};

use crate::access::{AccessSettings, Viewer};
use crate::{assets, words};

/// One page, to be put between head and foot.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// The entry of the navigation that it belongs to.
    pub(crate) path: &'a str,
    pub(crate) viewer: &'a Viewer,
    /// Which events make it old.
    pub(crate) topics: &'a str,
    /// What waits for a person.
    pub(crate) waiting: usize,
    pub(crate) body: Markup,
}

/// Where one can go, in the order of how often one does.
const PLACES: [(&str, &str); 10] = [
    ("/", "Overview"),
    ("/chat", "Chat"),
    ("/conversations", "Conversations"),
    ("/approvals", "Approvals"),
    ("/sandboxes", "Sandboxes"),
    ("/egress", "Egress"),
    ("/usage", "Usage"),
    ("/audit", "Audit"),
    ("/people", "People"),
    ("/configuration", "Configuration"),
];

impl IntoResponse for Page<'_> {
    fn into_response(self) -> Response {
        Html(self.markup().into_string()).into_response()
    }
}

impl Page<'_> {
    fn markup(&self) -> Markup {
        let main = html! {
            header.bar {
                a.brand href="/" { (brand()) }
                nav.places #places data-live aria-label="Pages" {
                    ul {
                        @for (path, name) in PLACES {
                            li {
                                a href=(path) aria-current=[(path == self.path).then_some("page")] {
                                    (name)
                                    @if path == "/approvals" { " " (self.badge()) }
                                }
                            }
                        }
                    }
                }
                div.who {
                    span.live #live role="status" { "not live" }
                    span.name title=(self.viewer.who) { (self.viewer.who) }
                    span.role { (self.viewer.role) }
                    @if let Some(csrf) = &self.viewer.csrf {
                        form method="post" action="/leave" {
                            input type="hidden" name="csrf" value=(csrf);
                            button.quiet type="submit" { "Sign out" }
                        }
                    }
                }
            }
            main #main tabindex="-1" {
                h1 { (self.title) }
                (self.body)
            }
        };
        // A background tab shows its title and nothing else.
        let title = match self.waiting {
            0 => self.title.to_owned(),
            waiting => format!("({waiting}) {}", self.title),
        };
        frame(&title, Some(self.topics), &main)
    }

    /// There with no number too, for the script to show when there is one.
    fn badge(&self) -> Markup {
        html! {
            span.badge #waiting-count data-waiting=(self.waiting) hidden[self.waiting == 0] {
                span { (self.waiting) } span.unseen { " waiting" }
            }
        }
    }
}

/// A page for whoever is not in, or for whom nothing else can be shown.
pub(crate) fn plain_page(
    status: StatusCode,
    title: &str,
    text: &str,
    onward: Option<(&str, &str)>,
) -> Response {
    let main = html! {
        main.alone #main tabindex="-1" {
            p.brand { (brand()) }
            h1 { (title) }
            p { (text) }
            @if let Some((path, name)) = onward {
                p { a href=(path) { (name) } }
            }
        }
    };
    let page = frame(title, None, &main);
    (status, Html(page.into_string())).into_response()
}

/// Asks whoever followed a one-time link whether they meant it. The form goes to the address that it stands at, so
/// that the key of the link is in no page.
pub(crate) fn link_page(viewer: &Viewer) -> Response {
    let main = html! {
        main.alone #main tabindex="-1" {
            p.brand { (brand()) }
            h1 { "Sign in?" }
            p {
                "This link signs this browser in as " strong { (words::visible(&viewer.who)) } ", who "
                @if viewer.may_act() { "may look and act." } @else { "may look and not act." }
            }
            p.dim { "It works once. Whoever did not ask for it closes this page." }
            form.stack method="post" {
                button.main type="submit" autofocus { "Sign in" }
            }
        }
    };
    let page = frame("Sign in", None, &main);
    Html(page.into_string()).into_response()
}

/// How to get in.
pub(crate) fn sign_in_page(
    status: StatusCode,
    settings: &AccessSettings,
    said: Option<&str>,
) -> Response {
    let main = html! {
        main.alone #main tabindex="-1" {
            p.brand { (brand()) }
            h1 { "Sign in" }
            @if let Some(said) = said {
                p.note.bad role="alert" { (said) }
            }
            p { "On the machine that the gateway runs on, this prints a link that lets you in once:" }
            pre { "hermetic dashboard link" }
            p.dim { "With " code { "--role viewer" } ", for somebody who may look and not act." }
            @if settings.password.is_some() {
                form.stack method="post" action="/enter" {
                    label for="password" { "Or with the password" }
                    input #password type="password" name="password" autocomplete="current-password" required;
                    button type="submit" { "Sign in" }
                }
            }
        }
    };
    let page = frame("Sign in", None, &main);
    (status, Html(page.into_string())).into_response()
}

fn frame(title: &str, topics: Option<&str>, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Hermetic" }
                link rel="icon" href=(assets::url("icon.svg"));
                link rel="stylesheet" href=(assets::url("dashboard.css"));
                @if topics.is_some() {
                    script src=(assets::url("dashboard.js")) defer {}
                }
            }
            body data-topics=[topics] {
                a.skip href="#main" { "To the content" }
                (main)
            }
        }
    }
}

fn brand() -> Markup {
    html! {
        svg.mark viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" {
            circle cx="10" cy="10" r="8.5" fill="none" stroke="currentColor" stroke-width="2" {}
            circle cx="10" cy="10" r="3.5" fill="currentColor" {}
        }
        span { "Hermetic" }
    }
}

/// A moment, as how long ago it was; the script keeps that true.
pub(crate) fn time(now: Timestamp, at: Timestamp) -> Markup {
    html! {
        time datetime=(at.to_string()) data-ago title=(words::moment(at)) { (words::ago(now, at)) }
    }
}

/// A word in a colour that says how good that is. The word says it too.
pub(crate) fn mark(kind: &str, word: &str) -> Markup {
    html! { span class={ "mark " (kind) } { (word) } }
}

/// The mark of a state, wherever it comes from.
pub(crate) fn state_mark(state: &str) -> Markup {
    let kind = match state {
        "answered" | "connected" | "running" | "approved" | "sent" | "active" | "ok" | "opened"
        | "closed" => "good",
        "failed" | "stopped" | "denied" | "refused" | "missing" | "required" => "bad",
        "working" | "starting" | "creating" | "pending" | "sending" => "busy",
        "retrying" | "weaker" | "expired" | "destroying" | "stopping" => "fair",
        _ => "plain",
    };
    mark(kind, state)
}

/// A link to a conversation.
pub(crate) fn conversation_link(key: &ConversationKey) -> Markup {
    html! {
        a.key href={ "/conversation?" (words::query(&[("key", key.as_str())])) } {
            (words::visible(&short_key(key)))
        }
    }
}

/// The part of a key that tells conversations apart.
pub(crate) fn short_key(key: &ConversationKey) -> String {
    let text = key.as_str();
    match text.strip_prefix("agent:main:") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => text.to_owned(),
    }
}

/// What a form has to bring along.
pub(crate) fn csrf_field(viewer: &Viewer) -> Markup {
    html! {
        @if let Some(csrf) = &viewer.csrf {
            input type="hidden" name="csrf" value=(csrf);
        }
    }
}

/// Something that is not there, and what to do about it.
pub(crate) fn empty(what: &str, next: &Markup) -> Markup {
    html! {
        div.empty {
            p { (what) }
            p.dim { (next) }
        }
    }
}

/// A text of our own in which a few words are code.
pub(crate) fn code(text: &str) -> Markup {
    html! { code { (text) } }
}
