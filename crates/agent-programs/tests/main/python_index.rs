//! The pip of this machine, and an index on loopback with a package that means no good.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use hermetic_agent_programs::{
    AgentPreset, FetchError, InstallError, InstalledPrograms, Interpreter, PackageClient,
    PackageRegistry, PackageSource, ProgramBackend, install,
};
use hermetic_types::BackendKind;
use sha2::{Digest as _, Sha256};

use crate::{Lab, small_preset};

/// Makes an archive whose installation leaves a mark, and a wheel.
const MAKE: &str = r#"
import sys, tarfile, zipfile, os
folder, mark = sys.argv[1:]
os.makedirs(folder + "/small-1.0.0")
with open(folder + "/small-1.0.0/setup.py", "w") as file:
    file.write("open(%r, 'w')\nfrom setuptools import setup\nsetup(name='small', version='1.0.0')\n" % mark)
with open(folder + "/small-1.0.0/PKG-INFO", "w") as file:
    file.write("Metadata-Version: 2.1\nName: small\nVersion: 1.0.0\n")
with tarfile.open(folder + "/small-1.0.0.tar.gz", "w:gz") as archive:
    archive.add(folder + "/small-1.0.0", "small-1.0.0")
with zipfile.ZipFile(folder + "/small-1.0.0-py3-none-any.whl", "w") as wheel:
    info = "small-1.0.0.dist-info/"
    wheel.writestr("small/__init__.py", "open(%r, 'w')\n" % mark)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "small/__init__.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n" % ((info,) * 3))
"#;

/// The address of an index that has these files of the package.
fn serve(folder: &Path, names: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/simple", listener.local_addr().unwrap());
    let folder = folder.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &folder, names);
        }
    });
    address
}

fn answer(mut stream: TcpStream, folder: &Path, names: &[&str]) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(asked)) = lines.next() else {
        return;
    };
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let file = names.iter().find(|name| asked.contains(**name));
    let (kind, body) = match file {
        Some(name) => (
            "application/octet-stream",
            fs::read(folder.join(name)).unwrap(),
        ),
        None => {
            let links = names
                .iter()
                .map(|name| format!("<a href=\"/{name}\">{name}</a>"));
            ("text/html", links.collect::<String>().into_bytes())
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

fn preset(lock: String) -> AgentPreset {
    AgentPreset {
        source: PackageSource {
            registry: PackageRegistry::PyPi,
            package: "small",
            version: "1.0.0",
            lock: Box::leak(lock.into_boxed_str()),
            unneeded: &[],
        },
        program: "lib/small/__init__.py",
        interpreter: Interpreter::Python { module: "small" },
        ..small_preset("")
    }
}

fn has_pip(test: &str) -> bool {
    let found = Command::new("pip3").arg("--version").output();
    let has = found.is_ok_and(|ended| ended.status.success());
    if !has {
        eprintln!("SKIP: {test}: no pip3");
    }
    has
}

const WHEEL: &str = "small-1.0.0-py3-none-any.whl";

#[test]
fn nothing_of_a_package_in_python_runs_and_its_sums_are_compared() {
    if !has_pip("nothing_of_a_package_in_python_runs_and_its_sums_are_compared") {
        return;
    }
    let lab = Lab::new();
    let (scratch, mark) = (lab.path("scratch"), lab.path("mark"));
    fs::create_dir(&scratch).unwrap();
    let made = Command::new("python3")
        .args(["-c", MAKE])
        .args([&scratch, &mark])
        .status();
    assert!(made.unwrap().success());
    let sum = |name: &str| {
        let digest = Sha256::digest(fs::read(scratch.join(name)).unwrap());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("small==1.0.0 --hash=sha256:{digits}\n")
    };
    let pip = |address: &str| PackageClient::of(PackageRegistry::PyPi).at(address);
    let install = |preset: &AgentPreset, version: Option<&str>, address: &str| {
        install(&lab.folder(), preset, version, &pip(address), &mut |_| ())
    };

    // What has to be built would run to be built, so it is none, whoever vouches for it.
    let source = "small-1.0.0.tar.gz";
    let archives = serve(&scratch, &["small-1.0.0.tar.gz"]);
    for version in [None, Some("1.0.0")] {
        let why = install(&preset(sum(source)), version, &archives).unwrap_err();
        let is_none = matches!(why, InstallError::Fetch(FetchError::NoSuchVersion { .. }));
        assert!(is_none, "{why}");
        assert!(!mark.exists(), "a script of the package has run");
    }

    let wheels = serve(&scratch, &["small-1.0.0-py3-none-any.whl"]);
    let other = format!("small==1.0.0 --hash=sha256:{}\n", "0".repeat(64));
    let why = install(&preset(other), None, &wheels).unwrap_err();
    assert!(
        matches!(why, InstallError::Fetch(FetchError::Checksum { .. })),
        "{why}"
    );
    assert_eq!(lab.names(), ["lock"]);

    let preset = preset(sum(WHEEL));
    let installed = install(&preset, None, &wheels).unwrap();
    assert!(lab.folder().verify("small", &installed).unwrap().is_empty());
    assert!(installed.python.unwrap().starts_with("3."));
    assert!(!mark.exists(), "the package has run");
    // It is started by that Python and no other, out of its own folder.
    let programs = InstalledPrograms::new(lab.folder(), BTreeMap::new(), |_| ProgramBackend::Near);
    let program = programs.without_keys(&preset, BackendKind::Native).unwrap();
    let python = lab
        .folder()
        .installed("small")
        .unwrap()
        .unwrap()
        .python
        .unwrap();
    assert_eq!(program.command[0], format!("python{python}"));
    assert!(program.command.contains(&"/agents/small/lib".to_owned()));
}
