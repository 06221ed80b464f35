//! The npm of this machine, and a registry on loopback with one package that means no good.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermetic_agent_programs::{FetchError, InstallError, PackageClient, install};
use sha2::{Digest as _, Sha512};

use crate::{Lab, small_lock, small_preset};

/// The address of a registry that has the package, and the checksum of its archive.
struct Registry {
    address: String,
    integrity: String,
}

impl Registry {
    fn serve(scratch: &Path, mark: &Path) -> Self {
        let archive = archive(scratch, mark);
        let integrity = format!("sha512-{}", STANDARD.encode(Sha512::digest(&archive)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let about = format!(
            r#"{{"name":"small","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{
                "name":"small","version":"1.0.0","hasInstallScript":true,
                "dist":{{"tarball":"{address}/small/-/small-1.0.0.tgz","integrity":"{integrity}"}}}}}}}}"#
        );
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &about, &archive);
            }
        });
        Self { address, integrity }
    }
}

fn answer(mut stream: TcpStream, about: &str, archive: &[u8]) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(asked)) = lines.next() else {
        return;
    };
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let (kind, body) = match asked.contains(".tgz") {
        true => ("application/octet-stream", archive),
        false => ("application/json", about.as_bytes()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// Everything that npm would run by itself leaves a mark.
fn archive(scratch: &Path, mark: &Path) -> Vec<u8> {
    let package = scratch.join("package");
    fs::create_dir_all(&package).unwrap();
    let touch = format!("touch {}", mark.display());
    let manifest = format!(
        r#"{{"name":"small","version":"1.0.0","bin":"index.js","scripts":{{
            "preinstall":"{touch}","install":"{touch}","postinstall":"{touch}","prepare":"{touch}"}}}}"#
    );
    fs::write(package.join("package.json"), manifest).unwrap();
    fs::write(package.join("index.js"), "process.exit(0)\n").unwrap();
    // A native module is built at once, without any script.
    let build = format!("{{'variables': {{'x': '<!({touch})'}}, 'targets': []}}");
    fs::write(package.join("binding.gyp"), build).unwrap();
    let made = Command::new("tar")
        .args(["czf", "small.tgz", "package"])
        .current_dir(scratch)
        .status();
    assert!(made.unwrap().success());
    fs::read(scratch.join("small.tgz")).unwrap()
}

fn has_npm(test: &str) -> bool {
    let found = Command::new("npm").arg("--version").output();
    let found = found.is_ok_and(|version| version.status.success());
    if !found {
        eprintln!("SKIP: {test}: there is no npm");
    }
    found
}

#[test]
fn nothing_of_a_package_runs_when_it_is_installed() {
    if !has_npm("nothing_of_a_package_runs_when_it_is_installed") {
        return;
    }
    let lab = Lab::new();
    let mark = lab.path("mark");
    let registry = Registry::serve(&lab.path("scratch"), &mark);
    let npm = PackageClient::new(Path::new("npm")).at(&registry.address);
    let preset = small_preset(&small_lock(&registry.integrity));
    for version in [None, Some("1.0.0")] {
        let installed = install(&lab.folder(), &preset, version, &npm, &mut |_| ()).unwrap();
        assert!(lab.folder().verify("small", &installed).unwrap().is_empty());
        assert_eq!(lab.words(), "process.exit(0)\n");
        assert!(!mark.exists(), "a script of the package has run");
    }
    // The mark does come where scripts are let run, or the above would prove nothing.
    let allowed = Command::new("npm")
        .args(["install", "--no-save", "small@1.0.0"])
        .current_dir(lab.path("scratch"))
        .env("npm_config_registry", &registry.address)
        .env("npm_config_cache", lab.path("cache"))
        .env("npm_config_ignore_scripts", "false")
        .output();
    allowed.unwrap();
    assert!(mark.exists());
}

/// Whatever the registry says about it.
#[test]
fn what_is_not_what_was_locked_is_not_installed() {
    if !has_npm("what_is_not_what_was_locked_is_not_installed") {
        return;
    }
    let lab = Lab::new();
    lab.install(&lab.npm_with("one")).unwrap();
    let registry = Registry::serve(&lab.path("scratch"), &lab.path("mark"));
    let npm = PackageClient::new(Path::new("npm")).at(&registry.address);
    let other = format!("sha512-{}", STANDARD.encode(Sha512::digest("other")));
    let preset = small_preset(&small_lock(&other));
    let why = install(&lab.folder(), &preset, None, &npm, &mut |_| ()).unwrap_err();
    assert!(
        matches!(why, InstallError::Fetch(FetchError::Checksum { .. })),
        "{why}"
    );
    assert_eq!(lab.words(), "one\n");
    assert_eq!(lab.names(), ["lock", "small"]);
}
