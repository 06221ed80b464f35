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

/// The error of an address that may not be dialled.
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
        // Whatever is given out one day is refused until somebody has looked at it.
        None => Err(NotPublic::Reserved),
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
