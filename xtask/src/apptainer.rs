//! Apptainer, which Debian 12 has no package of: that of Debian's next release, with its own C
//! library beside it, so that nothing else on the machine changes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::packages::DebianRelease;
use crate::{apt, leftovers, machine, packages, program, say};

/// Where its C library goes.
const LIBRARY: &str = "/opt/apptainer-libc";

const LIBRARIES: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "libresolv.so.2",
];

/// Each with the folder it is unpacked in.
const PACKAGES: [(&str, &str); 2] = [("apptainer", "program"), ("libc6", "library")];

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
pub(crate) fn install() -> Result<(), ChoreFailure> {
    if is_there() {
        return Ok(());
    }
    if program::works(Command::new("apt-cache").args(["show", "apptainer"])) {
        return apt::AptPackages::default().install("apptainer");
    }
    say::note("Apptainer from Debian sid, with its own C library in /opt/apptainer-libc");
    let work = leftovers::folder("apptainer");
    let done =
        packages::fetch(&work, DebianRelease::here("sid"), &PACKAGES).and_then(|()| place(&work));
    let _ = fs::remove_dir_all(&work);
    done
}

fn place(work: &Path) -> Result<(), ChoreFailure> {
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

fn configure(file: &Path) -> Result<(), ChoreFailure> {
    let text = fs::read_to_string(file).map_err(ChoreFailure::file("read apptainer.conf"))?;
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
    fs::write(file, lines.join("\n") + "\n").map_err(ChoreFailure::file("write apptainer.conf"))
}

fn copy(from: &Path, into: &Path) -> Result<(), ChoreFailure> {
    program::show(Command::new("cp").arg("-a").arg(from).arg(into))
}

fn make(folder: &Path) -> Result<(), ChoreFailure> {
    fs::create_dir_all(folder).map_err(ChoreFailure::file(format!("make {}", folder.display())))
}

fn lacking(what: &str) -> ChoreFailure {
    ChoreFailure::Lacking {
        what: what.to_owned(),
        remedy: "install apptainer by hand: https://apptainer.org/docs".to_owned(),
    }
}
