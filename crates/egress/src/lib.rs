//! The only way out of a sandbox.
//!
//! A sandbox has no route and no DNS; its connections arrive here as byte streams, each with the
//! conversation it belongs to. [`CompiledRules`] decide by name, [`address`] by what the name resolves to, and
//! [`Proxy`] keeps both: HTTP CONNECT, plain HTTP and SOCKS5, with TLS tunnels held to the name they
//! were opened for. Hosts that have a [`Credential`] get it here, outside the sandbox.
//!
//! The same proxy serves streams relayed by a warden ([`Proxy::handle`]) and a listener ([`serve`]).

#![forbid(unsafe_code)]

mod account;
pub mod address;
mod ask;
mod audit;
mod book;
mod client;
mod connection_limit;
mod conversation;
mod credential;
pub mod deploy;
mod dial;
mod egress;
mod env;
mod http;
mod journal;
mod limits;
mod metrics;
mod nearby;
mod outgoing;
mod owner;
#[doc(hidden)]
pub mod parsers;
mod probe;
mod proxy;
mod publish;
mod rate_limited;
mod refusal;
mod relay;
mod remedy;
mod resolve;
pub mod rules;
mod scope;
mod serve;
mod splice;
mod stream;
mod tls;
mod upstream;

pub use account::{AgentTrafficSum, BudgetScope, BudgetSpent, TrafficAccount};
pub use ask::{HostAnswer, HostApprover, HostQuestion};
pub use audit::{EgressDecision, EgressEntry, EgressMethod, EgressRecorder, LogRecorder};
pub use book::{BookError, LineProblem, RuleBook, RuleEffect, WrittenRule};
pub use client::{EgressClient, EgressClientError, EgressStream};
pub use conversation::{ConversationEgress, RefusedHost};
pub use credential::{
    CaError, CertificateAuthority, Credential, CredentialScheme, InvalidCredential, TrustRoots,
    TrustRootsError, has_authorities, trust_bundle,
};
pub use egress::{CertificateBundle, CredentialGrant, Egress, EgressRules, ReachSummary};
pub use env::{CertificateTrust, sandbox_env};
pub use journal::{EgressJournal, JournalEntry, JournalTail};
pub use limits::EgressLimits;
pub use metrics::EgressMetrics;
pub use outgoing::OutgoingBudget;
pub use owner::EgressOwner;
pub use probe::{ProbeError, probe};
pub use proxy::Proxy;
pub use publish::publish;
pub use rate_limited::RateLimitedRecorder;
pub use refusal::ProxyRefusal;
pub use remedy::{AllowInstructions, RefusalRemedy};
pub use resolve::{CheckedAddresses, LocateError, Resolver, SystemResolver};
pub use rules::{
    Authority, CompiledRules, HostName, HostRule, InvalidRules, RuleMode, RulePreset, RuleText,
    RulesText,
};
pub use scope::{ConversationScope, InvalidScope};
pub use serve::{ServeOutcome, serve};
pub use stream::{BufferedStream, ByteStream};
pub use tls::client_hello;
pub use upstream::{NameCheck, UnusableProxy, UpstreamRoute};
