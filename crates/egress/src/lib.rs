//! The only way out of a sandbox.
//!
//! A sandbox has no route and no DNS; its connections arrive here as byte streams, each with the
//! conversation it belongs to. [`Rules`] decide by name, [`address`] by what the name resolves to, and
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
mod conversation;
mod credential;
mod crowd;
pub mod deploy;
mod dial;
mod env;
mod gate;
mod http;
mod journal;
mod limits;
mod metrics;
mod nearby;
mod paced;
#[doc(hidden)]
pub mod parsers;
mod probe;
mod proxy;
mod publish;
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

pub use account::{Account, BudgetSpent};
pub use ask::{Answer, Asker, Question};
pub use audit::{Decision, Entry, How, LogRecord, Record};
pub use book::{BookError, LineProblem, Listing, RuleBook, WrittenRule};
pub use conversation::Conversation;
pub use credential::{
    CaError, CertificateAuthority, Credential, InvalidCredential, Roots, RootsError, Scheme,
    trust_bundle,
};
pub use env::{Trust, sandbox_env};
pub use gate::{Bundle, Charter, Gate, Issued, Reach};
pub use journal::{Journal, Noted, Tail};
pub use limits::Limits;
pub use metrics::EgressMetrics;
pub use paced::Paced;
pub use probe::{ProbeError, probe};
pub use proxy::Proxy;
pub use publish::publish;
pub use refusal::Refusal;
pub use remedy::{Allowing, Remedy};
pub use resolve::{LocateError, Located, Resolver, SystemResolver, locate};
pub use rules::{Authority, Host, InvalidRules, Mode, Preset, Rule, RuleText, Rules, RulesText};
pub use scope::{InvalidScope, Scope};
pub use serve::{Drained, serve};
pub use stream::{Buffered, Stream};
pub use tls::client_hello;
