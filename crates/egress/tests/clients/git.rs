//! git over https.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{find, listen, out};
use crate::lab::local;
use crate::lab::origin::head;
use crate::lab::tls::Identity;

#[tokio::test]
async fn git_clones_over_https() {
    let Some(git) = find("git_clones_over_https", "git") else {
        return;
    };
    let identity = Identity::of("git.test");
    let folder = tempfile::tempdir().unwrap();
    if !bare_repository(&git, folder.path()).await {
        eprintln!("SKIP: git_clones_over_https: git cannot make a repository here");
        return;
    }
    let root = Arc::new(folder.path().join("repo.git"));
    let origin = identity
        .serve(move |mut stream| {
            let root = root.clone();
            async move {
                while let Some(head) = head(&mut stream).await {
                    let path = head.split(' ').nth(1).unwrap_or_default();
                    let path = path.split('?').next().unwrap_or_default();
                    let file = path.strip_prefix("/repo.git/").map(|path| root.join(path));
                    // The dumb protocol: plain files, as any web server would give them.
                    let answer = match file.and_then(|file| std::fs::read(file).ok()) {
                        Some(body) => {
                            let head = format!(
                                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                                body.len()
                            );
                            [head.into_bytes(), body].concat()
                        }
                        None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                    };
                    let _ = stream.write_all(&answer).await;
                    let _ = stream.flush().await;
                }
            }
        })
        .await;
    let proxy = listen(&[local("git.test", origin.at)], Vec::new(), Some(&identity)).await;
    let url = format!("https://git.test:{}/repo.git", origin.at.port());
    let output = proxy.run(&git, &["clone", "-q", &url, "clone"]).await;
    assert!(output.status.success(), "{}", out(&output));
    assert_eq!(
        std::fs::read_to_string(proxy.path("clone/file")).unwrap(),
        "contents\n"
    );
}

async fn bare_repository(git: &Path, folder: &Path) -> bool {
    std::fs::write(folder.join("file"), "contents\n").unwrap();
    let steps: [&[&str]; 5] = [
        &["init", "-q", "-b", "main", "work"],
        &["-C", "work", "add", "file"],
        &[
            "-C",
            "work",
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@t.test",
            "commit",
            "-qm",
            "one",
        ],
        &["clone", "-q", "--bare", "work", "repo.git"],
        &["-C", "repo.git", "update-server-info"],
    ];
    for (n, step) in steps.iter().enumerate() {
        let mut command = Command::new(git);
        command
            .args(*step)
            .current_dir(folder)
            .env("HOME", folder)
            .env("GIT_CONFIG_NOSYSTEM", "1");
        if !command
            .stdout(Stdio::null())
            .status()
            .await
            .is_ok_and(|status| status.success())
        {
            return false;
        }
        if n == 0 {
            std::fs::rename(folder.join("file"), folder.join("work/file")).unwrap();
        }
    }
    true
}
