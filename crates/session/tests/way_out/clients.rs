//! Programs as people use them, inside a sandbox, told of the proxy by nothing but its environment.

use std::fs;
use std::path::Path;
use std::process::Command;

use hermetic_sandbox::{HostMount, MountMode};

use super::house::{ALL, House, NEAR};
use super::lab::{Lab, SECRET, Setup, story};

fn everywhere() -> Setup {
    Setup {
        houses: ALL,
        ..Setup::default()
    }
}

/// Whether the sandbox has the program; if not, that is said aloud.
async fn has(lab: &Lab, test: &str, program: &str) -> bool {
    let found = lab.run("alice", &format!("command -v {program}")).await;
    if found.code != 0 {
        eprintln!("SKIP: {test}: {program} is not in the sandbox");
    }
    found.code == 0
}

/// A program of the host that prepares what the origin serves.
fn prepare(test: &str, folder: &Path, script: &str) -> bool {
    let done = Command::new("bash")
        .args(["-ec", script])
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .unwrap();
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        eprintln!("SKIP: {test}: cannot prepare the origin: {}", why.trim());
    }
    done.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_reaches_what_is_allowed_and_reads_why_not() {
    let test = "curl_reaches_what_is_allowed_and_reads_why_not";
    story(test, everywhere(), async |lab| {
        if !has(lab, test, "curl").await {
            return;
        }
        let url = lab.url("origin.test", "hello");
        assert_eq!(
            lab.run("alice", &format!("curl -sS {url}")).await.out,
            "hello\n"
        );
        let socks = format!("curl -sS --proxy socks5h://127.0.0.1:3128 {url}");
        assert_eq!(lab.run("alice", &socks).await.out, "hello\n");
        let refused = lab
            .run("alice", "curl -sS http://elsewhere.test/")
            .await
            .out;
        assert!(
            refused.contains("hermetic egress allow elsewhere.test"),
            "{refused}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_used_and_never_held() {
    let test = "a_credential_is_used_and_never_held";
    story(test, everywhere(), async |lab| {
        if !has(lab, test, "curl").await {
            return;
        }
        let url = lab.url("hers.test", "echo");
        let asks = format!("curl -sS -H \"authorization: Bearer $API_TOKEN\" {url}; env");
        let said = lab.run("alice", &asks).await;
        let head = lab.origin.heads().remove(0);
        assert!(head.contains(&format!("Bearer {SECRET}")), "{head}");
        assert!(said.out.contains("authorization: Bearer"), "{}", said.out);
        assert!(
            said.out.contains("API_TOKEN=hermetic-placeholder"),
            "{}",
            said.out
        );
        assert!(!said.out.contains(SECRET), "{}", said.out);
        if lab.house != House::Native {
            return;
        }
        // There the certificate is also where programs look that read no variable.
        let bare = format!("env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS {url}");
        assert_eq!(lab.run("alice", &bare).await.code, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_clones_over_https() {
    let test = "git_clones_over_https";
    story(test, Setup::default(), async |lab| {
        let repository = "git init -q work && cd work && echo contents > file && git add file && \
            git -c user.name=a -c user.email=a@b commit -qm one && cd .. && \
            git clone -q --bare work repo.git && git -C repo.git update-server-info";
        if !has(lab, test, "git").await || !prepare(test, &lab.files, repository) {
            return;
        }
        let url = lab.url("origin.test", "repo.git");
        let said = lab
            .run(
                "alice",
                &format!("git clone -q {url} clone && cat clone/file"),
            )
            .await;
        assert_eq!(said.out, "contents\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pip_installs_a_package() {
    let test = "pip_installs_a_package";
    story(test, Setup::default(), async |lab| {
        let wheel = "mkdir -p demo demo-1.0.dist-info simple/demo && echo 'word = \"works\"' > demo/__init__.py && \
            printf 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n' > demo-1.0.dist-info/METADATA && \
            printf 'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > demo-1.0.dist-info/WHEEL && \
            printf 'demo/__init__.py,,\\ndemo-1.0.dist-info/METADATA,,\\ndemo-1.0.dist-info/WHEEL,,\\ndemo-1.0.dist-info/RECORD,,\\n' > demo-1.0.dist-info/RECORD && \
            python3 -c 'import shutil, zipfile, pathlib; z = zipfile.ZipFile(\"demo-1.0-py3-none-any.whl\", \"w\"); [z.write(p) for d in (\"demo\", \"demo-1.0.dist-info\") for p in sorted(pathlib.Path(d).iterdir())]; z.close()' && \
            rm -r demo && mkdir demo && mv demo-1.0-py3-none-any.whl simple/demo/ && \
            echo '<html><a href=\"/simple/demo/demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a></html>' > simple/demo/index.html";
        if !has(lab, test, "pip").await || !prepare(test, &lab.files, wheel) {
            return;
        }
        let index = lab.url("origin.test", "simple/");
        let install = format!(
            "python3 -m venv --without-pip v 2>/dev/null; pip install -q --target here --no-cache-dir \
             --disable-pip-version-check --retries 0 --index-url {index} demo && \
             PYTHONPATH=here python3 -c 'import demo; print(demo.word)'"
        );
        let said = lab.run("alice", &install).await;
        assert_eq!(said.out.lines().last(), Some("works"), "{}", said.out);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_installs_a_package() {
    let test = "npm_installs_a_package";
    story(test, Setup::default(), async |lab| {
        let url = lab.url("origin.test", "");
        let package = format!(
            "mkdir package && echo 'module.exports = \"works\"' > package/index.js && \
             echo '{{\"name\":\"demo\",\"version\":\"1.0.0\",\"main\":\"index.js\"}}' > package/package.json && \
             tar czf demo.tgz package && \
             echo '{{\"name\":\"demo\",\"dist-tags\":{{\"latest\":\"1.0.0\"}},\"versions\":{{\"1.0.0\":{{\"name\":\"demo\",\
             \"version\":\"1.0.0\",\"dist\":{{\"tarball\":\"{url}demo.tgz\"}}}}}}}}' > demo"
        );
        if !has(lab, test, "npm").await || !prepare(test, &lab.files, &package) {
            return;
        }
        let install = format!(
            "npm install --silent --no-audit --no-fund --no-update-notifier --registry {url} demo && \
             node -p 'require(\"demo\")'"
        );
        let said = lab.run("alice", &install).await;
        assert_eq!(said.out.lines().last(), Some("works"), "{}", said.out);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cargo_fetches_a_crate() {
    let test = "cargo_fetches_a_crate";
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot
        .ok()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let Some(sysroot) = sysroot.filter(|path| Path::new(path).join("bin/cargo").exists()) else {
        eprintln!("SKIP: {test}: no cargo whose folder is known");
        return;
    };
    let setup = Setup {
        houses: NEAR,
        mounts: vec![HostMount {
            source: fs::canonicalize(&sysroot).unwrap(),
            target: "/rust".into(),
            mode: MountMode::ReadOnly,
        }],
        ..Setup::default()
    };
    story(test, setup, async |lab| {
        let url = lab.url("origin.test", "");
        let registry = format!(
            "mkdir -p demo-1.0.0/src index/de/mo crates/demo/1.0.0 && echo 'pub fn f() {{}}' > demo-1.0.0/src/lib.rs && \
             printf '[package]\\nname = \"demo\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' > demo-1.0.0/Cargo.toml && \
             tar czf crates/demo/1.0.0/download demo-1.0.0 && sum=$(sha256sum crates/demo/1.0.0/download | cut -d' ' -f1) && \
             echo '{{\"dl\":\"{url}crates\"}}' > index/config.json && \
             printf '{{\"name\":\"demo\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"%s\",\"features\":{{}},\"yanked\":false}}\\n' $sum > index/de/mo/demo"
        );
        if !prepare(test, &lab.files, &registry) {
            return;
        }
        let fetch = format!(
            "export PATH=/rust/bin:$PATH; mkdir -p p/src && cd p && touch src/lib.rs && \
             printf '[package]\\nname = \"p\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\ndemo = \"1\"\\n' > Cargo.toml && \
             cargo fetch --config 'source.crates-io.replace-with=\"here\"' \
             --config 'source.here.registry=\"sparse+{url}index/\"' && \
             ls ~/.cargo/registry/cache/*/"
        );
        let said = lab.run("alice", &fetch).await;
        assert_eq!(said.out.lines().last(), Some("demo-1.0.0.crate"), "{}", said.out);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wget_python_and_node_find_the_proxy() {
    let test = "wget_python_and_node_find_the_proxy";
    story(test, Setup::default(), async |lab| {
        let url = lab.url("origin.test", "hello");
        let programs = [
            ("wget", format!("wget -qO- --ca-certificate=$SSL_CERT_FILE {url}")),
            (
                "python3",
                format!("python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}\").read().decode(), end=\"\")'"),
            ),
        ];
        for (program, command) in programs {
            if has(lab, test, program).await {
                assert_eq!(lab.run("alice", &command).await.out, "hello\n", "{program}");
            }
        }
    })
    .await;
}
