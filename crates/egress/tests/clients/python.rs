//! Python and the libraries most of its programs use.

use super::{LONG, OK, find, library, listen, out, tls_origin};
use crate::lab::local;
use crate::lab::origin::Origin;
use crate::lab::tls::Identity;

#[tokio::test]
async fn python_reaches_what_is_allowed() {
    let Some(python) = find("python_reaches_what_is_allowed", "python3") else {
        return;
    };
    let (plain, _) = Origin::answering(OK).await;
    let identity = Identity::of("secure.test");
    let secure = tls_origin(&identity).await;
    let rules = [
        local("plain.test", plain.at),
        local("secure.test", secure.at),
    ];
    let proxy = listen(&rules, Vec::new(), Some(&identity)).await;
    let script = "import sys, urllib.request\n\
                  for url in sys.argv[1:]:\n    print(urllib.request.urlopen(url, timeout=20).read().decode())";
    let urls = [
        format!("http://plain.test:{}/", plain.at.port()),
        format!("https://secure.test:{}/", secure.at.port()),
    ];
    let output = proxy
        .run(&python, &["-c", script, &urls[0], &urls[1]])
        .await;
    assert_eq!(out(&output), "hello\nhello\n");
    let refused = out(&proxy
        .run(&python, &["-c", script, "https://evil.test/"])
        .await);
    assert!(refused.contains("403"), "{refused}");
}

/// What each library's users write; the environment alone tells it where to go.
const LIBRARIES: [(&str, &str); 3] = [
    (
        "requests",
        "import requests, sys\nfor url in sys.argv[1:]: print(requests.get(url).text)",
    ),
    (
        "httpx",
        "import httpx, sys\nfor url in sys.argv[1:]: print(httpx.get(url).text)",
    ),
    (
        "aiohttp",
        "import aiohttp, asyncio, sys\n\
         async def main():\n\
         \x20   async with aiohttp.ClientSession(trust_env=True) as session:\n\
         \x20       for url in sys.argv[1:]:\n\
         \x20           async with session.get(url) as answer: print(await answer.text())\n\
         asyncio.run(main())",
    ),
];

#[tokio::test]
async fn pythons_libraries_find_proxy_and_certificates() {
    let test = "pythons_libraries_find_proxy_and_certificates";
    let Some(python) = find(test, "python3") else {
        return;
    };
    let (plain, _) = Origin::answering(OK).await;
    let identity = Identity::of("secure.test");
    let secure = tls_origin(&identity).await;
    let rules = [
        local("plain.test", plain.at),
        local("secure.test", secure.at),
    ];
    let proxy = listen(&rules, Vec::new(), Some(&identity)).await;
    let urls = [
        format!("http://plain.test:{}/", plain.at.port()),
        format!("https://secure.test:{}/", secure.at.port()),
    ];
    for (name, script) in LIBRARIES {
        let Some(path) = library(test, &python, name).await else {
            continue;
        };
        let variables = [("PYTHONPATH", path.as_str())];
        let words = ["-c", script, &urls[0], &urls[1]];
        let said = proxy.run_with(&variables, LONG, &python, &words).await;
        assert_eq!(out(&said), "hello\nhello\n", "{name}");
        let words = ["-c", script, "https://evil.test/"];
        let refused = proxy.run_with(&variables, LONG, &python, &words).await;
        assert!(out(&refused).contains("403"), "{name}: {}", out(&refused));
    }
}

#[tokio::test]
async fn pip_downloads_from_an_index() {
    let test = "pip_downloads_from_an_index";
    let Some(python) = find(test, "python3") else {
        return;
    };
    let (index, heads) = Origin::answering(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>\n</html>\n",
    )
    .await;
    let proxy = listen(&[local("index.test", index.at)], Vec::new(), None).await;
    let has_pip = proxy.run(&python, &["-m", "pip", "--version"]).await;
    if !has_pip.status.success() {
        eprintln!("SKIP: {test}: pip is not installed");
        return;
    }
    let url = format!("http://index.test:{}/simple", index.at.port());
    let arguments = [
        "-m",
        "pip",
        "download",
        "--retries",
        "0",
        "--no-cache-dir",
        "--index-url",
        &url,
        "--trusted-host",
        "index.test",
        "--disable-pip-version-check",
        "nothing-of-this-name",
    ];
    let output = proxy.run(&python, &arguments).await;
    // An empty page is a complete answer: pip has asked the index and learnt that it has nothing.
    assert!(
        out(&output).contains("No matching distribution found"),
        "{}",
        out(&output)
    );
    let heads = heads.lock().unwrap();
    assert!(
        heads
            .iter()
            .any(|head| head.starts_with("GET /simple/nothing-of-this-name/ ")),
        "{heads:?}"
    );
}
