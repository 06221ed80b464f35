//! Who waits to be let in, who was, and what they may do.

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hermetic_access::{PairedRole, PairedUser, PendingPairing};
use hermetic_audit::{AuditEvent, PairingEvent};
use hermetic_types::{Platform, Timestamp, UserId};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, code, csrf_field, empty, mark, time};
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::{ListedPerson, words};

#[derive(Debug, Serialize)]
pub(crate) struct PeoplePage {
    pub(crate) now: Timestamp,
    pub(crate) pending: Vec<(Platform, PendingPairing)>,
    pub(crate) paired: Vec<(Platform, PairedUser)>,
    /// Whom the configuration names.
    pub(crate) listed: Vec<ListedPerson>,
}

pub(crate) async fn load(state: &DashboardState) -> Result<PeoplePage, PageFailure> {
    let now = state.now();
    let (mut pending, mut paired) = (Vec::new(), Vec::new());
    for platform in Platform::ALL {
        let standing = state.pairing.standing(platform, now).await?;
        pending.extend(standing.pending.into_iter().map(|one| (platform, one)));
        paired.extend(standing.approved.into_iter().map(|one| (platform, one)));
    }
    Ok(PeoplePage {
        now,
        pending,
        paired,
        listed: state.gateway.listed_people(),
    })
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, PageFailure> {
    let page = load(&state).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        section.panel #pending data-live aria-labelledby="pending-title" {
            h2 #pending-title { "Wait to be let in" }
            @if page.pending.is_empty() {
                (empty("Nobody waits.", &html! {
                    "A stranger who writes to the bot in private gets a code; who brings it to you is let in by it."
                }))
            } @else {
                ul.rows {
                    @for (platform, one) in &page.pending {
                        li data-key={ (platform) ":" (one.user) } {
                            span.grow {
                                strong { (words::visible(&one.display)) } " "
                                span.dim { (platform) ":" (words::visible(&one.user.to_string())) }
                            }
                            span.dim { "code ends " (time(page.now, one.expires_at)) }
                        }
                    }
                }
            }
            @if viewer.may_act() {
                form.search method="post" action="/people/approve" {
                    (csrf_field(&viewer))
                    label.unseen for="platform" { "Platform" }
                    select #platform name="platform" {
                        // In the browser nobody is let in by a code.
                        @for platform in Platform::ALL.into_iter().filter(|one| *one != Platform::Browser) { option value=(platform) { (platform) } }
                    }
                    label.unseen for="code" { "Code" }
                    input #code name="code" required autocomplete="off" placeholder="Code, as they read it to you";
                    button type="submit" { "Let in" }
                }
            }
        }
        section #paired data-live aria-labelledby="paired-title" {
            h2 #paired-title { "Let in by a code" }
            @if page.paired.is_empty() { p.dim { "Nobody." } }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="paired-title" {
                    table {
                        thead {
                            tr {
                                th { "Person" } th { "Platform" } th { "Id" } th { "May" }
                                th.number { "Since" }
                                @if viewer.may_act() { th { span.unseen { "Acts" } } }
                            }
                        }
                        tbody {
                            @for (platform, one) in &page.paired {
                                tr data-key={ (platform) ":" (one.user) } {
                                    th scope="row" { (words::visible(&one.display)) }
                                    td { (platform) }
                                    td { (words::visible(&one.user.to_string())) }
                                    td { (may(one.role == PairedRole::Operator)) }
                                    td.number { (time(page.now, one.approved_at)) }
                                    @if viewer.may_act() { td.acts { (put_out(&viewer, *platform, one)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
        section aria-labelledby="listed-title" {
            h2 #listed-title { "Named in the configuration" }
            @if page.listed.is_empty() {
                p.dim { "Nobody. Allowlists and " (code("approvals.approvers")) " name people for good." }
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="listed-title" {
                    table {
                        thead { tr { th { "Id" } th { "Platform" } th { "May" } } }
                        tbody {
                            @for one in &page.listed {
                                tr {
                                    th scope="row" { (words::visible(&one.user)) }
                                    td { (one.platform) }
                                    td { (may(one.role == "operator")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page {
        title: "People",
        path: "/people",
        viewer: &viewer,
        topics: "activity",
        waiting,
        body,
    }
    .into_response())
}

fn may(is_operator: bool) -> Markup {
    match is_operator {
        true => mark("busy", "write and approve"),
        false => mark("plain", "write"),
    }
}

/// Asks first. The button says whom it puts out and sends that along, so that a row that became somebody else's
/// puts nobody out.
fn put_out(viewer: &Viewer, platform: Platform, one: &PairedUser) -> Markup {
    let name = words::beginning(&words::visible(&one.display), 40);
    html! {
        details.act {
            summary.button { "Put out…" }
            form method="post" action="/people/revoke" {
                (csrf_field(viewer))
                input type="hidden" name="platform" value=(platform);
                input type="hidden" name="user" value=(one.user);
                p { "What they write is not heard any more, until they are let in by another code." }
                button.danger type="submit" name="sure" value={ (platform) ":" (one.user) } {
                    "Put out " (name)
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApproveForm {
    platform: String,
    code: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RevokeForm {
    platform: String,
    user: String,
    /// `platform:user` once more, by the button: it cannot be taken back without another code.
    sure: Option<String>,
}

impl RevokeForm {
    /// Whether the button was about whom the form names.
    fn is_sure(&self) -> bool {
        let meant = format!("{}:{}", self.platform, self.user);
        self.sure.as_deref() == Some(meant.as_str())
    }
}

fn platform(name: &str) -> Result<Platform, PageFailure> {
    let parsed = name.parse::<Platform>();
    parsed.map_err(|error| PageFailure::Invalid(error.to_string()))
}

pub(crate) async fn approve(
    State(state): State<SharedState>,
    act: Act<ApproveForm>,
) -> Result<Response, PageFailure> {
    let platform = platform(&act.form.platform)?;
    // Who it is shows only when the code fits, so the attempt is what is written down before.
    act.record(&state, "pairing_attempt", platform.name())?;
    let approved = state
        .pairing
        // An operator is made at the machine's own command line, and nowhere else.
        .approve(platform, &act.form.code, PairedRole::User, state.now())
        .await?;
    let user = format!("{} ({})", approved.user, approved.display);
    note(&state, platform, PairingEvent::Approved, &user, &act.viewer)?;
    Ok(done(&act, "/people"))
}

pub(crate) async fn revoke(
    State(state): State<SharedState>,
    act: Act<RevokeForm>,
) -> Result<Response, PageFailure> {
    let platform = platform(&act.form.platform)?;
    let user = UserId::new(act.form.user.as_str());
    let user = user.map_err(|error| PageFailure::Invalid(error.to_string()))?;
    // A program names whom it means, and has no row that could have become another's.
    if !act.for_program && !act.form.is_sure() {
        let why = "This has to be confirmed for the very person: go back, load the page again, and repeat it.";
        return Err(PageFailure::Invalid(why.to_owned()));
    }
    note(
        &state,
        platform,
        PairingEvent::Revoked,
        user.as_str(),
        &act.viewer,
    )?;
    if !state.pairing.revoke(platform, &user).await? {
        return Err(PageFailure::NotFound(
            "Nobody of that name was let in by a code.",
        ));
    }
    Ok(done(&act, "/people"))
}

fn note(
    state: &DashboardState,
    platform: Platform,
    act: PairingEvent,
    user: &str,
    viewer: &Viewer,
) -> Result<(), PageFailure> {
    state.approvals.append(&AuditEvent::Pairing {
        platform,
        act,
        user: state.approvals.words(user),
        by: state.approvals.words(&viewer.who),
    })?;
    Ok(())
}
