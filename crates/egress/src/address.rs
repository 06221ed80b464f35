//! Which resolved addresses may be dialled.
//!
//! A name on the allowlist can resolve to anything its owner likes: to our router, to a cloud's
//! metadata service, to a service on this machine. So after resolution every address of the answer
//! must be public, unless a rule names that host *and* the range.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// Why an address is not public.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotPublic {
    #[error("private")]
    Private,
    #[error("loopback")]
    Loopback,
    #[error("link-local")]
    LinkLocal,
    #[error("cloud metadata")]
    Metadata,
    #[error("carrier-grade NAT")]
    SharedSpace,
    #[error("benchmarking")]
    Benchmarking,
    #[error("documentation")]
    Documentation,
    #[error("multicast")]
    Multicast,
    #[error("broadcast")]
    Broadcast,
    #[error("\"this network\"")]
    ThisNetwork,
    #[error("reserved")]
    Reserved,
    #[error("IPv4 inside IPv6")]
    EmbeddedV4,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{address} is not a public address ({reason})")]
pub struct AddressRefused {
    pub address: IpAddr,
    pub reason: NotPublic,
}

/// `Ok` where the address is public, or `ranges` (those of the rule that named the host) hold it.
///
/// A metadata service hands out the machine's own credentials, so only a range of exactly that
/// address opens it.
pub fn permit(address: IpAddr, ranges: &[IpNet]) -> Result<(), AddressRefused> {
    let Err(reason) = public(address) else {
        return Ok(());
    };
    let named = |range: &&IpNet| range.contains(&address);
    let exception = ranges
        .iter()
        .filter(named)
        .any(|range| reason != NotPublic::Metadata || range.prefix_len() == range.max_prefix_len());
    if exception {
        Ok(())
    } else {
        Err(AddressRefused { address, reason })
    }
}

pub fn public(address: IpAddr) -> Result<(), NotPublic> {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// First match counts.
const SPECIAL_V4: &[(Ipv4Net, NotPublic)] = &[
    // Metadata: AWS, Azure, Google and most others; AWS containers; Azure's wire server, which
    // has a public address; Alibaba; Oracle.
    (v4(169, 254, 169, 254, 32), NotPublic::Metadata),
    (v4(169, 254, 170, 2, 32), NotPublic::Metadata),
    (v4(169, 254, 170, 23, 32), NotPublic::Metadata),
    (v4(168, 63, 129, 16, 32), NotPublic::Metadata),
    (v4(100, 100, 100, 200, 32), NotPublic::Metadata),
    (v4(192, 0, 0, 192, 32), NotPublic::Metadata),
    (v4(0, 0, 0, 0, 8), NotPublic::ThisNetwork),
    (v4(10, 0, 0, 0, 8), NotPublic::Private),
    (v4(100, 64, 0, 0, 10), NotPublic::SharedSpace),
    (v4(127, 0, 0, 0, 8), NotPublic::Loopback),
    (v4(169, 254, 0, 0, 16), NotPublic::LinkLocal),
    (v4(172, 16, 0, 0, 12), NotPublic::Private),
    (v4(192, 0, 0, 0, 24), NotPublic::Reserved),
    (v4(192, 0, 2, 0, 24), NotPublic::Documentation),
    (v4(192, 88, 99, 0, 24), NotPublic::Reserved),
    (v4(192, 168, 0, 0, 16), NotPublic::Private),
    (v4(198, 18, 0, 0, 15), NotPublic::Benchmarking),
    (v4(198, 51, 100, 0, 24), NotPublic::Documentation),
    (v4(203, 0, 113, 0, 24), NotPublic::Documentation),
    (v4(224, 0, 0, 0, 4), NotPublic::Multicast),
    (v4(255, 255, 255, 255, 32), NotPublic::Broadcast),
    (v4(240, 0, 0, 0, 4), NotPublic::Reserved),
];

const SPECIAL_V6: &[(Ipv6Net, NotPublic)] = &[
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128),
        NotPublic::Metadata,
    ),
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128),
        NotPublic::Metadata,
    ),
    (
        v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
        NotPublic::Metadata,
    ),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), NotPublic::Loopback),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), NotPublic::ThisNetwork),
    // Mapped, compatible and translated forms of IPv4 addresses; 6to4 and Teredo carry one too.
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), NotPublic::EmbeddedV4),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), NotPublic::EmbeddedV4),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), NotPublic::EmbeddedV4),
    (
        v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
        NotPublic::EmbeddedV4,
    ),
    (
        v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        NotPublic::EmbeddedV4,
    ),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), NotPublic::EmbeddedV4),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), NotPublic::EmbeddedV4),
    (
        v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48),
        NotPublic::Benchmarking,
    ),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        NotPublic::Documentation,
    ),
    (
        v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        NotPublic::Documentation,
    ),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), NotPublic::Reserved),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), NotPublic::Private),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), NotPublic::LinkLocal),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), NotPublic::Private),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), NotPublic::Multicast),
];

/// The only IPv6 space that has been given out to the public.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

fn public_v4(address: Ipv4Addr) -> Result<(), NotPublic> {
    let special = SPECIAL_V4.iter().find(|(net, _)| net.contains(&address));
    special.map_or(Ok(()), |&(_, reason)| Err(reason))
}

fn public_v6(address: Ipv6Addr) -> Result<(), NotPublic> {
    match SPECIAL_V6.iter().find(|(net, _)| net.contains(&address)) {
        Some(&(_, reason)) => Err(reason),
        None if GLOBAL_UNICAST.contains(&address) => Ok(()),
        None => Err(NotPublic::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(text: &str) -> Result<(), NotPublic> {
        public(text.parse().unwrap())
    }

    #[test]
    fn special_addresses_are_refused_for_their_reason() {
        use NotPublic::*;
        for (text, reason) in [
            ("0.0.0.0", ThisNetwork),
            ("0.1.2.3", ThisNetwork),
            ("10.0.0.1", Private),
            ("100.64.0.1", SharedSpace),
            ("100.127.255.255", SharedSpace),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("169.254.1.1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("168.63.129.16", Metadata),
            ("100.100.100.200", Metadata),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.0.0.8", Reserved),
            ("192.0.2.1", Documentation),
            ("192.168.1.1", Private),
            ("198.18.0.1", Benchmarking),
            ("198.19.255.255", Benchmarking),
            ("198.51.100.7", Documentation),
            ("203.0.113.9", Documentation),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Broadcast),
            ("::", ThisNetwork),
            ("::1", Loopback),
            ("::ffff:8.8.8.8", EmbeddedV4),
            ("::ffff:127.0.0.1", EmbeddedV4),
            ("::127.0.0.1", EmbeddedV4),
            ("::ffff:0:127.0.0.1", EmbeddedV4),
            ("64:ff9b::a00:1", EmbeddedV4),
            ("64:ff9b:1::1", EmbeddedV4),
            ("2002:7f00:1::1", EmbeddedV4),
            ("2001:0:1::1", EmbeddedV4),
            ("2001:db8::1", Documentation),
            ("3fff::1", Documentation),
            ("2001:2::1", Benchmarking),
            ("2001:10::1", Reserved),
            ("fc00::1", Private),
            ("fd12::1", Private),
            ("fd00:ec2::254", Metadata),
            ("fe80::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("100::1", Reserved),
            ("4000::1", Reserved),
            ("5f00::1", Reserved),
        ] {
            assert_eq!(judged(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00::1",
            "2001:4860::8888",
        ] {
            assert_eq!(judged(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_range_opens_only_what_it_names() {
        let ranges: Vec<IpNet> = [
            "10.2.0.0/16".parse().unwrap(),
            "169.254.0.0/16".parse().unwrap(),
        ]
        .into();
        assert!(permit("10.2.3.4".parse().unwrap(), &ranges).is_ok());
        assert!(permit("10.3.3.4".parse().unwrap(), &ranges).is_err());
        assert!(permit("169.254.9.9".parse().unwrap(), &ranges).is_ok());
        assert!(permit("169.254.169.254".parse().unwrap(), &ranges).is_err());
        let exact = ["169.254.169.254/32".parse().unwrap()];
        assert!(permit("169.254.169.254".parse().unwrap(), &exact).is_ok());
        assert!(permit("::ffff:10.2.3.4".parse().unwrap(), &ranges).is_err());
    }

    proptest! {
        #[test]
        fn no_ipv6_form_of_an_ipv4_address_is_public(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let low = u128::from(bits);
            for prefix in [0u128, 0xffff << 32, 0xffff << 48, 0x64_ff9b << 96] {
                prop_assert!(public(Ipv6Addr::from(prefix | low).into()).is_err());
            }
            let sixtofour = (0x2002u128 << 112) | (low << 80);
            prop_assert!(public(Ipv6Addr::from(sixtofour).into()).is_err());
            prop_assert!(public(v4.to_ipv6_mapped().into()).is_err());
        }

        #[test]
        fn agrees_with_std_where_std_has_an_opinion(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
                || v4.is_documentation() || v4.is_multicast() || v4.is_unspecified() {
                prop_assert!(public(v4.into()).is_err());
            }
        }
    }
}
