//! What a pod reaches: routes, the cluster's API, DNS, metadata services, its node.
//!
//! A connection that is taken counts as an answer, one that is refused does not: networks that enforce a
//! policy refuse in the same way. A route, and an interface without one, is counted even if nothing answers
//! over it, because nobody can knock everywhere.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use super::interfaces;

pub(super) const ROUTE: &str = "route";
const API: &str = "api";
const DNS: &str = "dns";
const METADATA: &str = "metadata";
const NODE: &str = "node";

/// Within one cluster an answer takes a few milliseconds; a dropped packet is given this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// AWS and most others, AWS over IPv6, Alibaba, Azure's wire server, EKS' pod identities, ECS.
const METADATA_PLACES: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
];
/// Where a cache of DNS on the node listens, by convention.
const NODE_DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 20, 10));
/// What a node listens on: the kubelet, ssh, and what is often published there.
const NODE_PORTS: [u16; 5] = [10250, 22, 443, 80, 6443];

/// "What is 'kubernetes'?": a question that any DNS server answers, if only by an error.
const QUESTION: &[u8] =
    b"\x17\x2a\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x00\x00\x01\x00\x01";

/// One thing that is open, by the name under which an operator accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReachedPlace {
    pub(super) risk: &'static str,
    what: String,
}

/// Whom to knock at, and which ways there are.
#[derive(Debug, Default)]
pub(super) struct PodSurroundings {
    interfaces: BTreeSet<String>,
    knocks: BTreeSet<(&'static str, SocketAddr)>,
}

impl PodSurroundings {
    pub(super) fn of_this_pod(api: &[SocketAddr]) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        // Without this file nothing is known of routes, and doubt is a route.
        let routes = fs::read_to_string("/proc/net/route");
        let mut found = Self::of(
            routes.as_deref().unwrap_or("unknown unknown unknown"),
            &read("/proc/net/ipv6_route"),
            &read("/etc/resolv.conf"),
        );
        let own: Option<SocketAddr> = env::var("KUBERNETES_SERVICE_HOST")
            .ok()
            .zip(env::var("KUBERNETES_SERVICE_PORT").ok())
            .and_then(|(host, port)| Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?)));
        found.interfaces.extend(interfaces::open_ones());
        for place in api.iter().chain(&own) {
            found.knocks.insert((API, *place));
        }
        if let Some(SocketAddr::V4(own)) = own {
            // By convention the cluster's DNS is the tenth of the same services.
            let [a, b, c, _] = own.ip().octets();
            let dns = IpAddr::V4(Ipv4Addr::new(a, b, c, 10));
            found.knocks.insert((DNS, SocketAddr::new(dns, 53)));
        }
        found
    }

    fn of(routes: &str, routes6: &str, resolv: &str) -> Self {
        let mut found = Self::default();
        for line in routes.lines() {
            let mut fields = line.split_whitespace();
            let (name, _, gateway) = (fields.next(), fields.next(), fields.next());
            let Some(name) = name.filter(|name| !matches!(*name, "lo" | "Iface")) else {
                continue;
            };
            found.interfaces.insert(name.to_owned());
            let gateway = gateway.and_then(|hex| u32::from_str_radix(hex, 16).ok());
            if let Some(gateway) = gateway.filter(|gateway| *gateway != 0) {
                let octets = gateway.to_le_bytes();
                found.knock_at_node(IpAddr::from(octets));
            }
        }
        for line in routes6.lines() {
            let fields: Vec<_> = line.split_whitespace().collect();
            let Some(name) = fields.last().filter(|name| **name != "lo") else {
                continue;
            };
            found.interfaces.insert((*name).to_owned());
            let gateway = fields
                .get(4)
                .and_then(|hex| u128::from_str_radix(hex, 16).ok());
            if let Some(gateway) = gateway.filter(|gateway| *gateway != 0) {
                found.knock_at_node(IpAddr::from(Ipv6Addr::from(gateway)));
            }
        }
        let servers = resolv.lines().filter_map(|line| {
            let (word, server) = line.trim().split_once(char::is_whitespace)?;
            (word == "nameserver").then(|| server.trim().parse().ok())?
        });
        for server in servers.chain([NODE_DNS]) {
            found.knocks.insert((DNS, SocketAddr::new(server, 53)));
        }
        for place in METADATA_PLACES {
            found.knocks.insert((METADATA, SocketAddr::new(place, 80)));
        }
        found
    }

    fn knock_at_node(&mut self, node: IpAddr) {
        for port in NODE_PORTS {
            self.knocks.insert((NODE, SocketAddr::new(node, port)));
        }
    }

    /// All at once: an address that drops what comes costs a second.
    pub(super) fn look(&self) -> Vec<ReachedPlace> {
        let routes = self.interfaces.iter().map(|name| ReachedPlace {
            risk: ROUTE,
            what: name.clone(),
        });
        let mut found: Vec<_> = routes.collect();
        thread::scope(|scope| {
            let knocks: Vec<_> = self
                .knocks
                .iter()
                .map(|(risk, place)| (risk, place, scope.spawn(|| answers(risk, *place))))
                .collect();
            for (risk, place, knock) in knocks {
                // A knock that could not be made is taken for an answer.
                if knock.join().unwrap_or(true) {
                    found.push(ReachedPlace {
                        risk,
                        what: place.to_string(),
                    });
                }
            }
        });
        found
    }
}

fn answers(risk: &str, place: SocketAddr) -> bool {
    TcpStream::connect_timeout(&place, ANSWER_TIMEOUT).is_ok()
        || risk == DNS && answers_dns(place).is_some()
}

fn answers_dns(place: SocketAddr) -> Option<usize> {
    let any: IpAddr = match place {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(place).ok()?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    socket.send(QUESTION).ok()?;
    socket.recv(&mut [0; 512]).ok()
}

impl fmt::Display for ReachedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.risk, self.what)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const ROUTES6: &str = "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    fn at(found: &PodSurroundings, risk: &str) -> Vec<String> {
        let of_it = found.knocks.iter().filter(|(kind, _)| *kind == risk);
        of_it.map(|(_, place)| place.to_string()).collect()
    }

    #[test]
    fn routes_of_both_families_are_seen_and_the_gateway_is_knocked_at() {
        let found = PodSurroundings::of(ROUTES, ROUTES6, "");
        assert_eq!(
            found.interfaces.iter().collect::<Vec<_>>(),
            ["eth0", "eth1"]
        );
        assert!(at(&found, NODE).contains(&"192.168.1.1:10250".to_owned()));
    }

    #[test]
    fn loopback_alone_is_no_route() {
        let found =
            PodSurroundings::of("Iface Destination Gateway\n", "", "nameserver 127.0.0.1\n");
        assert!(found.interfaces.is_empty());
        assert!(at(&found, NODE).is_empty());
        assert!(at(&found, DNS).contains(&"127.0.0.1:53".to_owned()));
        assert!(at(&found, METADATA).contains(&"169.254.169.254:80".to_owned()));
    }

    #[test]
    fn routes_that_cannot_be_read_are_one() {
        let found = PodSurroundings::of("unknown unknown unknown", "", "");
        assert_eq!(found.interfaces.len(), 1);
    }

    #[test]
    fn who_takes_a_connection_or_answers_a_question_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let dns = server.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let (length, asker) = server.recv_from(&mut [0; 512]).unwrap();
            server.send_to(&QUESTION[..length], asker).unwrap();
        });
        let closed = {
            let gone = TcpListener::bind("127.0.0.1:0").unwrap();
            gone.local_addr().unwrap()
        };
        let found = PodSurroundings {
            interfaces: BTreeSet::new(),
            knocks: [(API, place), (DNS, dns), (NODE, closed)].into(),
        };
        let said: Vec<_> = found.look().iter().map(ToString::to_string).collect();
        assert_eq!(said, [format!("api ({place})"), format!("dns ({dns})")]);
        answering.join().unwrap();
    }
}
