//! Apptainer, which Debian 12 has no package of: that of Debian's next release, with its own C
//! library beside it, so that nothing else on the machine changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{apt, leftovers, machine, program, say};

/// Where its C library goes.
const LIBRARY: &str = "/opt/apptainer-libc";

const LIBRARIES: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "libresolv.so.2",
];

const SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                      http://deb.debian.org/debian sid main\n";

/// What a machine like this one lacks to serve an instance of its own: a root that is short of a
/// capability cannot hand it on, and where no systemd runs nobody else makes cgroups.
const SETTINGS: [(&str, &str); 2] = [
    ("root default capabilities", "no"),
    ("systemd cgroups", "no"),
];

pub(crate) fn is_there() -> bool {
    ["apptainer", "singularity"]
        .iter()
        .any(|name| machine::find(name).is_some())
}

/// Does nothing where it is there already.
pub(crate) fn install() -> Result<(), Failure> {
    if is_there() {
        return Ok(());
    }
    if program::works(Command::new("apt-cache").args(["show", "apptainer"])) {
        return apt::Apt::default().install("apptainer");
    }
    say::note("Apptainer from Debian sid, with its own C library in /opt/apptainer-libc");
    let work = leftovers::folder("apptainer");
    let done = fetch(&work).and_then(|()| place(&work));
    let _ = fs::remove_dir_all(&work);
    done
}

fn fetch(work: &Path) -> Result<(), Failure> {
    // Fails where somebody else made it: what is in it will be run.
    fs::create_dir(work).map_err(Failure::file(format!("make {}", work.display())))?;
    for folder in [
        "lists/partial",
        "cache/partial",
        "parts",
        "program",
        "library",
    ] {
        make(&work.join(folder))?;
    }
    let list = work.join("sid.list");
    fs::write(&list, SOURCE).map_err(Failure::file("write the list of packages"))?;
    program::show(apt_get(work).args(["update"]))?;
    program::show(apt_get(work).args(["download", "apptainer", "libc6"]))?;
    for (package, folder) in [("apptainer_", "program"), ("libc6_", "library")] {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(downloaded(work, package)?);
        program::show(unpack.arg(work.join(folder)))?;
    }
    Ok(())
}

/// With lists and packages of its own: the machine's stay as they are.
fn apt_get(work: &Path) -> Command {
    let at = |name: &str| work.join(name).display().to_string();
    let mut command = Command::new("apt-get");
    command
        .current_dir(work)
        .args(["-q", "-o", "Acquire::Retries=3"]);
    for option in [
        format!("Dir::Etc::sourcelist={}", at("sid.list")),
        format!("Dir::Etc::sourceparts={}", at("parts")),
        format!("Dir::State::lists={}", at("lists")),
        format!("Dir::Cache={}", at("cache")),
        // A mirror that stands still has lists that ran out.
        "Acquire::Check-Valid-Until=false".to_owned(),
        "Acquire::Languages=none".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    command
}

fn downloaded(work: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(work).map_err(Failure::file("look for packages"))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(prefix) && name.ends_with(".deb"))
        })
        .ok_or_else(|| lacking(&format!("no package {prefix} was downloaded")))
}

fn place(work: &Path) -> Result<(), Failure> {
    let (folder, loader) = match std::env::consts::ARCH {
        "x86_64" => ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
        "aarch64" => ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
        other => return Err(lacking(&format!("no recipe for {other}"))),
    };
    let (program, library) = (
        work.join("program"),
        work.join("library/usr/lib").join(folder),
    );
    make(Path::new(LIBRARY))?;
    for name in LIBRARIES.iter().chain([&loader]) {
        copy(&library.join(name), Path::new(LIBRARY))?;
    }
    let starter = format!("usr/lib/{folder}/apptainer/bin/starter");
    for binary in ["usr/bin/apptainer", &starter] {
        let mut patch = Command::new("patchelf");
        patch.args(["--set-interpreter", &format!("{LIBRARY}/{loader}")]);
        patch.args([
            "--set-rpath",
            &format!("{LIBRARY}:/lib/{folder}:/usr/lib/{folder}"),
        ]);
        program::show(patch.arg(program.join(binary)))?;
    }
    for name in ["session", "source"] {
        make(&Path::new("/var/lib/apptainer/mnt").join(name))?;
    }
    configure(&program.join("etc/apptainer/apptainer.conf"))?;
    copy(&program.join("etc/apptainer"), Path::new("/etc"))?;
    let libraries = Path::new("/usr/lib").join(folder);
    copy(
        &program.join("usr/lib").join(folder).join("apptainer"),
        &libraries,
    )?;
    // The program itself last: it is there when all of it is.
    copy(&program.join("usr/bin/apptainer"), Path::new("/usr/bin"))
}

fn configure(file: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(file).map_err(Failure::file("read apptainer.conf"))?;
    let set = |line: &str| {
        let wanted = SETTINGS
            .iter()
            .find(|(key, _)| line.starts_with(&format!("{key} =")));
        wanted.map_or_else(
            || line.to_owned(),
            |(key, value)| format!("{key} = {value}"),
        )
    };
    let lines: Vec<String> = text.lines().map(set).collect();
    fs::write(file, lines.join("\n") + "\n").map_err(Failure::file("write apptainer.conf"))
}

fn copy(from: &Path, into: &Path) -> Result<(), Failure> {
    program::show(Command::new("cp").arg("-a").arg(from).arg(into))
}

fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::file(format!("make {}", folder.display())))
}

fn lacking(what: &str) -> Failure {
    Failure::Lacking {
        what: what.to_owned(),
        remedy: "install apptainer by hand: https://apptainer.org/docs".to_owned(),
    }
}
