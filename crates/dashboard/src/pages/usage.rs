//! Tokens and money, by day, person, model and conversation, beside what may be spent.

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_store::{SpendingGroup, SpentSum};
use hermetic_types::Timestamp;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::chart::{bars, share};
use super::layout::{Page, code, empty};
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};
use crate::{BudgetRow, words};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct UsageQuery {
    days: Option<u16>,
}

#[derive(Debug, Serialize)]
pub(crate) struct UsagePage {
    pub(crate) today: String,
    pub(crate) days: u16,
    pub(crate) budgets: Vec<BudgetRow>,
    /// All together, the latest day first.
    pub(crate) by_day: Vec<UsageRow>,
    /// Over all these days, the dearest first.
    pub(crate) people: Vec<UsageRow>,
    /// By the model that answered.
    pub(crate) models: Vec<UsageRow>,
    pub(crate) conversations: Vec<UsageRow>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct UsageRow {
    pub(crate) name: String,
    pub(crate) requests: i64,
    pub(crate) tokens: i64,
    pub(crate) nanodollars: i64,
    /// Tokens of models whose price is not known.
    pub(crate) unpriced: i64,
    pub(crate) tool_ms: i64,
    /// Of that, today.
    pub(crate) today_tokens: i64,
    pub(crate) today_nanodollars: i64,
}

const MOST_DAYS: u16 = 400;
const MOST_ROWS: u32 = 100;

/// The first of the last `days` days, as spending names them: by the machine's calendar.
pub(crate) fn first_day(now: Timestamp, days: u16) -> String {
    let today = now.calendar().to_zoned(jiff::tz::TimeZone::system()).date();
    let back = jiff::Span::new().days(i64::from(days.max(1)) - 1);
    today.saturating_sub(back).to_string()
}

pub(crate) async fn load(
    state: &DashboardState,
    query: &UsageQuery,
) -> Result<UsagePage, PageFailure> {
    let (now, days) = (state.now(), query.days.unwrap_or(30).clamp(1, MOST_DAYS));
    let (from, today) = (first_day(now, days), first_day(now, 1));
    let over = (from.as_str(), today.as_str());
    let activity = &state.activity;
    let (by_day, people, conversations, models) = tokio::try_join!(
        activity.spending_by_day(&from, &today),
        activity.spending_by_name(SpendingGroup::People, over, MOST_ROWS),
        activity.spending_by_name(SpendingGroup::Conversations, over, MOST_ROWS),
        activity.spending_by_name(SpendingGroup::Models, over, MOST_ROWS),
    )?;
    Ok(UsagePage {
        days,
        budgets: state.gateway.budgets(),
        by_day: rows(by_day),
        people: rows(people),
        models: rows(models),
        conversations: rows(conversations),
        today,
    })
}

impl From<SpentSum> for UsageRow {
    fn from(sum: SpentSum) -> Self {
        Self {
            name: sum.name,
            requests: sum.spent.requests,
            tokens: sum.spent.tokens,
            nanodollars: sum.spent.nanodollars,
            unpriced: sum.spent.unpriced,
            tool_ms: sum.spent.tool_ms,
            today_tokens: sum.today.tokens,
            today_nanodollars: sum.today.nanodollars,
        }
    }
}

fn rows(sums: Vec<SpentSum>) -> Vec<UsageRow> {
    sums.into_iter().map(UsageRow::from).collect()
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<UsageQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let budget = |scope: &str| page.budgets.iter().find(|budget| budget.scope == scope);
    let today = page.by_day.iter().find(|row| row.name == page.today);
    let body = html! {
        nav.tabs aria-label="Days" {
            @for (days, name) in [(1, "Today"), (7, "7 days"), (30, "30 days"), (365, "A year")] {
                a href={ "/usage?days=" (days) } aria-current=[(page.days == days).then_some("true")] { (name) }
            }
        }
        section.panel #today data-live aria-labelledby="today-title" {
            h2 #today-title { "Today, all together" }
            @let spent = today.cloned().unwrap_or_default();
            dl.facts {
                div { dt { "Cost" } dd.number { (words::money(spent.nanodollars)) } }
                div { dt { "Tokens" } dd.number { (words::count(spent.tokens)) } }
                div { dt { "Requests" } dd.number { (words::count(spent.requests)) } }
                div { dt { "Tools" } dd.number { (tool_time(spent.tool_ms)) } }
            }
            @match budget("all") {
                Some(all) if has_bound(all) => { (bounded(&spent, all)) }
                _ => {
                    p.dim { "No budget bounds a day of all together. " (code("budgets.all.dollars")) " would." }
                }
            }
        }
        @if page.by_day.is_empty() {
            (empty("Nothing was spent in these days.", &html! { "Every request to a model is counted here." }))
        } @else {
            section.panel #days data-live aria-labelledby="days-title" {
                h2 #days-title { "By day" }
                @let priced = page.by_day.iter().any(|row| row.nanodollars > 0);
                @let days = page.by_day.iter().rev();
                @if priced {
                    (bars(&days.map(|row| row.nanodollars / 1000).collect::<Vec<_>>(), "plain", "Cost by day, the latest last"))
                } @else {
                    (bars(&days.map(|row| row.tokens).collect::<Vec<_>>(), "plain", "Tokens by day, the latest last"))
                }
                (table(&page.by_day, "Day", None, page.days > 1))
            }
            section #people-usage data-live aria-labelledby="people-title" {
                h2 #people-title { "By person" }
                (table(&page.people, "Person", budget("person"), false))
            }
            section #model-usage data-live aria-labelledby="model-title" {
                h2 #model-title { "By model" }
                @if page.models.is_empty() {
                    p.dim { "Which model was asked is counted from now on; these days are older." }
                } @else {
                    (table(&page.models, "Model", None, false))
                    p.dim {
                        "A request that went from one model to the next is counted for the one that answered."
                    }
                }
            }
            section #conversation-usage data-live aria-labelledby="conversation-title" {
                h2 #conversation-title { "By conversation" }
                (table(&page.conversations, "Conversation", budget("conversation"), false))
            }
        }
    };
    Ok(Page {
        title: "Usage",
        path: "/usage",
        viewer: &viewer,
        topics: "activity",
        waiting,
        body,
    }
    .into_response())
}

fn table(rows: &[UsageRow], first: &str, budget: Option<&BudgetRow>, is_long: bool) -> Markup {
    let budget = budget.filter(|budget| has_bound(budget));
    let table = html! {
        div.scroll tabindex="0" role="region" aria-label={ "Usage by " (first.to_lowercase()) } {
            table {
                thead {
                    tr {
                        th { (first) } th.number { "Cost" } th.number { "Tokens" }
                        th.number { "Requests" } th.number { "Unpriced tokens" } th.number { "Tools" }
                        @if budget.is_some() { th { "Today, of the budget" } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr data-key=(row.name) {
                            th.key scope="row" { (words::visible(&row.name)) }
                            td.number { (words::money(row.nanodollars)) }
                            td.number { (words::count(row.tokens)) }
                            td.number { (words::count(row.requests)) }
                            td.number { (words::count(row.unpriced)) }
                            td.number { (tool_time(row.tool_ms)) }
                            @if let Some(budget) = budget { td { (bounded(row, budget)) } }
                        }
                    }
                }
            }
        }
    };
    match is_long && rows.len() > 10 {
        true => html! { details { summary { "Every day" } (table) } },
        false => table,
    }
}

fn tool_time(millis: i64) -> String {
    match millis {
        0 => "–".to_owned(),
        _ => words::span(std::time::Duration::from_millis(millis.unsigned_abs())),
    }
}

fn has_bound(budget: &BudgetRow) -> bool {
    budget.nanodollars.is_some() || budget.tokens.is_some() || budget.tool_seconds.is_some()
}

fn bounded(row: &UsageRow, budget: &BudgetRow) -> Markup {
    let money = |amount: i64| u64::try_from(amount).unwrap_or_default();
    html! {
        @if let Some(most) = budget.nanodollars {
            @let told = format!("{} of {}", words::money(row.today_nanodollars), words::money(most));
            div.budget { span.number { (told) } (share(money(row.today_nanodollars), money(most), &told)) }
        }
        @if let Some(most) = budget.tokens {
            @let most_count = i64::try_from(most).unwrap_or(i64::MAX);
            @let told = format!("{} of {} tokens", words::count(row.today_tokens), words::count(most_count));
            div.budget { span.number { (told) } (share(money(row.today_tokens), most, &told)) }
        }
        @if let Some(seconds) = budget.tool_seconds {
            div.budget { span.dim { "tools: at most " (seconds) " s a day" } }
        }
    }
}
