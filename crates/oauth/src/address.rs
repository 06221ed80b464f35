//! The addresses that a login may go to.

use std::net::IpAddr;

use reqwest::Url;

use crate::failure::{LoginError, legible};

const LONGEST_ADDRESS: usize = 2048;

/// Which addresses are taken from a server's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressRule {
    /// `https://`, and nowhere on this machine: a server elsewhere cannot send us to a port here.
    Remote,
    /// Also on this machine, where `http://` is enough: for servers that are on it themselves.
    OnThisMachine,
}

impl AddressRule {
    /// The rule for whatever a server at this address points to.
    pub(crate) fn of_server(server: &Url) -> Self {
        match is_on_this_machine(server) {
            true => Self::OnThisMachine,
            false => Self::Remote,
        }
    }

    pub(crate) fn check(self, what: &'static str, text: &str) -> Result<Url, LoginError> {
        let refused = |why| LoginError::Address {
            what,
            address: legible(text),
            why,
        };
        if text.len() > LONGEST_ADDRESS {
            return Err(refused("it is too long"));
        }
        let url = Url::parse(text).map_err(|_| refused("it is none"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("it names no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a login"));
        }
        if url.fragment().is_some() {
            return Err(refused("it has a part behind a #"));
        }
        match (self, is_on_this_machine(&url), url.scheme()) {
            (Self::Remote, true, _) => Err(refused("it is on this machine, and the server is not")),
            (_, _, "https") | (Self::OnThisMachine, true, "http") => Ok(url),
            _ => Err(refused("it does not begin with https://")),
        }
    }
}

/// The address of a server that the operator wrote.
pub(crate) fn server(text: &str) -> Result<Url, LoginError> {
    AddressRule::OnThisMachine.check("the server's url", text)
}

/// Whether somebody can log in to a server at this address: `https://`, or on this machine.
pub fn check_server_address(text: &str) -> Result<(), LoginError> {
    server(text).map(drop)
}

fn is_on_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_end_matches('.');
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_points_to_https_elsewhere() {
        for good in [
            "https://login.example.org/tenant?x=1",
            "HTTPS://Login.Example.org",
        ] {
            assert!(AddressRule::Remote.check("it", good).is_ok(), "{good}");
        }
        for bad in [
            "http://login.example.org/",
            "https://127.0.0.1/token",
            "https://localhost/token",
            "https://a.localhost./token",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://0.0.0.0/",
            "https://user:word@login.example.org/",
            "https://login.example.org/#part",
            "file:///etc/passwd",
            "login.example.org",
            "",
        ] {
            assert!(AddressRule::Remote.check("it", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_on_this_machine_may_point_to_it() {
        let here = server("http://127.0.0.1:8080/mcp").expect("a test's server");
        assert_eq!(AddressRule::of_server(&here), AddressRule::OnThisMachine);
        let rule = AddressRule::OnThisMachine;
        assert!(rule.check("it", "http://localhost:9/token").is_ok());
        assert!(rule.check("it", "http://login.example.org/token").is_err());
        assert!(server("http://mcp.example.org/mcp").is_err());
    }
}
