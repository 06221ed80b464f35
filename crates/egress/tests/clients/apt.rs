//! apt and a mirror.

use tokio::io::AsyncWriteExt;

use super::{LONG, find, listen, out};
use crate::lab::local;
use crate::lab::origin::{Origin, head};

const PACKAGES: &str = "Package: hermetic-nothing\nVersion: 1\nArchitecture: all\n\
    Maintainer: Nobody <nobody@example.com>\nFilename: ./nothing.deb\nSize: 1\n\
    SHA256: 0000000000000000000000000000000000000000000000000000000000000000\n";

/// Names the index by its hash, as apt wants it; nobody signed it.
const RELEASE: &str = "Suite: test\nDate: Sun, 15 Nov 2026 00:00:00 UTC\nSHA256:\n \
    046405c86ff0865c473bee0c94b6a9d79b7e887a261cbfb1cc3e0c3510349cd2 200 Packages\n";

#[tokio::test]
async fn apt_updates_from_a_mirror() {
    let Some(apt) = find("apt_updates_from_a_mirror", "apt-get") else {
        return;
    };
    let mirror = Origin::start(|mut stream| async move {
        while let Some(head) = head(&mut stream).await {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match path.rsplit('/').next() {
                Some("Release") => ("200 OK", RELEASE),
                Some("Packages") => ("200 OK", PACKAGES),
                _ => ("404 No", ""),
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    let proxy = listen(&[local("deb.test", mirror.at)], Vec::new(), None).await;
    let folder = proxy.folder.path().display().to_string();
    for name in ["lists/partial", "cache/partial", "parts"] {
        std::fs::create_dir_all(proxy.path(name)).unwrap();
    }
    let line = format!(
        "deb [trusted=yes] http://deb.test:{}/ ./\n",
        mirror.at.port()
    );
    std::fs::write(proxy.path("sources.list"), line).unwrap();
    std::fs::write(proxy.path("status"), "").unwrap();
    let options = [
        format!("Dir::Etc::sourcelist={folder}/sources.list"),
        format!("Dir::Etc::sourceparts={folder}/parts"),
        format!("Dir::Etc::parts={folder}/parts"),
        "Dir::Etc::main=/dev/null".to_owned(),
        format!("Dir::State::lists={folder}/lists"),
        format!("Dir::State::status={folder}/status"),
        format!("Dir::Cache={folder}/cache"),
        "APT::Sandbox::User=".to_owned(),
    ];
    let mut words: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    words.push("update");
    let told = proxy.run_for(LONG, &apt, &words).await;
    assert!(told.status.success(), "{}", out(&told));
    let fetched = |line: &str| line.starts_with("Get:") && line.contains(" Packages ");
    assert!(out(&told).lines().any(fetched), "{}", out(&told));
}
