//! What the sandbox is told when something is refused.
//!
//! The reader is usually a model. It has to learn from the text alone what happened, that trying again
//! will not help, and what a person can do about it.

use serde_json::json;

use crate::account::{BudgetScope, BudgetSpent};
use crate::address::NotPublic;
use crate::dial::DialError;
use crate::remedy::{AllowInstructions, RefusalRemedy};
use crate::resolve::LocateError;
use crate::rules::{Authority, ProxyMethod, RefusalGround, RefusedAccess};
use crate::upstream::UpstreamError;

/// A refusal, in words for the sandbox and in codes for its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRefusal {
    /// A short name of the reason, stable for programs.
    pub code: &'static str,
    pub status: u16,
    pub socks_reply: u8,
    pub target: String,
    pub reason: String,
    pub rule: Option<String>,
    pub remedy: Option<RefusalRemedy>,
}

/// Reply codes of SOCKS5 (RFC 1928, section 6).
mod socks {
    pub(super) const FAILURE: u8 = 1;
    pub(super) const NOT_ALLOWED: u8 = 2;
    pub(super) const HOST_UNREACHABLE: u8 = 4;
    pub(super) const REFUSED: u8 = 5;
}

/// A person was asked and said no.
const DENIED_BY_PERSON: &str = "denied-by-person";
/// A person was asked and did not answer in time.
const NOT_ANSWERED: &str = "not-answered";

impl ProxyRefusal {
    pub(crate) fn by_rule(target: &Authority, via: ProxyMethod, refused: &RefusedAccess) -> Self {
        let (code, reason, remedy) = match refused.ground() {
            RefusalGround::Closed => (
                "closed",
                "this sandbox has no network access at all".to_owned(),
                None,
            ),
            RefusalGround::Denied { .. } => {
                ("denied", format!("{target} is on the denylist"), None)
            }
            RefusalGround::NotListed => (
                "not-allowed",
                format!("{target} is not on the allowlist of this sandbox"),
                Some(RefusalRemedy::allow(target)),
            ),
            RefusalGround::PortNotListed { .. } => (
                "port-not-allowed",
                format!("{} is not allowed on port {}", target.host, target.port),
                Some(RefusalRemedy::allow(target)),
            ),
            RefusalGround::TlsOnly => (
                "tls-only",
                format!("port {} of {} takes TLS only", target.port, target.host),
                Some(RefusalRemedy::Do("use https:// in the address")),
            ),
        };
        let remedy = match (remedy, via) {
            (Some(RefusalRemedy::Allow(what)), ProxyMethod::PlainHttp) => {
                Some(RefusalRemedy::AllowOrUseTls(what))
            }
            (remedy, _) => remedy,
        };
        Self::forbidden(
            code,
            target,
            reason,
            Some(refused.ground().to_string()),
            remedy,
        )
    }

    /// Whether no rule allows it and nobody was asked, so that nobody knows of it yet.
    pub(crate) fn is_news(&self) -> bool {
        let was_asked = matches!(self.code, DENIED_BY_PERSON | NOT_ANSWERED);
        matches!(self.remedy, Some(RefusalRemedy::Allow(_))) && !was_asked
    }

    pub(crate) fn by_person(target: &Authority, answered: bool) -> Self {
        let reason = if answered {
            format!("a person was asked about {target} and said no")
        } else {
            format!("a person was asked about {target} and did not answer in time")
        };
        let code = if answered {
            DENIED_BY_PERSON
        } else {
            NOT_ANSWERED
        };
        Self::forbidden(
            code,
            target,
            reason,
            Some("ask".to_owned()),
            Some(RefusalRemedy::allow(target)),
        )
    }

    pub(crate) fn too_many_questions(target: &Authority) -> Self {
        let reason =
            format!("{target} is not allowed, and too many questions already wait for a person");
        let remedy = Some(RefusalRemedy::allow(target));
        Self::forbidden(
            "not-allowed",
            target,
            reason,
            Some("ask".to_owned()),
            remedy,
        )
    }

    pub(crate) fn not_located(target: &Authority, rule: &str, error: &LocateError) -> Self {
        let reason = format!("{}: {error}", target.host);
        match error {
            LocateError::Address(refused) => {
                let there = format!("'{target} in {}'", refused.address);
                let remedy = RefusalRemedy::AllowThere(there.into());
                // Nobody should be talked into opening a machine's own credentials.
                let remedy = (refused.reason != NotPublic::Metadata).then_some(remedy);
                let rule = Some(format!("{rule}, but only for public addresses"));
                Self::forbidden("address", target, reason, rule, remedy)
            }
            LocateError::NotFound { .. } | LocateError::NoAddress => {
                Self::failed("unresolved", 502, socks::HOST_UNREACHABLE, target, reason)
            }
            LocateError::TimedOut { .. } => {
                Self::failed("unresolved", 504, socks::HOST_UNREACHABLE, target, reason)
            }
        }
    }

    pub(crate) fn not_dialled(target: &Authority, error: &DialError) -> Self {
        let reason = format!("{target}: {error}");
        match error {
            DialError::TimedOut { .. } => {
                Self::failed("unreachable", 504, socks::HOST_UNREACHABLE, target, reason)
            }
            DialError::Failed { .. } => {
                Self::failed("unreachable", 502, socks::REFUSED, target, reason)
            }
        }
    }

    /// The proxy between us and the target did not take us there. Its words stay outside: only what we know
    /// of it is said.
    pub(crate) fn by_upstream(target: &Authority, error: &UpstreamError) -> Self {
        let reason = format!("{target}: {error}");
        let (status, socks_reply) = match error {
            UpstreamError::TimedOut { .. } => (504, socks::HOST_UNREACHABLE),
            UpstreamError::Refused { .. } => (502, socks::NOT_ALLOWED),
            UpstreamError::Unreachable { .. }
            | UpstreamError::LoginRefused { .. }
            | UpstreamError::NotHttp { .. } => (502, socks::FAILURE),
        };
        Self::failed("upstream-proxy", status, socks_reply, target, reason)
    }

    /// A name that was not found here, where it has to be found before the proxy is told.
    pub(crate) fn unchecked_by_us(mut self) -> Self {
        self.remedy = Some(RefusalRemedy::Do(
            "give this machine a DNS that knows public names, or let the proxy look them up unchecked with \
             gateway.egress.upstream_names: proxy",
        ));
        self
    }

    /// Whoever reaches the proxy itself reaches everything.
    pub(crate) fn upstream_itself(target: &Authority) -> Self {
        let reason =
            format!("{target} is the proxy that everything leaves through, and no host of its own");
        let rule = Some("upstream proxy".to_owned());
        Self::forbidden("upstream-proxy", target, reason, rule, None)
    }

    /// The proxy would look this name up, and it is not a name of the world.
    pub(crate) fn internal_name(target: &Authority) -> Self {
        let reason = format!(
            "{} is a name of a network of its own, which the proxy would look up unchecked",
            target.host
        );
        let remedy = RefusalRemedy::Do(
            "add the host to gateway.no_proxy (NO_PROXY), so that it is looked up and checked here",
        );
        let rule = Some("only public names go through the proxy".to_owned());
        Self::forbidden("internal-name", target, reason, rule, Some(remedy))
    }

    /// The rule asks for addresses that only the proxy will know.
    pub(crate) fn unknown_address(target: &Authority, rule: &str) -> Self {
        let reason = format!(
            "{}: its address is looked up by the proxy and cannot be compared with the rule's range",
            target.host
        );
        let remedy = RefusalRemedy::Do(
            "add the host to gateway.no_proxy (NO_PROXY), so that it is looked up and checked here",
        );
        Self::forbidden(
            "address",
            target,
            reason,
            Some(rule.to_owned()),
            Some(remedy),
        )
    }

    /// The conversation guessed at the credential too often. `lift` is the command that gives it back.
    pub(crate) fn credential_guessed(target: &Authority, lift: Option<String>) -> Self {
        let reason = format!(
            "answers of {target} were full of guesses at its credential, so this sandbox has lost it"
        );
        let remedy = match lift {
            Some(command) => RefusalRemedy::Lift(command.into()),
            None => RefusalRemedy::Do("restart the gateway, which forgets it"),
        };
        let rule = Some("a credential is not there to be guessed".to_owned());
        Self::forbidden("credential-guessed", target, reason, rule, Some(remedy))
    }

    /// The credential of the host is for other paths, and nothing else is asked of that host.
    pub(crate) fn outside_paths(target: &Authority) -> Self {
        let reason = format!(
            "the credential of {target} is for certain paths, and this request asks for another one"
        );
        let remedy = RefusalRemedy::Do(
            "add the path to `paths` of that host in gateway.egress.credentials; the paths of an agent's preset \
             are fixed",
        );
        let rule = Some("credentials: paths".to_owned());
        Self::forbidden("path-not-allowed", target, reason, rule, Some(remedy))
    }

    /// The conversation had a credential of this host when it connected, and has it no longer.
    pub(crate) fn credential_taken_back(target: &Authority) -> Self {
        let reason = format!("the credential of {target} was taken back from this sandbox");
        let rule = Some("credentials".to_owned());
        Self::forbidden("credential-taken-back", target, reason, rule, None)
    }

    /// The same of the login of the company's proxy, which goes along with plain requests.
    pub(crate) fn login_guessed(target: &Authority) -> Self {
        let reason =
            "answers were full of guesses at the login of the proxy, so no plain request of this \
                      sandbox is sent through it"
                .to_owned();
        let remedy = RefusalRemedy::Do(
            "use https:// in the address, or restart the gateway, which forgets it",
        );
        let rule = Some("a login is not there to be guessed".to_owned());
        Self::forbidden("credential-guessed", target, reason, rule, Some(remedy))
    }

    pub(crate) fn budget(target: &Authority, spent: BudgetSpent) -> Self {
        let remedy = RefusalRemedy::Do(match spent.scope {
            BudgetScope::Life => "raise gateway.egress.budget_bytes",
            BudgetScope::Conversation => {
                "wait for the next day, have an approver lift it (/usage names the command), or raise \
                 budgets.conversation.bytes_out"
            }
            BudgetScope::Person => {
                "wait for the next day, have an approver lift it (/usage names the command), or raise \
                 budgets.person.bytes_out"
            }
            BudgetScope::All => {
                "wait for the next day, have an approver lift it (/usage names the command), or raise \
                 budgets.all.bytes_out"
            }
        });
        Self::forbidden(
            "budget",
            target,
            spent.to_string(),
            Some("budget".to_owned()),
            Some(remedy),
        )
    }

    /// The answer of the other side cannot be passed on.
    pub(crate) fn bad_gateway(target: &Authority, reason: impl Into<String>) -> Self {
        Self::failed("bad-answer", 502, socks::FAILURE, target, reason.into())
    }

    pub(crate) fn slow(target: &Authority) -> Self {
        let reason = format!("{target} did not answer in time");
        Self::failed("no-answer", 504, socks::FAILURE, target, reason)
    }

    /// The request itself is at fault.
    pub(crate) fn bad_request(target: &str, reason: impl Into<String>) -> Self {
        Self::malformed("bad-request", 400, target, reason.into())
    }

    /// The target is not a name we would ever look up: a literal, an odd spelling, userinfo.
    pub(crate) fn bad_target(target: &str, reason: impl Into<String>) -> Self {
        Self::malformed("bad-target", 403, target, reason.into())
    }

    pub(crate) fn too_large(reason: impl Into<String>) -> Self {
        Self::malformed("too-large", 431, "", reason.into())
    }

    pub(crate) fn too_slow() -> Self {
        Self::malformed(
            "too-slow",
            408,
            "",
            "the request did not arrive in time".to_owned(),
        )
    }

    pub(crate) fn busy() -> Self {
        let reason = "too many connections are open at once, of this sandbox or of all that are the same person's".to_owned();
        Self::malformed("busy", 503, "", reason)
    }

    pub(crate) fn method(target: &Authority, method: &str) -> Self {
        Self::malformed(
            "method",
            405,
            &target.to_string(),
            format!("{method} is not passed on"),
        )
    }

    fn forbidden(
        code: &'static str,
        target: &Authority,
        reason: String,
        rule: Option<String>,
        remedy: Option<RefusalRemedy>,
    ) -> Self {
        let (status, socks_reply) = (403, socks::NOT_ALLOWED);
        Self {
            code,
            status,
            socks_reply,
            target: target.to_string(),
            reason,
            rule,
            remedy,
        }
    }

    fn failed(
        code: &'static str,
        status: u16,
        socks_reply: u8,
        target: &Authority,
        reason: String,
    ) -> Self {
        Self {
            code,
            status,
            socks_reply,
            target: target.to_string(),
            reason,
            rule: None,
            remedy: None,
        }
    }

    fn malformed(code: &'static str, status: u16, target: &str, reason: String) -> Self {
        // The text came from outside and goes into a log and a body: short and printable.
        let target = target
            .chars()
            .take(256)
            .filter(|c| !c.is_control())
            .collect();
        let socks_reply = socks::NOT_ALLOWED;
        Self {
            code,
            status,
            socks_reply,
            target,
            reason,
            rule: None,
            remedy: None,
        }
    }

    pub fn text(&self, allowing: AllowInstructions) -> String {
        let mut text = format!("hermetic egress: refused: {}\n", self.reason);
        if let Some(rule) = &self.rule {
            text.push_str(&format!("rule: {rule}\n"));
        }
        match (&self.remedy, self.status) {
            (Some(remedy), _) => {
                let remedy = remedy.words(allowing);
                text.push_str(&format!("what a person can do: {remedy}\n"));
                text.push_str("Trying again, or another way out, will not help until then.\n");
            }
            (None, 403) => text.push_str("Trying again will not help.\n"),
            (None, _) => {}
        }
        text
    }

    pub fn json(&self, allowing: AllowInstructions) -> String {
        json!({
            "error": "egress_refused",
            "code": self.code,
            "target": self.target,
            "reason": self.reason,
            "rule": self.rule,
            "remedy": self.remedy.as_ref().map(|remedy| remedy.words(allowing)),
        })
        .to_string()
    }

    /// A whole HTTP response that also ends the connection.
    pub(crate) fn response(&self, as_json: bool, allowing: AllowInstructions) -> Vec<u8> {
        let (kind, body) = if as_json {
            ("application/json", self.json(allowing))
        } else {
            ("text/plain; charset=utf-8", self.text(allowing))
        };
        format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             X-Hermetic-Refused: {}\r\nConnection: close\r\n\r\n{body}",
            self.status,
            phrase(self.status),
            body.len(),
            self.code,
        )
        .into_bytes()
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Refused",
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
