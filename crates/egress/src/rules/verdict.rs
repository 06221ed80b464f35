//! What the rules answer.

use std::fmt;

use ipnet::IpNet;

/// The way in which the sandbox wants to talk to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyMethod {
    /// CONNECT or SOCKS: bytes end to end.
    Tunnel,
    /// A plain HTTP request in absolute form.
    PlainHttp,
}

/// What may flow once the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedTransport {
    /// Only TLS whose SNI is the host.
    Tls,
    /// HTTP, parsed by us, whose Host is the host.
    Http,
    /// Any bytes, because a `tcp://` rule says so.
    Tcp,
}

/// What the rules decide about a target.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleVerdict {
    Allow(AllowedAccess),
    /// Final: nobody is asked.
    Refuse(RefusedAccess),
    /// No rule speaks of it. Refused, unless a person says otherwise.
    Unknown(RefusedAccess),
}

/// What a target may be reached for, and the rule that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowedAccess {
    pub(super) transport: AllowedTransport,
    pub(super) rule: String,
    pub(super) ranges: Vec<IpNet>,
}

/// A refusal by the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAccess {
    ground: RefusalGround,
}

/// The reason why the rules refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalGround {
    /// The mode is `closed`.
    Closed,
    Denied {
        rule: String,
    },
    NotListed,
    /// The host is known, the port is not.
    PortNotListed {
        rules: Vec<String>,
    },
    /// Plain HTTP to the TLS port.
    TlsOnly,
}

impl AllowedAccess {
    pub fn transport(&self) -> AllowedTransport {
        self.transport
    }

    /// The rule that let it through, in the words of whoever wrote it.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Ranges that are acceptable for this host although they are not public.
    pub fn ranges(&self) -> &[IpNet] {
        &self.ranges
    }
}

impl RefusedAccess {
    pub(super) fn new(ground: RefusalGround) -> Self {
        Self { ground }
    }

    pub fn ground(&self) -> &RefusalGround {
        &self.ground
    }
}

impl fmt::Display for RefusalGround {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("mode: closed"),
            Self::Denied { rule } => write!(f, "deny {rule}"),
            Self::NotListed => f.write_str("no rule names this host"),
            Self::PortNotListed { rules } if rules.is_empty() => {
                f.write_str("no rule names this port")
            }
            Self::PortNotListed { rules } => {
                write!(
                    f,
                    "no rule names this port; the host has: {}",
                    rules.join(", ")
                )
            }
            Self::TlsOnly => f.write_str("port 443 takes TLS only"),
        }
    }
}

impl From<ProxyMethod> for AllowedTransport {
    fn from(via: ProxyMethod) -> Self {
        match via {
            ProxyMethod::Tunnel => Self::Tls,
            ProxyMethod::PlainHttp => Self::Http,
        }
    }
}
