//! Questions that wait for a person, to be answered here. They are the same that the buttons in chats are
//! about: the first answer counts, wherever it is given.

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hermetic_approvals::Answerer;
use hermetic_policy::VerdictExplanation;
use hermetic_store::{
    AnswerOutcome, ApprovalRequest, ApprovalScope, GivenAnswer, RequestState, StoredSubject,
};
use hermetic_types::{RequestId, Timestamp};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, conversation_link, csrf_field, empty, state_mark, time};
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::words;

#[derive(Debug, Serialize)]
pub(crate) struct ApprovalsPage {
    pub(crate) now: Timestamp,
    pub(crate) waiting: Vec<WaitingQuestion>,
    /// What was settled lately, the latest first.
    pub(crate) settled: Vec<ApprovalRequest>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WaitingQuestion {
    #[serde(flatten)]
    pub(crate) request: ApprovalRequest,
    /// How the command is read.
    pub(crate) explanation: Option<Box<VerdictExplanation>>,
}

const MOST_SETTLED: u32 = 50;
const LONGEST_REASON: usize = 280;

pub(crate) async fn load(state: &DashboardState) -> Result<ApprovalsPage, PageFailure> {
    let (waiting, all) = tokio::join!(
        state.approvals.pending(),
        state.activity.questions(None, MOST_SETTLED),
    );
    let waiting = waiting?.into_iter().map(|request| WaitingQuestion {
        explanation: match request.subject {
            StoredSubject::Command => state.gateway.explain(&request.conversation, &request.what),
            StoredSubject::Host | StoredSubject::Agent => None,
        },
        request,
    });
    let settled = all?.into_iter();
    Ok(ApprovalsPage {
        now: state.now(),
        waiting: waiting.collect(),
        settled: settled
            .filter(|one| one.state != RequestState::Pending)
            .collect(),
    })
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, PageFailure> {
    let page = load(&state).await?;
    let body = html! {
        section #questions data-live aria-label="Questions that wait" {
            @if page.waiting.is_empty() {
                (empty("Nothing waits for a person.", &html! {
                    "A command that a sandbox cannot undo, or a host that no rule names, is asked about \
                     here and in the chats at once."
                }))
            }
            @for question in &page.waiting { (asked(page.now, question, &viewer)) }
        }
        section #settled data-live aria-labelledby="settled-title" {
            h2 #settled-title { "Settled" }
            @if page.settled.is_empty() {
                p.dim { "No question was settled yet." }
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="settled-title" {
                    table {
                        thead {
                            tr {
                                th { "Question" } th { "About" } th { "Conversation" } th { "State" }
                                th { "By" } th.number { "When" }
                            }
                        }
                        tbody {
                            @for request in &page.settled {
                                tr data-key=(request.id) {
                                    th scope="row" { (request.id) }
                                    td.text { code { (words::beginning(&words::visible(&request.what), 120)) } }
                                    td { (conversation_link(&request.conversation)) }
                                    td {
                                        (state_mark(request.state.name()))
                                        @if let Some(scope) = request.scope { div.dim { (in_words(scope)) } }
                                    }
                                    td {
                                        @if let Some(by) = &request.answered_by { (words::visible(by)) }
                                        @if let Some(via) = &request.via { div.dim { (via) } }
                                        @if let Some(reason) = &request.reason {
                                            div.dim { "“" (words::visible(reason)) "”" }
                                        }
                                    }
                                    td.number { (time(page.now, request.answered_at.unwrap_or(request.asked_at))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page {
        title: "Approvals",
        path: "/approvals",
        viewer: &viewer,
        topics: "activity",
        waiting: page.waiting.len(),
        body,
    }
    .into_response())
}

fn asked(now: Timestamp, question: &WaitingQuestion, viewer: &Viewer) -> Markup {
    let request = &question.request;
    let (title, id) = (format!("{}-title", request.id), request.id.to_string());
    html! {
        article.panel.question id=(id) data-key=(id) aria-labelledby=(title) {
            h2 id=(title) {
                @match request.subject {
                    StoredSubject::Command => { "May this command run?" }
                    StoredSubject::Host => { "May this host be reached?" }
                    StoredSubject::Agent => { "The agent asks whether it may" }
                }
                " " span.dim { (id) }
            }
            pre.scroll tabindex="0" { (words::visible(&request.what)) }
            dl.facts {
                div { dt { "Asked by" } dd { (words::visible(&request.asker)) } }
                div { dt { "In" } dd { (conversation_link(&request.conversation)) } }
                div { dt { "Asked" } dd { (time(now, request.asked_at)) } }
                div { dt { "Silence is no" } dd { (time(now, request.expires_at)) } }
            }
            @if !request.reasons.is_empty() {
                h3 { "Why it is asked" }
                ul { @for reason in &request.reasons { li { (words::visible(reason)) } } }
            }
            @if let Some(explanation) = &question.explanation { (explained(explanation)) }
            @if viewer.may_act() { (answers(request, viewer)) }
            @else { p.dim { "You may look and not answer." } }
        }
    }
}

fn explained(explanation: &VerdictExplanation) -> Markup {
    html! {
        h3 { "What it comes down to" }
        @if explanation.effective.is_empty() { p.dim { "No program that could be named." } }
        ul.commands {
            @for command in &explanation.effective {
                li {
                    code { (words::visible(&command.line)) }
                    @if !command.via.is_empty() {
                        span.dim { " by way of " (words::visible(&command.via.join(" › "))) }
                    }
                }
            }
        }
        @for doubt in &explanation.doubts {
            p.note.fair { "Not understood: " (words::visible(doubt)) }
        }
    }
}

fn answers(request: &ApprovalRequest, viewer: &Viewer) -> Markup {
    html! {
        form.answers method="post" action="/approvals/answer" {
            (csrf_field(viewer))
            input type="hidden" name="id" value=(request.id);
            @for scope in offered(request) {
                button class=[(scope == ApprovalScope::Once).then_some("main")] type="submit" name="answer"
                    value=(scope.name()) { "Allow " (in_words(scope)) }
            }
            span.deny {
                label.unseen for={ "reason-" (request.id) } { "Why not (told to who asked)" }
                input id={ "reason-" (request.id) } name="reason" maxlength=(LONGEST_REASON) placeholder="Why not, if you like";
                button.danger type="submit" name="answer" value="deny" { "Refuse" }
            }
        }
    }
}

/// How long a yes can be given for from here. A rule for commands is not written by a button.
fn offered(request: &ApprovalRequest) -> impl Iterator<Item = ApprovalScope> {
    let longest = match request.subject {
        StoredSubject::Command | StoredSubject::Agent => {
            request.longest.min(ApprovalScope::Session)
        }
        StoredSubject::Host => request.longest,
    };
    let scopes = ApprovalScope::ALL.into_iter();
    scopes.filter(move |scope| *scope <= longest)
}

fn in_words(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Once => "once",
        ApprovalScope::TenMinutes => "for ten minutes",
        ApprovalScope::Session => "for this session",
        ApprovalScope::Always => "from now on",
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct AnswerForm {
    id: String,
    /// `once`, `ten_minutes`, `session`, `always` or `deny`.
    answer: String,
    #[serde(default)]
    reason: String,
}

pub(crate) async fn answer(
    State(state): State<SharedState>,
    act: Act<AnswerForm>,
) -> Result<Response, PageFailure> {
    let unknown = PageFailure::NotFound("No question has this name.");
    let Ok(id) = act.form.id.parse::<RequestId>() else {
        return Err(unknown);
    };
    let Some(request) = state.approvals.rows().find(&id).await? else {
        return Err(unknown);
    };
    let given = match act.form.answer.as_str() {
        "deny" => GivenAnswer::No,
        name => match ApprovalScope::named(name) {
            // Held against the question itself, as a form can name any scope.
            Some(scope) if offered(&request).any(|offered| offered == scope) => {
                GivenAnswer::Yes(scope)
            }
            _ => {
                let why = "That answer cannot be given to this question.";
                return Err(PageFailure::Invalid(why.to_owned()));
            }
        },
    };
    let reason: String = act
        .form
        .reason
        .trim()
        .chars()
        .take(LONGEST_REASON)
        .collect();
    let reason = (!reason.is_empty()).then_some(reason.as_str());
    // The answer itself goes into the record with who gave it, before anything runs that it allows.
    let answerer = Answerer {
        by: &act.viewer.who,
        via: "dashboard",
    };
    match state.approvals.answer(&id, given, answerer, reason).await? {
        AnswerOutcome::First(_) => Ok(done(&act, "/approvals")),
        AnswerOutcome::TooLate(request) => Err(PageFailure::Conflict(format!(
            "Too late: {} is {} already{}.",
            request.id,
            request.state.name(),
            match &request.answered_by {
                Some(by) => format!(", by {by}"),
                None => String::new(),
            }
        ))),
        AnswerOutcome::Unknown => Err(unknown),
    }
}
