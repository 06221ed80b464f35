use super::*;

fn read(text: &str) -> UpstreamProxy {
    UpstreamProxy::parse(text).unwrap()
}

#[test]
fn an_address_is_read_in_every_usual_spelling() {
    for (text, shown) in [
        ("http://proxy.corp:3128", "http://proxy.corp:3128"),
        ("proxy.corp:3128", "http://proxy.corp:3128"),
        ("HTTP://Proxy.Corp:3128/", "http://proxy.corp:3128"),
        ("http://proxy", "http://proxy:80"),
        ("https://proxy", "https://proxy:443"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
        ("http://u:p@ss@proxy:1", "http://proxy:1"),
    ] {
        assert_eq!(read(text).to_string(), shown, "{text}");
    }
}

#[test]
fn what_is_no_address_of_a_proxy_is_said_without_repeating_it() {
    for text in [
        "",
        "http://",
        "http://:3128",
        "socks5://u:hunter2@proxy:1080",
        "http://u:hunter2@proxy:0",
        "http://u:hunter2@proxy:+1",
        "http://u:hunter2@proxy:99999",
        "http://u:hunter2@pro xy:1",
        "http://u:hunter2@proxy:1/path",
        "http://u:hunter2@[::1:1",
        "http://u:hunter2%4@proxy:1",
        "http://u:hunter2%0d%0a@proxy:1",
        "http://a%3Ab:hunter2@proxy:1",
    ] {
        let error = UpstreamProxy::parse(text).expect_err(text).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn the_login_is_decoded_and_never_printed() {
    let proxy = read("http://al%40corp:s%3Acret%2Fx@proxy:3128");
    assert_eq!(
        proxy.authorization().unwrap().expose(),
        format!("Basic {}", STANDARD.encode("al@corp:s:cret/x"))
    );
    let shown = format!("{proxy} {proxy:?} {:?}", proxy.login());
    assert!(
        !shown.contains("s:cret") && !shown.contains("al@corp"),
        "{shown}"
    );
    let secrets = proxy.secrets();
    let texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
    assert!(
        texts.contains(&"s:cret/x") && texts.contains(&"s%3Acret%2Fx"),
        "every spelling that a log could hold"
    );
    assert!(read("http://proxy:1").secrets().is_empty());
}

#[test]
fn this_machine_is_never_reached_through_it() {
    let proxy = read("http://proxy:3128");
    for here in [
        "localhost",
        "LOCALHOST",
        "a.localhost",
        "localhost.",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
    ] {
        assert!(!proxy.serves(here, 80), "{here}");
    }
    for elsewhere in ["example.org", "notlocalhost", "10.0.0.1", "é"] {
        assert!(proxy.serves(elsewhere, 80), "{elsewhere}");
    }
}

/// Listens on loopback and tells the first head of each connection.
#[cfg(feature = "client")]
fn listener() -> (
    std::net::SocketAddr,
    std::sync::mpsc::Receiver<(std::net::SocketAddr, String)>,
) {
    use std::io::{BufRead as _, BufReader, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            let head: Vec<_> = lines
                .by_ref()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let _ = tell.send((at, head.join("\n")));
            let no = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = (&stream).write_all(no);
        }
    });
    (at, heads)
}

#[cfg(feature = "client")]
#[tokio::test]
async fn our_client_goes_through_it_with_its_login_and_past_it_where_that_is_said() {
    let (at, heads) = listener();
    let (direct, direct_heads) = listener();
    let proxy = read(&format!("http://cl%40rk:pass%2Fword@{at}"))
        .except(ProxyExceptions::parse("direct.test"));
    let client = reqwest::Client::builder()
        .no_proxy()
        .proxy(proxy.for_client())
        .resolve("direct.test", direct)
        .build()
        .unwrap();
    let login = format!("Basic {}", STANDARD.encode("cl@rk:pass/word"));
    let has_login = |head: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .any(|(name, value)| name.eq_ignore_ascii_case("proxy-authorization") && value == login)
    };
    let _ = client.get("http://chat.test/x").send().await;
    let (_, head) = heads.recv().unwrap();
    assert!(head.starts_with("GET http://chat.test/x "), "{head}");
    assert!(has_login(&head), "{head}");
    // Websockets begin as this too.
    let failed = client.get("https://chat.test/x").send().await.unwrap_err();
    let (_, head) = heads.recv().unwrap();
    assert!(head.starts_with("CONNECT chat.test:443 "), "{head}");
    assert!(has_login(&head), "{head}");
    let told = format!("{failed:?} {client:?}");
    assert!(
        !told.contains("pass/word") && !told.contains("pass%2Fword"),
        "{told}"
    );
    let _ = client
        .get(format!("http://direct.test:{}/y", direct.port()))
        .send()
        .await;
    let (_, head) = direct_heads.recv().unwrap();
    assert!(head.starts_with("GET /y "), "{head}");
    assert!(!has_login(&head), "{head}");
    assert!(heads.try_recv().is_err(), "nothing else went through it");
}
