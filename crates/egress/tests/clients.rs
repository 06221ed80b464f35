//! Real programs through the stand-alone listener, to origins on loopback.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermetic_egress::{
    CertificateAuthority, Conversation, Credential, Limits, Proxy, Roots, Rules, RulesText, Trust,
    sandbox_env, serve,
};
use hermetic_types::{ConversationKey, Secret};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lab::origin::{Origin, head};
use crate::lab::tls::Identity;
use crate::lab::{Journal, Liar, PATIENCE, local};

/// For programs that take long to get going.
const LONG: Duration = Duration::from_secs(120);

struct Listening {
    at: SocketAddr,
    stop: CancellationToken,
    folder: tempfile::TempDir,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn listen(
    rules: &[String],
    credentials: Vec<Credential>,
    trusted: Option<&Identity>,
) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::new(
        limits.clone(),
        Arc::new(Liar::default()),
        Arc::new(Journal::default()),
    );
    let mut bundle = String::new();
    if let Some(identity) = trusted {
        let authority = Arc::new(CertificateAuthority::open(folder.path()).unwrap());
        bundle = format!("{}{}", authority.certificate(), identity.pem);
        let roots = Roots::Only(vec![identity.certificate.clone()]);
        proxy = proxy.intercepting(authority, &roots).unwrap();
    }
    std::fs::write(folder.path().join("bundle.pem"), bundle).unwrap();
    let rules = Rules::compile(&RulesText::allowing(rules.iter().cloned())).unwrap();
    let conversation = Conversation::new(
        ConversationKey::new("standalone"),
        rules,
        credentials,
        &limits,
    );
    let stop = CancellationToken::new();
    tokio::spawn(serve(
        listener,
        proxy,
        conversation,
        stop.clone(),
        Duration::ZERO,
    ));
    Listening { at, stop, folder }
}

impl Listening {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with exactly the environment a sandbox would have.
    async fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        self.run_for(PATIENCE, program, arguments).await
    }

    async fn run_for(&self, patience: Duration, program: &Path, arguments: &[&str]) -> Output {
        let bundle = self.path("bundle.pem");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .envs(sandbox_env(
                self.at.port(),
                Trust::Bundle(&bundle.to_string_lossy()),
            ))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        timeout(patience, command.output())
            .await
            .expect("the program hangs")
            .unwrap()
    }
}

/// Where a program is, or a skip said aloud.
fn find(test: &str, program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIP: {test}: {program} is not installed");
    }
    found
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

async fn tls_origin(identity: &Identity) -> Origin {
    identity
        .serve(|mut stream| async move {
            while head(&mut stream).await.is_some() {
                if stream.write_all(OK.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
        })
        .await
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn curl_reaches_what_is_allowed_and_reads_why_not() {
    let Some(curl) = find("curl_reaches_what_is_allowed_and_reads_why_not", "curl") else {
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

    let url = format!("http://plain.test:{}/", plain.at.port());
    assert_eq!(out(&proxy.run(&curl, &["-sS", &url]).await), "hello");
    let url = format!("https://secure.test:{}/", secure.at.port());
    assert_eq!(out(&proxy.run(&curl, &["-sS", &url]).await), "hello");
    // The same name by SOCKS.
    let socks = format!("socks5h://127.0.0.1:{}", proxy.at.port());
    assert_eq!(
        out(&proxy.run(&curl, &["-sS", "--proxy", &socks, &url]).await),
        "hello"
    );

    let refused = out(&proxy.run(&curl, &["-sS", "http://evil.test/"]).await);
    assert!(
        refused.contains("hermetic egress allow evil.test:80"),
        "{refused}"
    );
    let refused = out(&proxy.run(&curl, &["-sS", "https://evil.test/"]).await);
    assert!(refused.contains("403"), "{refused}");
    let literal = format!("http://127.0.0.1:{}/", plain.at.port());
    let refused = out(&proxy.run(&curl, &["-sS", "--noproxy", "", &literal]).await);
    assert!(
        refused.contains("literal addresses are refused"),
        "{refused}"
    );
}

#[tokio::test]
async fn curl_uses_a_credential_it_never_holds() {
    let Some(curl) = find("curl_uses_a_credential_it_never_holds", "curl") else {
        return;
    };
    let identity = Identity::of("api.test");
    let origin = identity
        .serve(|mut stream| async move {
            while let Some(head) = head(&mut stream).await {
                let known = head.contains("Authorization: Bearer real-secret-value\r\n");
                let answer = if known {
                    "HTTP/1.1 200 OK"
                } else {
                    "HTTP/1.1 401 Who"
                };
                let body = "you sent real-secret-value";
                let answer = format!("{answer}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
            }
        })
        .await;
    let host = format!("api.test:{}", origin.at.port());
    let credential = Credential::new(
        &host,
        "Authorization",
        "Bearer",
        Secret::new("real-secret-value"),
        "placeholder",
    )
    .unwrap();
    let proxy = listen(
        &[local("api.test", origin.at)],
        vec![credential],
        Some(&identity),
    )
    .await;
    let url = format!("https://{host}/user");
    let answer = out(&proxy
        .run(
            &curl,
            &["-sS", "-i", "-H", "Authorization: Bearer placeholder", &url],
        )
        .await);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("you sent *****************"), "{answer}");
}

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

#[tokio::test]
async fn pythons_requests_finds_proxy_and_certificates() {
    let test = "pythons_requests_finds_proxy_and_certificates";
    let Some(python) = find(test, "python3") else {
        return;
    };
    let identity = Identity::of("secure.test");
    let secure = tls_origin(&identity).await;
    let proxy = listen(
        &[local("secure.test", secure.at)],
        Vec::new(),
        Some(&identity),
    )
    .await;
    for library in ["requests", "httpx"] {
        let script = format!("import {library}, sys; print({library}.get(sys.argv[1]).text)");
        let there = proxy
            .run(&python, &["-c", &format!("import {library}")])
            .await;
        if !there.status.success() {
            eprintln!("SKIP: {test}: {library} is not installed");
            continue;
        }
        let url = format!("https://secure.test:{}/", secure.at.port());
        let said = proxy.run(&python, &["-c", &script, &url]).await;
        assert_eq!(out(&said), "hello\n", "{library}");
    }
}

#[tokio::test]
async fn java_finds_the_proxy() {
    let Some(java) = find("java_finds_the_proxy", "java") else {
        return;
    };
    let (plain, _) = Origin::answering(OK).await;
    let proxy = listen(&[local("plain.test", plain.at)], Vec::new(), None).await;
    let program = "import java.net.*; import java.net.http.*;\n\
        class Fetch { public static void main(String[] a) throws Exception {\n\
        var request = HttpRequest.newBuilder(URI.create(a[0])).build();\n\
        var text = HttpResponse.BodyHandlers.ofString();\n\
        System.out.println(HttpClient.newHttpClient().send(request, text).body());\n\
        System.out.println(new String(new URL(a[0]).openStream().readAllBytes()));\n\
        } }\n";
    std::fs::write(proxy.path("Fetch.java"), program).unwrap();
    let url = format!("http://plain.test:{}/", plain.at.port());
    let told = proxy.run_for(LONG, &java, &["Fetch.java", &url]).await;
    if out(&told).contains("jdk.compiler") {
        eprintln!("SKIP: java_finds_the_proxy: there is no compiler");
        return;
    }
    let told = String::from_utf8_lossy(&told.stdout).into_owned() + &out(&told);
    assert!(told.starts_with("hello\nhello\n"), "{told}");
}

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

#[tokio::test]
async fn squid_reads_the_list_without_a_word() {
    use hermetic_egress::deploy::squid_allowlist;
    let test = "squid_reads_the_list_without_a_word";
    let squid = Path::new("/usr/sbin/squid");
    if !squid.is_file() {
        eprintln!("SKIP: {test}: squid is not installed");
        return;
    }
    let rules = RulesText {
        deny: vec!["bad.example.org".into(), "worse.example.org:8443".into()],
        presets: ["python", "debian", "github"].map(str::to_owned).into(),
        ..RulesText::allowing(["a.example.org", "*.example.org", "a.example.org:8443"])
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("squid.conf");
    let text = squid_allowlist(&rules).unwrap();
    std::fs::write(&file, format!("http_port 127.0.0.1:3128\n{text}")).unwrap();
    let mut command = Command::new(squid);
    command
        .args(["-k", "parse", "-f"])
        .arg(&file)
        .kill_on_drop(true);
    let output = timeout(PATIENCE, command.output())
        .await
        .expect("squid hangs")
        .unwrap();
    assert!(output.status.success(), "{}", out(&output));
    let complaints: Vec<String> = out(&output)
        .lines()
        .filter(|line| {
            ["WARNING", "ERROR", "FATAL"]
                .iter()
                .any(|word| line.contains(word))
        })
        .map(str::to_owned)
        .collect();
    assert_eq!(complaints, [""; 0], "{text}");
}
