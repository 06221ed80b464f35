//! `install.sh`, with a folder and with a server of the test's own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::sum;
use crate::machine;

/// A release and a place to install it, removed with the test.
struct InstallLab {
    folder: PathBuf,
}

const ARCHIVE: &str = "hermetic-9.9.9-MACHINE.tar.gz";

impl InstallLab {
    /// With a program that only says its version.
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hermetic-installer-{}-{number}", std::process::id());
        let lab = Self {
            folder: std::env::temp_dir().join(name),
        };
        fs::create_dir_all(lab.release()).unwrap();
        lab.pack("#!/bin/sh\necho hermetic 9.9.9\n");
        lab
    }

    fn release(&self) -> PathBuf {
        self.folder.join("release")
    }

    fn installed(&self) -> PathBuf {
        self.folder.join("bin/hermetic")
    }

    fn archive(&self) -> PathBuf {
        self.release()
            .join(ARCHIVE.replace("MACHINE", std::env::consts::ARCH))
    }

    fn pack(&self, program: &str) {
        let name = format!("hermetic-9.9.9-{}", std::env::consts::ARCH);
        let place = self.folder.join(&name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("hermetic"), program).unwrap();
        fs::set_permissions(place.join("hermetic"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-czf")
            .arg(self.archive())
            .arg("-C")
            .arg(&self.folder);
        assert!(tar.arg(&name).status().unwrap().success());
        let line = format!(
            "{}  {}\n",
            sum(&self.archive()).unwrap(),
            shown(&self.archive())
        );
        self.write_sums(&line);
    }

    fn write_sums(&self, text: &str) {
        fs::write(self.release().join("SHA256SUMS"), text).unwrap();
    }

    fn install(&self, from: &str) -> Output {
        self.run(&machine::root().join("install.sh"), from)
    }

    fn run(&self, script: &Path, from: &str) -> Output {
        let mut sh = Command::new("sh");
        sh.arg(script).args(["--from", from, "--into"]);
        sh.arg(self.folder.join("bin")).env("HOME", &self.folder);
        sh.env("TMPDIR", &self.folder).env_remove("HERMETIC_FROM");
        sh.output().unwrap()
    }

    fn refuses(&self, from: &str, why: &str) {
        let ended = self.install(from);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{from}: {said}");
        assert!(said.contains(why), "{from}: {said}");
        assert!(said.contains("\n  = "), "no remedy: {said}");
        assert!(
            !self.installed().exists(),
            "{from}: something was installed"
        );
    }

    /// Nothing is left of its work but what was installed.
    fn is_tidy(&self) -> bool {
        let names = fs::read_dir(&self.folder).unwrap().flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        !names.any(|name| name.starts_with("tmp."))
    }
}

impl Drop for InstallLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn from_a_folder_it_installs_and_replaces_an_older_one() {
    let lab = InstallLab::new();
    let from = lab.release().display().to_string();
    for version in ["9.9.9", "10.0.0"] {
        lab.pack(&format!("#!/bin/sh\necho hermetic {version}\n"));
        let ended = lab.install(&from);
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
        assert!(
            said.contains(&format!("installed hermetic {version}")),
            "{said}"
        );
        let ran = Command::new(lab.installed()).output().unwrap();
        assert_eq!(ran.stdout, format!("hermetic {version}\n").as_bytes());
    }
    assert!(lab.is_tidy());
}

#[test]
fn from_a_server_it_installs_what_the_sums_name() {
    let lab = InstallLab::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let release = lab.release();
    // Two requests: the sums and the archive.
    let serving = thread::spawn(move || {
        for _ in 0..2 {
            let (mut peer, _) = server.accept().unwrap();
            let mut lines = BufReader::new(peer.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let name = first.split(' ').nth(1).unwrap().rsplit('/').next().unwrap();
            let body = fs::read(release.join(name)).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            peer.write_all(head.as_bytes()).unwrap();
            peer.write_all(&body).unwrap();
        }
    });
    let ended = lab.install(&format!("http://{address}/latest/download/"));
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    serving.join().unwrap();
    assert!(lab.installed().exists() && lab.is_tidy());
}

#[test]
fn what_is_not_right_is_refused_in_words() {
    let lab = InstallLab::new();
    let from = lab.release().display().to_string();
    let sums = fs::read_to_string(lab.release().join("SHA256SUMS")).unwrap();

    // One byte of the archive is another.
    let whole = fs::read(lab.archive()).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(lab.archive(), changed).unwrap();
    lab.refuses(&from, "is not what its sum says");
    fs::write(lab.archive(), &whole[..whole.len() / 2]).unwrap();
    lab.refuses(&from, "is not what its sum says");
    fs::write(lab.archive(), whole).unwrap();

    lab.write_sums(&format!("{sums}{}", sums.replace("9.9.9", "9.9.8")));
    lab.refuses(&from, "more than one program");
    for named in [
        sums.replace("hermetic-9", "../hermetic-9"),
        sums.replace(std::env::consts::ARCH, "riscv64"),
        sums.replace("  ", "  $(touch x)"),
        String::new(),
    ] {
        lab.write_sums(&named);
        lab.refuses(&from, "has no program for");
    }
    lab.write_sums(&sums);
    fs::remove_file(lab.archive()).unwrap();
    lab.refuses(&from, "there is no");
    lab.refuses("/nowhere", "there is no");
    // Nobody is asked: the sums would come the same way as the program.
    lab.refuses("http://releases.invalid", "has to be https");
    lab.refuses("ftp://releases.invalid", "has to be https");

    lab.pack("#!/bin/sh\necho 'GLIBC_2.99 not found' >&2\nexit 1\n");
    lab.refuses(&from, "does not start here: GLIBC_2.99 not found");
    assert!(lab.is_tidy());
}

#[test]
fn what_is_no_plain_file_stays() {
    let lab = InstallLab::new();
    fs::create_dir_all(lab.installed()).unwrap();
    let ended = lab.install(&lab.release().display().to_string());
    assert_eq!(ended.status.code(), Some(1));
    assert!(lab.installed().is_dir());
}

#[test]
fn a_script_that_was_cut_off_does_nothing() {
    let lab = InstallLab::new();
    let text = fs::read_to_string(machine::root().join("install.sh")).unwrap();
    let cut = lab.folder.join("cut.sh");
    for (end, _) in text.match_indices('\n').step_by(7) {
        fs::write(&cut, &text[..end]).unwrap();
        // The last line is the call; a whole script less its last line is a cut one too.
        if text[..end].contains("main \"$@\"") {
            continue;
        }
        lab.run(&cut, &lab.release().display().to_string());
        assert!(!lab.installed().exists(), "cut at {end}");
    }
}
