//! What goes on, for people: pages that show it, live, and the acts of an operator.
//!
//! Everything is read from the store, the audit record, the questions and the journal of connections; what
//! only a running gateway knows comes through one seam, [`GatewayView`]. Pages are made here, on the server,
//! and can be read without a script; the script that comes along only brings them up to date.
//!
//! - `access` decides who looks: one-time links, sessions, a password, a proxy's word, tokens for programs;
//! - `pages` has a file for each page: what it shows ([`serde::Serialize`]), how it is loaded, how it looks;
//! - `api` gives the same to programs, under `/api/v1`;
//! - `live` tells browsers that something changed; they ask for the page again;
//! - `use_sampler` asks what sandboxes use, while somebody looks;
//! - `terminal` is a shell in a living sandbox, for people who may act;
//! - `acts` is the only way to do anything, and writes each act into the audit record before it is done.

#![forbid(unsafe_code)]

mod access;
mod acts;
mod api;
mod assets;
mod browser_chat;
mod egress_feed;
mod failure;
mod front;
mod gateway_view;
mod live;
mod markdown;
mod pages;
mod routes;
mod sandbox_history;
mod state;
mod terminal;
mod upload;
mod use_sampler;
mod words;

pub use access::{
    AccessKey, AccessSettings, DashboardRole, InvalidRole, KeyError, ProxyAccess, access_link,
    access_token, is_loopback_host,
};
pub use browser_chat::{BrowserChat, ChatBounds, ChatPress, ChatRefused, ChatWords};
pub use egress_feed::EgressFeed;
pub use front::{FrontParts, front_routes};
pub use gateway_view::{
    ActFailed, BudgetRow, ConditionReport, GatewayView, LayerRow, ListedPerson, PartRow,
    PlatformRow, RunningOutput, SandboxUse, SealReport, SealedPlace, SettingRow, SettingsReport,
};
pub use routes::dashboard_routes;
pub use state::DashboardParts;
pub use terminal::{OpenedShell, TerminalOpener, TerminalRefused, TerminalSize};
