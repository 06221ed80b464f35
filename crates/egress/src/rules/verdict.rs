//! What the rules answer.

use std::fmt;

use ipnet::IpNet;

/// How the sandbox wants to talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// CONNECT or SOCKS: bytes end to end.
    Tunnel,
    /// A plain HTTP request in absolute form.
    PlainHttp,
}

/// What may flow once the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Only TLS whose SNI is the host.
    Tls,
    /// HTTP, parsed by us, whose Host is the host.
    Http,
    /// Any bytes, because a `tcp://` rule says so.
    Tcp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allow(Allowed),
    /// Final: nobody is asked.
    Refuse(Refused),
    /// No rule speaks of it. Refused, unless a person says otherwise.
    Unknown(Refused),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Allowed {
    pub(super) transport: Transport,
    pub(super) rule: String,
    pub(super) ranges: Vec<IpNet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    ground: Ground,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
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

impl Allowed {
    pub fn transport(&self) -> Transport {
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

impl Refused {
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground }
    }

    pub fn ground(&self) -> &Ground {
        &self.ground
    }
}

impl fmt::Display for Ground {
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

impl From<Via> for Transport {
    fn from(via: Via) -> Self {
        match via {
            Via::Tunnel => Self::Tls,
            Via::PlainHttp => Self::Http,
        }
    }
}
