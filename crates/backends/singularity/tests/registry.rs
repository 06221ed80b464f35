//! A registry on loopback with one image in it, and the same image as an archive. Nobody else's
//! program is needed for either: an image is a few files that name each other by their digest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// As much of the test image as a shell needs, with a file of its own.
pub(crate) fn root(at: &Path) -> PathBuf {
    let root = at.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let script = r#"set -e
cd "$1"
tools="usr/bin/bash usr/bin/cat usr/bin/id usr/bin/ls usr/bin/env usr/bin/dash usr/bin/sh usr/bin/sleep"
libraries=$(find usr/lib/*-linux-gnu -maxdepth 1 '(' -name 'ld-linux*' -o -name 'libc.so*' -o -name 'libtinfo*' -o -name 'libselinux*' -o -name 'libpcre2-8*' ')')
loaders=$(find usr/lib64 -maxdepth 1 2>/dev/null || true)
tar -cf - --no-recursion bin lib $(ls -d lib64 2>/dev/null) $tools $libraries $loaders | tar -xf - -C "$2"
cd "$2"
mkdir -p etc dev proc sys tmp var run home mnt
echo from-the-image > etc/marker
"#;
    let made = Command::new("sh")
        .args(["-c", script, "make", &crate::lab::image()])
        .arg(&root)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
    root
}

/// What an image is made of, by its digest.
#[derive(Clone)]
pub(crate) struct Parts {
    manifest: Bytes,
    config: Bytes,
    layer: Bytes,
}

impl Parts {
    pub(crate) fn of(root: &Path) -> Self {
        let packed = Command::new("tar")
            .args([
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "-cf",
                "-",
                "-C",
            ])
            .arg(root)
            .arg(".")
            .output()
            .unwrap();
        assert!(packed.status.success());
        let layer = Bytes::from(packed.stdout);
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin", "PLANTED=by-the-image"], "Cmd": ["/bin/bash"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        });
        let config = Bytes::from(config.to_string());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": named(CONFIG, &config),
            "layers": [named(LAYER, &layer)],
        });
        Self {
            manifest: Bytes::from(manifest.to_string()),
            config,
            layer,
        }
    }

    /// As one file, which `oci-archive:` reads.
    pub(crate) fn archive(&self, at: &Path) -> PathBuf {
        let folder = at.join("layout");
        let blobs = folder.join("blobs/sha256");
        std::fs::create_dir_all(&blobs).unwrap();
        for part in [&self.manifest, &self.config, &self.layer] {
            std::fs::write(blobs.join(&digest(part)[7..]), part).unwrap();
        }
        let index = json!({"schemaVersion": 2, "manifests": [named(MANIFEST, &self.manifest)]});
        std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
        let version = json!({"imageLayoutVersion": "1.0.0"});
        std::fs::write(folder.join("oci-layout"), version.to_string()).unwrap();
        let file = at.join("image.tar");
        let mut pack = Command::new("tar");
        pack.arg("-cf").arg(&file).arg("-C").arg(&folder);
        pack.args(["oci-layout", "index.json", "blobs"]);
        assert!(pack.status().unwrap().success());
        file
    }
}

fn named(kind: &str, part: &Bytes) -> Value {
    json!({"mediaType": kind, "digest": digest(part), "size": part.len()})
}

fn digest(part: &Bytes) -> String {
    let digest = Sha256::digest(part);
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{text}")
}

/// What becomes of the layer, which is the long part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Whole,
    /// The connection ends in the middle.
    Cut,
    /// Nothing comes after the first half.
    Stalled,
    /// Something else of the same length.
    Changed,
}

pub(crate) struct Registry {
    pub(crate) name: String,
    shelf: Arc<Shelf>,
    serving: JoinHandle<()>,
}

struct Shelf {
    parts: Parts,
    layer: Mutex<Layer>,
    asked: Mutex<Vec<String>>,
}

impl Registry {
    pub(crate) async fn open(parts: Parts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Arc::new(Shelf {
            parts,
            layer: Mutex::new(Layer::Whole),
            asked: Mutex::default(),
        });
        let routes = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shelf));
        Self {
            name: format!("docker://{address}/test/image:1"),
            shelf,
            serving: tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() }),
        }
    }

    pub(crate) fn gives(&self, layer: Layer) {
        *self.shelf.layer.lock().unwrap() = layer;
    }

    /// Somebody waits for the long part.
    pub(crate) fn is_at_the_layer(&self) -> bool {
        self.count(&digest(&self.shelf.parts.layer)) > 0
    }

    /// How often a path with this in it was asked for.
    pub(crate) fn count(&self, text: &str) -> usize {
        let asked = self.shelf.asked.lock().unwrap();
        asked.iter().filter(|path| path.contains(text)).count()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(shelf): State<Arc<Shelf>>, uri: Uri) -> Response {
    let path = uri.path().to_owned();
    shelf.asked.lock().unwrap().push(path.clone());
    let parts = &shelf.parts;
    let Some((_, last)) = path.rsplit_once('/') else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match last {
        "" | "v2" => ().into_response(),
        "1" => told(MANIFEST, &parts.manifest),
        it if it == digest(&parts.manifest) => told(MANIFEST, &parts.manifest),
        it if it == digest(&parts.config) => told(CONFIG, &parts.config),
        it if it == digest(&parts.layer) => layer(&parts.layer, *shelf.layer.lock().unwrap()),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn told(kind: &str, part: &Bytes) -> Response {
    let digest = digest(part);
    let headers = [
        (header::CONTENT_TYPE.as_str(), kind),
        ("docker-content-digest", digest.as_str()),
    ];
    (headers, part.clone()).into_response()
}

fn layer(whole: &Bytes, how: Layer) -> Response {
    let half = whole.slice(..whole.len() / 2);
    let body = match how {
        Layer::Whole => Body::from(whole.clone()),
        Layer::Changed => Body::from(vec![b'x'; whole.len()]),
        Layer::Cut => {
            let cut = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            Body::from_stream(futures::stream::iter([Ok(half), Err(cut)]))
        }
        Layer::Stalled => {
            let first = futures::stream::iter([Ok::<_, std::io::Error>(half)]);
            Body::from_stream(first.chain(futures::stream::pending()))
        }
    };
    let length = whole.len().to_string();
    let headers = [(header::CONTENT_LENGTH, length)];
    (headers, body).into_response()
}
