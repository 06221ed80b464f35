//! How the way in is set up.

use std::net::IpAddr;
use std::path::PathBuf;

use hermetic_types::Secret;

/// How people get in.
#[derive(Clone, Debug)]
pub struct AccessSettings {
    /// The folder with the key, which only the operator's account can read.
    pub state: PathBuf,
    /// The address that is listened on, as it is configured.
    pub host: String,
    pub password: Option<Secret>,
    pub proxy: Option<ProxyAccess>,
    /// Names under which the dashboard may be asked for, besides this machine's own.
    pub names: Vec<String>,
}

/// A reverse proxy whose word counts.
#[derive(Clone, Debug)]
pub struct ProxyAccess {
    /// What it sends in `X-Hermetic-Proxy-Secret`, so that nobody else can speak for it.
    pub secret: Secret,
    /// The header in which it names the person.
    pub user_header: String,
    /// Who of them may act. Everybody else may look.
    pub operators: Vec<String>,
}

impl AccessSettings {
    /// Whether pages are shown at all. On an address that others can reach, a link that is printed in a
    /// terminal is not enough.
    pub fn is_open(&self) -> bool {
        is_loopback_host(&self.host) || self.password.is_some() || self.proxy.is_some()
    }

    /// Whether the dashboard may be asked for under this name. An address cannot be made to resolve to
    /// something else, a name can.
    pub(crate) fn knows_name(&self, authority: &str) -> bool {
        let Some(name) = host_of(authority) else {
            return false;
        };
        if name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let mut known = self.names.iter().chain([&self.host]);
        known.any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether only this machine can reach it.
pub fn is_loopback_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => bare.eq_ignore_ascii_case("localhost"),
    }
}

/// The name in `name:port` or `[address]:port`.
fn host_of(authority: &str) -> Option<&str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
        return is_port.then_some(address);
    }
    match authority.split_once(':') {
        Some((name, port)) if is_number(port) => Some(name),
        Some(_) => None,
        None => Some(authority),
    }
    .filter(|name| !name.is_empty())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(host: &str) -> AccessSettings {
        AccessSettings {
            state: PathBuf::new(),
            host: host.to_owned(),
            password: None,
            proxy: None,
            names: vec!["dash.example".to_owned()],
        }
    }

    #[test]
    fn a_name_that_nobody_listed_is_not_ours_wherever_it_leads() {
        let here = settings("127.0.0.1");
        for ours in [
            "127.0.0.1:9119",
            "localhost",
            "LOCALHOST:1",
            "[::1]:9119",
            "192.168.1.4:80",
            "dash.example",
            "DASH.example:443",
        ] {
            assert!(here.knows_name(ours), "{ours}");
        }
        for not_ours in [
            "evil.example",
            "evil.example:9119",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "dash.example.evil",
            "dash.example:x",
            "[::1",
            "[::1]x",
            "",
            ":9119",
            "a:b:c",
        ] {
            assert!(!here.knows_name(not_ours), "{not_ours}");
        }
    }

    #[test]
    fn an_address_that_others_reach_takes_a_password_or_a_proxy() {
        assert!(settings("127.0.0.1").is_open());
        assert!(settings("::1").is_open());
        assert!(settings("localhost").is_open());
        for open in ["0.0.0.0", "::", "192.168.1.4", "dash.example", ""] {
            assert!(!settings(open).is_open(), "{open}");
            let mut with = settings(open);
            with.password = Some(Secret::new("x"));
            assert!(with.is_open());
        }
    }
}
