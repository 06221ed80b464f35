//! `NO_PROXY`: what is reached without the proxy.

use std::net::IpAddr;

use ipnet::IpNet;

/// The hosts that are reached without the proxy.
///
/// Read as most programs read the variable: names stand for themselves and for what is below them, with or
/// without a dot or `*.` in front; addresses and ranges for addresses; `*` for everything; a port may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyExceptions(Vec<ProxyException>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProxyException {
    whom: ExceptionTarget,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExceptionTarget {
    Everything,
    Name(String),
    Range(IpNet),
}

impl ProxyExceptions {
    /// Whatever is not understood excepts nothing.
    pub fn parse(text: &str) -> Self {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        Self(entries.filter_map(ProxyException::parse).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn hold(&self, host: &str, port: u16) -> bool {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let address = name.parse::<IpAddr>().ok().map(|it| it.to_canonical());
        self.0.iter().any(|exception| {
            exception.port.is_none_or(|only| only == port) && exception.whom.is(&name, address)
        })
    }
}

impl ProxyException {
    fn parse(text: &str) -> Option<Self> {
        let whole = |whom| Some(Self { whom, port: None });
        if let Ok(range) = text.parse::<IpNet>() {
            return whole(ExceptionTarget::Range(range));
        }
        // Before a port is looked for: an IPv6 address is full of colons.
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return whole(ExceptionTarget::Range(address.to_canonical().into()));
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => (host, Some(port.parse().ok()?)),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let whom = match bare.parse::<IpAddr>() {
            Ok(address) => ExceptionTarget::Range(address.to_canonical().into()),
            Err(_) if host == "*" => ExceptionTarget::Everything,
            Err(_) => {
                let name = host.strip_prefix('*').unwrap_or(host);
                let name = name.trim_start_matches('.').trim_end_matches('.');
                if name.is_empty() || name.contains(['*', '/', '@']) {
                    return None;
                }
                ExceptionTarget::Name(name.to_ascii_lowercase())
            }
        };
        Some(Self { whom, port })
    }
}

impl ExceptionTarget {
    fn is(&self, name: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::Everything => true,
            Self::Range(range) => address.is_some_and(|address| range.contains(&address)),
            Self::Name(suffix) => {
                let above = name.strip_suffix(suffix.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_as_others_read_it() {
        let list = ProxyExceptions::parse(
            "corp.example, .intra.example *.wild.example,only.example:8443,10.0.0.0/8,[2001:db8::1]:80,192.0.2.7",
        );
        for (host, port, held) in [
            ("corp.example", 443, true),
            ("CORP.example.", 443, true),
            ("git.corp.example", 443, true),
            ("notcorp.example", 443, false),
            ("a.intra.example", 443, true),
            ("wild.example", 443, true),
            ("a.wild.example", 443, true),
            ("only.example", 8443, true),
            ("only.example", 443, false),
            ("10.1.2.3", 443, true),
            ("11.1.2.3", 443, false),
            ("2001:db8::1", 80, true),
            ("2001:db8::1", 443, false),
            ("192.0.2.7", 443, true),
            ("::ffff:10.1.2.3", 443, true),
            ("example", 443, false),
        ] {
            assert_eq!(list.hold(host, port), held, "{host}:{port}");
        }
    }

    #[test]
    fn a_star_is_everything_and_nonsense_is_nothing() {
        assert!(ProxyExceptions::parse("*").hold("example.org", 1));
        let odd = ProxyExceptions::parse("a*b, http://x, :80, x:y, .,, 10.0.0.0/99");
        assert!(odd.is_empty(), "{odd:?}");
    }
}
