//! What a hostile command tries. It is told of every door there is.

use super::lab::{SECRET, Setup, story};

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_other_way_out() {
    let test = "there_is_no_other_way_out";
    story(test, Setup::default(), async |lab| {
        let port = lab.origin.at.port();
        // Every kind of socket a process can ask for; addresses lead nowhere, for want of a route.
        let probe = format!(
            r#"
import socket as s
def tries(name, act):
    try: act(); print("OPEN", name)
    except OSError as error: print("held", name)
def connect(family, kind, to):
    def act():
        c = s.socket(family, kind); c.settimeout(3); c.connect(to); c.send(b"x")
        if kind == s.SOCK_DGRAM: c.send(b"x"); c.recv(1)
    return act
tries("host port", connect(s.AF_INET, s.SOCK_STREAM, ("127.0.0.1", {port})))
tries("v4", connect(s.AF_INET, s.SOCK_STREAM, ("192.0.2.1", 443)))
tries("v6", connect(s.AF_INET6, s.SOCK_STREAM, ("2001:db8::1", 443)))
tries("link local", connect(s.AF_INET6, s.SOCK_STREAM, ("fe80::1%lo", 443)))
tries("udp", connect(s.AF_INET, s.SOCK_DGRAM, ("192.0.2.1", 53)))
tries("dns on loopback", connect(s.AF_INET, s.SOCK_DGRAM, ("127.0.0.53", 53)))
tries("broadcast", connect(s.AF_INET, s.SOCK_DGRAM, ("255.255.255.255", 9)))
tries("raw", lambda: s.socket(s.AF_INET, s.SOCK_RAW, s.IPPROTO_ICMP))
tries("packet", lambda: s.socket(17, s.SOCK_RAW, 3))
tries("ping", connect(s.AF_INET, s.SOCK_DGRAM, ("192.0.2.1", 0)))
tries("vsock", connect(40, s.SOCK_STREAM, (2, 1024)))
tries("name", lambda: s.getaddrinfo("example.com", 443))
for path in ("\0/tmp/dbus-test", "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
    tries(repr(path), connect(s.AF_UNIX, s.SOCK_STREAM, path))
"#
        );
        let said = lab.python("bob", &probe).await;
        assert!(said.out.lines().count() >= 16, "{}", said.out);
        assert!(!said.out.contains("OPEN"), "{}", said.out);
        assert!(lab.record.entries().is_empty(), "nothing of it was the proxy's");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abstract_socket_of_the_host_is_out_of_reach() {
    let test = "an_abstract_socket_of_the_host_is_out_of_reach";
    story(test, Setup::default(), async |lab| {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("hermetic-test-{}", std::process::id());
        let at = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let _listening = std::os::unix::net::UnixListener::bind_addr(&at).unwrap();
        let probe = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0{name}'); print('OPEN')\n\
             except OSError as e: print('held')"
        );
        assert_eq!(lab.python("bob", &probe).await.out, "held\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_uses_anothers_hosts_or_credentials() {
    let test = "nobody_uses_anothers_hosts_or_credentials";
    story(test, Setup::default(), async |lab| {
        let url = lab.url("hers.test", "echo");
        let alice = lab.run("alice", &format!("curl -sS {url} >/dev/null")).await;
        assert_eq!(alice.code, 0, "{}", alice.out);
        assert_eq!(lab.origin.heads().len(), 1);

        // Bob knows the host, the placeholder, and both names for the origin.
        let port = lab.origin.at.port();
        let tries = format!(
            "env | grep -c API_TOKEN; \
             curl -sSk -H 'authorization: Bearer hermetic-placeholder-api_token' {url}; \
             curl -sSk -H 'Host: hers.test' -H 'authorization: Bearer hermetic-placeholder-api_token' {}; \
             curl -sSk --connect-to hers.test:{port}:origin.test:{port} {url}; \
             curl -sSk --proxy-header 'X-Conversation: agent:main:telegram:dm:alice' {url}",
            lab.url("origin.test", "echo")
        );
        let bob = lab.run("bob", &tries).await;
        assert!(bob.out.starts_with("0\n"), "{}", bob.out);
        assert!(!bob.out.contains(SECRET), "{}", bob.out);
        let after: Vec<_> = lab.origin.heads().split_off(1);
        assert!(after.iter().all(|head| !head.contains(SECRET)), "{after:?}");
        assert!(after.iter().all(|head| !head.contains("Host: hers.test:")), "{after:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_bytes_cost_their_own_connection_only() {
    let test = "odd_bytes_cost_their_own_connection_only";
    story(test, Setup::default(), async |lab| {
        let port = lab.origin.at.port();
        let probe = format!(
            r#"
import socket, random
random.seed(7)
target = b"origin.test:{port}"
heads = [
    b"GET http://origin.test:{port}/hello HTTP/1.1\r\nHost: origin.test:{port}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://elsewhere.test/ HTTP/1.1\r\n\r\n",
    b"CONNECT " + target + b" HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n",
    b"CONNECT " + target + b"@elsewhere.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT " + target + b"\x00.elsewhere.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + ({port}).to_bytes(2, "big"),
    b"\x04\x01" + ({port}).to_bytes(2, "big") + b"\x7f\x00\x00\x01\x00",
    b"\x16\x03\x01" + bytes(100), b"A" * 200000, b"\r\n" * 50000, b"\x00",
] + [random.randbytes(random.randrange(1, 3000)) for _ in range(60)]
for head in heads:
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    try:
        s.sendall(head); s.shutdown(socket.SHUT_WR); answer = s.recv(65536)
    except OSError: answer = b""
    if b" 200 OK" in answer and b"hello" in answer: print("OPEN", head[:80])
    s.close()
print("done")
"#
        );
        assert_eq!(lab.python("bob", &probe).await.out, "done\n");
        let requests = lab.origin.heads();
        assert!(requests.is_empty(), "{requests:?}");
        let url = lab.url("origin.test", "hello");
        assert_eq!(lab.run("bob", &format!("curl -sS {url}")).await.out, "hello\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_connections_is_bounded_and_goes_away() {
    let test = "a_crowd_of_connections_is_bounded_and_goes_away";
    story(test, Setup::default(), async |lab| {
        let probe = r#"
import socket, resource
socks = []
try:
    for _ in range(900):
        s = socket.socket(); s.settimeout(0.2)
        s.connect(("127.0.0.1", 3128)); s.send(b"C"); socks.append(s)
except OSError: pass
print(100 < len(socks) < 500)
"#;
        assert_eq!(lab.python("bob", probe).await.out, "True\n");
        let url = lab.url("origin.test", "hello");
        assert_eq!(
            lab.run("alice", &format!("curl -sS {url}")).await.out,
            "hello\n"
        );
        let again = format!("until curl -sS -m 5 {url} 2>/dev/null; do sleep 0.1; done");
        assert_eq!(lab.run("bob", &again).await.out, "hello\n");
    })
    .await;
}
