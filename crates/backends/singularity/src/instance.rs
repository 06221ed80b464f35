//! How an instance is made: every word of the runtime's command line in one place.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_native::{CONTAINED_CAGE, ContainerLayout, KeptLimits, OuterContainer};
use hermetic_sandbox::{BackendError, SandboxSpec};
use hermetic_types::{InstallationId, SandboxId, SandboxLimits};
use rustix::process::getuid;

use crate::image::ImageSource;
use crate::leftovers;
use crate::runtime::{ApptainerRuntime, lacking};
use crate::stage;

/// Makes an instance for each sandbox.
#[derive(Debug)]
pub(crate) struct InstanceMaker {
    pub(crate) runtime: Option<ApptainerRuntime>,
    pub(crate) installation: InstallationId,
    /// The list of instances that the runtime keeps for us.
    pub(crate) list: PathBuf,
    pub(crate) stage: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) cache: PathBuf,
    /// Whether the runtime was seen to refuse limits, or is known to.
    pub(crate) unlimited: AtomicBool,
}

/// What the cage needs as root to build itself, and has given up by the time anything runs in it.
const POWERS: &str = "CAP_SYS_ADMIN,CAP_NET_ADMIN,CAP_SETUID,CAP_SETGID,CAP_SETPCAP,CAP_CHOWN,\
                      CAP_DAC_OVERRIDE,CAP_FOWNER,CAP_KILL";

/// Contained in everything, with no network, and nothing of the host's or the user's shown.
const SEAL: [&str; 12] = [
    "--containall",
    "--cleanenv",
    "--no-home",
    "--no-umask",
    "--no-mount",
    "bind-paths,home,tmp,cwd,sys",
    "--net",
    "--network=none",
    "--dns=127.0.0.1",
    "--hostname=hermetic",
    "--no-privs",
    "--no-eval",
];

impl OuterContainer for InstanceMaker {
    fn start(
        &self,
        spec: &SandboxSpec,
        layout: ContainerLayout<'_>,
    ) -> Result<Child, BackendError> {
        let runtime = self.runtime.as_ref().ok_or_else(lacking)?;
        let image = ImageSource::of(&spec.system, &self.cache)?;
        let mut command = runtime.command(&self.list);
        self.write(&mut command, spec, &layout, image.place())?;
        command
            // Handed on as stdin, which is the one thing that every program of the runtime's
            // inherits: the lock lasts as long as any of them.
            .stdin(layout.lock)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BackendError::failed("start the instance", source))
    }

    fn clear(&self, id: &SandboxId) -> Result<(), BackendError> {
        leftovers::clear(&self.list, &self.name(id))
    }

    fn files(&self, id: &SandboxId) -> PathBuf {
        self.scratch.join(self.name(id))
    }

    fn keeps(&self) -> KeptLimits {
        let limited = !self.unlimited.load(Ordering::Relaxed);
        KeptLimits {
            memory: limited,
            cpu: limited,
        }
    }
}

impl InstanceMaker {
    /// Says whose it is, so that nobody takes another's for his own.
    pub(crate) fn name(&self, id: &SandboxId) -> String {
        format!("hermetic-{}-{id}", self.installation)
    }

    /// Whether a start that failed for its limits is worth another try. Told by what was asked for: several
    /// may be refused at once, and each of them is.
    pub(crate) fn knows_no_limits(&self, asked: KeptLimits) -> bool {
        self.unlimited.store(true, Ordering::Relaxed);
        asked.memory
    }

    fn write(
        &self,
        command: &mut Command,
        spec: &SandboxSpec,
        layout: &ContainerLayout<'_>,
        image: &Path,
    ) -> Result<(), BackendError> {
        command.args(["--silent", "instance", "start"]).args(SEAL);
        match &layout.overlay {
            Some(overlay) => command.arg("--overlay").arg(overlay),
            None => command.arg("--writable-tmpfs"),
        };
        command.args(mount(&self.stage, Path::new(stage::PLACE), true)?);
        command.args(mount(
            &layout.control_dir,
            Path::new(ContainerLayout::CONTROL_DIR),
            true,
        )?);
        for (source, target) in layout.shows() {
            // The cage puts it in its place, and makes it read-only where it has to be.
            command.args(mount(source, &target, false)?);
        }
        if getuid().is_root() {
            command.args(["--add-caps", POWERS]);
        }
        if self.keeps().memory {
            command.args(limits(&spec.limits));
        }
        command
            .arg(image)
            .arg(self.name(&spec.id))
            .args(CONTAINED_CAGE);
        Ok(())
    }
}

/// Their list of fields knows no way to write a comma or a quote.
fn mount(source: &Path, target: &Path, read_only: bool) -> Result<[OsString; 2], BackendError> {
    let plain = |path: &Path| {
        let text = path.to_str()?;
        let odd = |one: char| one == ',' || one == '"' || one == '\\' || one.is_control();
        (!text.contains(odd)).then_some(text.to_owned())
    };
    let (Some(from), Some(to)) = (plain(source), plain(target)) else {
        return Err(BackendError::Refused {
            what: format!("showing {} inside", source.display()),
            why: "its path holds a comma, a quote, a backslash or what is no text".to_owned(),
        });
    };
    let read_only = if read_only { ",ro" } else { "" };
    let words = format!("type=bind,source={from},destination={to}{read_only}");
    Ok(["--mount".into(), words.into()])
}

fn limits(limits: &SandboxLimits) -> [String; 8] {
    let there = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    [
        "--memory".to_owned(),
        limits.memory_bytes.to_string(),
        // The same figure for memory and swap together: no swap.
        "--memory-swap".to_owned(),
        limits.memory_bytes.to_string(),
        "--pids-limit".to_owned(),
        // The runtime's own processes and threads are counted with the sandbox's.
        (limits.pids + RUNTIME_TASKS).to_string(),
        "--cpus".to_owned(),
        format!("{:.2}", limits.cpu.clamp(0.01, there)),
    ]
}

const RUNTIME_TASKS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_add_a_field() {
        let bad = ["/a,destination=/", "/a\"b", "/a\\b", "/a\nb"];
        for path in bad {
            assert!(
                mount(Path::new(path), Path::new("/x"), true).is_err(),
                "{path:?}"
            );
        }
        let [_, words] = mount(Path::new("/a b"), Path::new("/x"), true).unwrap();
        assert_eq!(words, "type=bind,source=/a b,destination=/x,ro");
    }

    fn instances(installation: &InstallationId) -> InstanceMaker {
        InstanceMaker {
            runtime: None,
            installation: installation.clone(),
            list: "/list".into(),
            stage: "/stage".into(),
            scratch: "/scratch".into(),
            cache: "/cache".into(),
            unlimited: AtomicBool::new(false),
        }
    }

    #[test]
    fn of_two_that_are_refused_for_their_limits_both_are_tried_again() {
        let instances = instances(&InstallationId::random());
        let (one, other) = (instances.keeps(), instances.keeps());
        assert!(instances.knows_no_limits(one));
        assert!(instances.knows_no_limits(other));
        let without = instances.keeps();
        assert!(!instances.knows_no_limits(without), "and only once");
    }

    #[test]
    fn a_name_says_whose_it_is() {
        let one = InstallationId::random();
        let instances = instances(&one);
        let id = SandboxId::random();
        assert_eq!(instances.name(&id), format!("hermetic-{one}-{id}"));
        assert!(instances.files(&id).ends_with(instances.name(&id)));
    }
}
