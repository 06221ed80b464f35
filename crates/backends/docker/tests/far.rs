//! An engine that is reached over a network: plain, by TLS, by ssh. Here it is the near one, behind
//! somebody who passes bytes on and knows nothing of this machine's files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hermetic_docker::EngineAddress;
use hermetic_sandbox::{Backend, BackendError, SandboxPersistence};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustix::process::getuid;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::lab::{self, Lab, begin, docker, greet, sh, until};
use crate::retold::{retell, told};

/// A story of each kind that a way to an engine can spoil: files, large ones, ends, what is kept, what is listed.
const EACH_KIND: &[&str] = &[
    "conformance::a_kept_sandbox_resumes",
    "conformance::a_large_file",
    "conformance::a_timeout_ends",
    "conformance::destroying_ends",
    "conformance::two_installations",
    "life::what_is_tied",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_kept_over_tcp() {
    let Some(socket) = engine("the_contract_is_kept_over_tcp").await else {
        return;
    };
    let relay = Relay::open(&socket, None).await;
    let host = format!("tcp://127.0.0.1:{}", relay.port);
    let stories = told(EACH_KIND, &["conformance::"]);
    retell(stories, &[("DOCKER_HOST", &host)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_tls_both_sides_prove_who_they_are() {
    const STORY: &[&str] = &[
        "conformance::files_of_every_awkward_name",
        "life::readiness",
    ];
    let Some(socket) = engine("by_tls_both_sides_prove_who_they_are").await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let relay = Relay::open(&socket, Some(certificates(folder.path()))).await;
    let host = format!("tcp://127.0.0.1:{}", relay.port);
    let path = folder.path().to_str().unwrap();
    let proven = [
        ("DOCKER_HOST", host.as_str()),
        ("DOCKER_CERT_PATH", path),
        ("DOCKER_TLS_VERIFY", "1"),
    ];
    retell(STORY, &proven).await;

    // Somebody else's authority: neither side is believed.
    let other = tempfile::tempdir().unwrap();
    drop(certificates(other.path()));
    for (own, ca) in [(other.path(), folder.path()), (folder.path(), other.path())] {
        let mixed = tempfile::tempdir().unwrap();
        for (from, name) in [(own, "cert.pem"), (own, "key.pem"), (ca, "ca.pem")] {
            fs::copy(from.join(name), mixed.path().join(name)).unwrap();
        }
        let lab = Lab::open(|config| config.address = tls(relay.port, mixed.path()));
        let refused = lab.docker.list().await.unwrap_err();
        assert!(
            matches!(refused, BackendError::Unavailable { .. }),
            "{refused}"
        );
    }
    let lab = Lab::open(|config| config.address = tls(relay.port, Path::new("/nowhere")));
    let refused = lab.docker.list().await.unwrap_err();
    assert!(
        matches!(&refused, BackendError::Unavailable { remedy, .. } if remedy.contains("ca.pem")),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_kept_over_ssh() {
    const NAME: &str = "the_contract_is_kept_over_ssh";
    let Some(socket) = engine(NAME).await else {
        return;
    };
    if !getuid().is_root() || !Path::new("/usr/sbin/sshd").exists() {
        return eprintln!("SKIP: {NAME}: needs root, and sshd");
    }
    let sshd = Sshd::start(&socket).await;
    let path = format!(
        "{}:{}",
        sshd.at("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let far = format!("ssh://root@127.0.0.1:{}", sshd.port);
    // By a context, as docker's own client makes one, and by the variable.
    let settings = sshd.at("docker").display().to_string();
    docker(
        &[
            "--config", &settings, "context", "create", "far", "--docker",
        ],
        &[&format!("host={far}")],
    )
    .await;
    let by_context = [
        ("DOCKER_HOST", ""),
        ("DOCKER_CONFIG", &settings),
        ("DOCKER_CONTEXT", "far"),
        ("PATH", &path),
    ];
    retell(&["files_of_every_awkward_name"], &by_context).await;
    // Each request is a login of its own: not all stories, but each kind of them.
    retell(EACH_KIND, &[("DOCKER_HOST", &far), ("PATH", &path)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_that_breaks_is_an_error_now_and_none_later() {
    let Some(socket) = engine("a_way_that_breaks_is_an_error_now_and_none_later").await else {
        return;
    };
    let mut relay = Relay::open(&socket, None).await;
    let address = EngineAddress::Plain(format!("127.0.0.1:{}", relay.port));
    let lab = Lab::open(|config| config.address = address);
    let mut kept = lab.spec();
    kept.persistence = SandboxPersistence::Kept;
    let sandbox = lab.create(&kept).await;
    sh(&sandbox, "echo mine > note").await;
    let mut running = begin(&sandbox, "echo ready; sleep 600").await;

    relay.cut().await;
    while let Ok(Some(_)) = running.next().await {}
    assert!(!sandbox.is_reachable());
    let refused = lab.docker.create(&lab.spec()).await.unwrap_err();
    assert!(
        matches!(refused, BackendError::Unavailable { .. }),
        "{refused}"
    );

    relay.mend(&socket).await;
    let back = greet(&kept, lab.docker.connect(&kept.id).await.unwrap()).await;
    assert_eq!(sh(&back, "cat note").await, "mine\n");
    let fresh = lab.spec();
    assert_eq!(sh(&lab.create(&fresh).await, "echo new").await, "new\n");
    lab.docker.destroy(&kept.id).await.unwrap();
    lab.docker.destroy(&fresh.id).await.unwrap();
    lab.close().await;
}

/// The socket of the engine that all tests share.
async fn engine(name: &str) -> Option<PathBuf> {
    let why = match lab::skip().await {
        None => match EngineAddress::find(&|name| std::env::var(name).ok()).unwrap() {
            EngineAddress::Socket(path) => return Some(path),
            far => format!("{far} is no socket"),
        },
        Some(why) => why,
    };
    eprintln!("SKIP: {name}: {why}");
    None
}

/// Passes bytes on, and stops when dropped.
struct Relay {
    port: u16,
    tls: Option<TlsAcceptor>,
    passing: Option<JoinHandle<()>>,
}

impl Relay {
    async fn open(socket: &Path, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let passing = Some(tokio::spawn(pass(listener, socket.to_owned(), tls.clone())));
        Self { port, tls, passing }
    }

    /// Every connection ends, and nobody listens.
    async fn cut(&mut self) {
        let passing = self.passing.take().unwrap();
        passing.abort();
        let _ = passing.await;
    }

    async fn mend(&mut self, socket: &Path) {
        let mut listener = None;
        until("the port is free again", async || {
            listener = TcpListener::bind(("127.0.0.1", self.port)).await.ok();
            listener.is_some()
        })
        .await;
        let listener = listener.unwrap();
        self.passing = Some(tokio::spawn(pass(
            listener,
            socket.to_owned(),
            self.tls.clone(),
        )));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(passing) = &self.passing {
            passing.abort();
        }
    }
}

async fn pass(listener: TcpListener, socket: PathBuf, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (socket, tls) = (socket.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => join(stream, &socket).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        join(stream, &socket).await;
                    }
                }
            }
        });
    }
}

async fn join(mut stream: impl AsyncRead + AsyncWrite + Unpin, socket: &Path) {
    if let Ok(mut engine) = UnixStream::connect(socket).await {
        let _ = copy_bidirectional(&mut stream, &mut engine).await;
    }
}

fn tls(port: u16, certificates: &Path) -> EngineAddress {
    EngineAddress::Tls(hermetic_docker::TlsHost {
        host: format!("127.0.0.1:{port}"),
        certificates: certificates.to_owned(),
    })
}

/// An authority with both sides' certificates; the client's go into the folder.
fn certificates(folder: &Path) -> TlsAcceptor {
    let ca = {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &ca).unwrap(), key)
    };
    let (client, key) = signed("client.invalid");
    fs::write(folder.join("ca.pem"), ca.pem()).unwrap();
    fs::write(folder.join("cert.pem"), client.pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();

    let (server, key) = signed("127.0.0.1");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(ca.der().to_vec())).unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
    let chain = vec![CertificateDer::from(server.der().to_vec())];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// An sshd on loopback behind which there is the engine, and a client that is set up for it.
struct Sshd {
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Sshd {
    async fn start(socket: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(at("bin")).unwrap();
        for name in ["host_key", "key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)])
                .status();
            assert!(made.unwrap().success());
        }
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let server = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nSetEnv DOCKER_HOST=unix://{}\n",
            at("host_key"),
            at("key.pub"),
            socket.display()
        );
        fs::write(at("sshd_config"), server).unwrap();
        let client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\n",
            at("key"),
            at("known_hosts")
        );
        fs::write(at("config"), client).unwrap();
        // The client reads its user's own file, whatever HOME says.
        fs::write(
            at("bin/ssh"),
            format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("config")),
        )
        .unwrap();
        fs::set_permissions(at("bin/ssh"), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        until("sshd answers", async || {
            TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        Self {
            folder,
            port,
            child,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
