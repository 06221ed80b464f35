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
