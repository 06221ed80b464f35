//! The addresses that a login may go to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::failure::{LoginError, legible};

const LONGEST_ADDRESS: usize = 2048;

/// Which addresses are taken from a server's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressRule {
    /// `https://`, and nowhere on this machine nor at a private address: a server elsewhere cannot send us to a
    /// port here, nor into the network around us. What a name leads to is looked at when it is reached.
    Remote,
    /// `https://` and nowhere on this machine: for servers that the operator wrote with a private address.
    Private,
    /// Also on this machine, where `http://` is enough: for servers that are on it themselves.
    OnThisMachine,
}

impl AddressRule {
    /// The rule for whatever a server at this address points to.
    pub(crate) fn of_server(server: &Url) -> Self {
        match literal(server) {
            _ if is_on_this_machine(server) => Self::OnThisMachine,
            Some(address) if !is_public(address) => Self::Private,
            _ => Self::Remote,
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
            (Self::Remote | Self::Private, true, _) => {
                Err(refused("it is on this machine, and the server is not"))
            }
            (Self::Remote, ..) if literal(&url).is_some_and(|address| !is_public(address)) => {
                Err(refused("it is in a private network, and the server is not"))
            }
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
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    match literal(url) {
        Some(address) => address.is_loopback() || address.is_unspecified(),
        None => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// The address that stands in place of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Whether an address is one of the open internet's. What is not known to be is not.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Translated ones lead to the address inside.
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = segments {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let is_tunnel = segments[0] == 0x2002 || segments[0] == 0x2001 && segments[1] < 0x0200;
    segments[0] & 0xe000 == 0x2000 && !is_tunnel && segments[..2] != [0x2001, 0x0db8]
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
            "https://10.1.2.3/token",
            "https://172.31.0.1/",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://2130706433/",
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
    fn a_server_in_a_private_network_may_point_into_it_and_not_to_this_machine() {
        let inside = server("https://10.0.0.7/mcp").expect("a server");
        let rule = AddressRule::of_server(&inside);
        assert_eq!(rule, AddressRule::Private);
        assert!(rule.check("it", "https://10.0.0.8/token").is_ok());
        assert!(rule.check("it", "https://127.0.0.1/token").is_err());
        for public in [
            "8.8.8.8",
            "2606:4700::1111",
            "192.0.1.1",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
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
