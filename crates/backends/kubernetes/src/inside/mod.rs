//! `warden pod …`: what happens in a pod before its warden serves.
//!
//! Kubernetes has no field that says "no network", puts its own address into every container's
//! environment, and bounds neither open files nor, for most clusters, processes. So the pod looks at what
//! it reaches, and ends with words where that is more than was accepted; then this process bounds itself,
//! drops the cluster's variables and becomes the warden.

mod interfaces;
mod look;
mod words;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, setrlimit};

use look::PodSurroundings;
use words::PodWords;

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;
/// sysexits(3): the workspace cannot be written.
const CANNOT_CREATE: u8 = 73;
/// sysexits(3): a bound cannot be set, or the program cannot become the warden.
const OS_ERROR: u8 = 71;
/// sysexits(3): the pod reaches what it should not. The gateway knows the refusal by this number.
pub const REACHES: u8 = 78;

/// Some networks enforce their policies only seconds after a pod started.
const LOOK_AGAIN_INTERVAL: Duration = Duration::from_millis(500);

/// The cluster's own variables, which come in whatever the pod asks for.
const OF_THE_CLUSTER: &str = "KUBERNETES_";

pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(words) = PodWords::parse(words) else {
        return ExitCode::from(USAGE);
    };
    if let Err(reached) = wait_until_sealed(&words) {
        return end(REACHES, &format!("this pod reaches {reached}"));
    }
    if !is_writable(Path::new(".")) {
        let why = "the workspace cannot be written: the driver of its volume does not give it to the \
                   pod's user (fsGroup)";
        return end(CANNOT_CREATE, why);
    }
    if let Err(error) = bound(&words) {
        return end(OS_ERROR, &format!("cannot bound this pod: {error}"));
    }
    let kept = env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        !name.starts_with(OF_THE_CLUSTER) || words.keep.iter().any(|kept| *kept == *name)
    });
    // A fresh image of the same program: its environment cannot be changed otherwise without `unsafe`.
    let failed = Command::new("/proc/self/exe")
        .arg("sealed")
        .arg("serve")
        .args(&words.serve)
        .env_clear()
        .envs(kept.collect::<Vec<_>>())
        .exec();
    end(OS_ERROR, &format!("cannot become the warden: {failed}"))
}

/// Volumes of some drivers keep the owner and the mode that their folder has on the node. Every command
/// would fail there, each with words of its own.
fn is_writable(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// What it reaches in the end, as a person would say it.
fn wait_until_sealed(words: &PodWords) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let found = PodSurroundings::of_this_pod(&words.api).look();
        let open: Vec<_> = found
            .into_iter()
            .filter(|found| !words.accepted.iter().any(|name| name == found.risk))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        // A route does not go away; what a policy closes does.
        let lasting = open.iter().any(|found| found.risk == look::ROUTE);
        if lasting || begun.elapsed() >= words.settle {
            let said = open.iter().map(ToString::to_string);
            return Err(said.collect::<Vec<_>>().join(", "));
        }
        sleep(LOOK_AGAIN_INTERVAL);
    }
}

/// Both sides of each bound, so that nothing below can raise it: nobody here is root.
fn bound(words: &PodWords) -> io::Result<()> {
    let set = |resource, most: u64| {
        let both = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, both)
    };
    set(Resource::Core, 0)?;
    set(Resource::Nproc, words.processes)?;
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    set(
        Resource::Nofile,
        hard.map_or(words.files, |hard| hard.min(words.files)),
    )?;
    Ok(())
}

/// The last line on stderr is what the cluster keeps of a container that failed.
fn end(code: u8, said: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{said}");
    ExitCode::from(code)
}
