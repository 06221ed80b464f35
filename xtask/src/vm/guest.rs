//! One emulated machine: booted, spoken to over ssh, and cut off from its power.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::LONGEST_BOOT;
use super::children::{spawn, with_us};
use super::image::{self, OsRelease, VmImage};
use super::payload::GuestPayload;
use super::qemu::VmHardware;
use crate::failure::ChoreFailure;
use crate::{program, say};

/// A guest that runs as long as this does, and no longer.
#[derive(Debug)]
pub(crate) struct VmGuest {
    /// In its folder are its disk and what it says on its console; the folder is removed at the end.
    hardware: VmHardware,
    key: PathBuf,
    port: u16,
    qemu: Child,
    /// A greeting costs an emulated processor seconds, so that commands go through connections that are
    /// there: both users' after the first boot, root's alone after the next ones.
    connections: Vec<Child>,
    boot: Duration,
}

/// Who a command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestUser {
    Root,
    Person,
}

/// What a command in a guest said.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// None if it was ended for taking too long, or ssh itself failed.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

/// For a command that has nothing to do but answer.
pub(crate) const SHORT: Duration = Duration::from_secs(90);
/// For one that starts a sandbox or a service.
pub(crate) const LONG: Duration = Duration::from_secs(300);

const FOLDER: &str = "run-";
/// A port that was free may be somebody's a moment later, and an emulated kernel may stumble.
const BOOTS: u32 = 2;

impl VmGuest {
    /// Boots a copy of the image with our programs in it.
    pub(crate) fn boot(
        release: OsRelease,
        image: &VmImage,
        payload: &GuestPayload,
    ) -> Result<Self, ChoreFailure> {
        let folder = image::folder()?.join(format!("{FOLDER}{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(ChoreFailure::file("make a folder for a machine"))?;
        let disk = folder.join("disk");
        let mut copy = Command::new("cp");
        copy.args(["--sparse=always", "--reflink=auto"]);
        program::show(copy.arg(image.disk()).arg(&disk))?;
        let port = free_port()?;
        let hardware = VmHardware {
            target: release.target(),
            kernel: image.kernel(),
            initrd: image.initrd(),
            archive: payload.archive().to_owned(),
            folder,
        };
        let mut guest = Self {
            qemu: hardware.start(port)?,
            hardware,
            key: image::key()?,
            port,
            connections: Vec::new(),
            boot: Duration::ZERO,
        };
        guest.wait_until_up()?;
        guest.connect(&GuestUser::BOTH)?;
        let unpack = "tar -xf /dev/vdb -C /usr/local/bin && sync";
        let unpacked = guest.run(GuestUser::Root, unpack, LONG)?;
        unpacked.must("carry the programs in")?;
        Ok(guest)
    }

    /// Kernel, systemd, and how long it took to come up.
    pub(crate) fn describe(&self) -> Result<String, ChoreFailure> {
        let asked = "uname -r; systemctl --version | head -n 1";
        let said = self.run(GuestUser::Root, asked, SHORT)?;
        let facts = said.out.lines().collect::<Vec<_>>().join(", ");
        Ok(format!(
            "{facts}; ssh after {:.0} s",
            self.boot.as_secs_f64()
        ))
    }

    /// Runs a script and waits for it, at most so long.
    pub(crate) fn run(
        &self,
        who: GuestUser,
        script: &str,
        at_most: Duration,
    ) -> Result<CommandOutput, ChoreFailure> {
        // In the foreground, so that whoever interrupts us interrupts it too.
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=5"]);
        command.arg(at_most.as_secs().to_string());
        command.arg("ssh").args(self.ssh_words()).arg(who.address());
        let begun = Instant::now();
        let said = program::listen(command.arg(script))?;
        let code = said
            .status
            .code()
            .filter(|code| *code < 255 && *code != 124);
        Ok(CommandOutput {
            code,
            out: String::from_utf8_lossy(&said.stdout).into_owned(),
            err: String::from_utf8_lossy(&said.stderr).into_owned(),
            took: begun.elapsed(),
        })
    }

    /// Whether anybody is there.
    pub(crate) fn answers(&self) -> bool {
        let asked = self.run(GuestUser::Root, "true", SHORT);
        asked.is_ok_and(|said| said.code == Some(0))
    }

    /// A port in the guest for each of these ports of ours, until the child is ended.
    pub(crate) fn tunnel(&self, ports: &[(u16, u16)]) -> Result<Child, ChoreFailure> {
        let mut ssh = with_us("ssh");
        ssh.args(self.ssh_words()).args(["-S", "none", "-N", "-T"]);
        ssh.args(["-o", "ExitOnForwardFailure=yes"]);
        for (inside, ours) in ports {
            ssh.args(["-R", &format!("127.0.0.1:{inside}:127.0.0.1:{ours}")]);
        }
        spawn(ssh.arg(GuestUser::Root.address()))
    }

    /// The end of the power: nothing is written any more, and what was only in memory is gone.
    pub(crate) fn cut_power(&mut self) -> Result<(), ChoreFailure> {
        for mut connection in self.connections.drain(..) {
            // It may have ended by itself.
            drop(connection.kill());
            drop(connection.wait());
        }
        self.qemu.kill().map_err(ChoreFailure::file("end QEMU"))?;
        self.qemu
            .wait()
            .map_err(ChoreFailure::file("wait for QEMU"))?;
        Ok(())
    }

    /// Boots from the disk as it was left.
    pub(crate) fn power_on(&mut self) -> Result<(), ChoreFailure> {
        self.port = free_port()?;
        self.qemu = self.hardware.start(self.port)?;
        self.wait_until_up()?;
        self.connect(&[GuestUser::Root])
    }

    pub(crate) fn restart(&mut self) -> Result<(), ChoreFailure> {
        self.cut_power()?;
        self.power_on()
    }

    /// How long the last boot took, until ssh answered.
    pub(crate) fn boot_time(&self) -> Duration {
        self.boot
    }

    /// Says how to get in, and stays until the end of our input.
    pub(crate) fn wait_for_a_person(&self) -> Result<(), ChoreFailure> {
        let words = self.ssh_words().join(" ");
        for who in [GuestUser::Root, GuestUser::Person] {
            say::plain(&format!("ssh {words} {}", who.address()));
        }
        say::plain("It ends, and is forgotten, when the input does (Ctrl-D).");
        let mut sink = Vec::new();
        let read = std::io::stdin().read_to_end(&mut sink);
        read.map(drop).map_err(ChoreFailure::file("read the input"))
    }

    fn wait_until_up(&mut self) -> Result<(), ChoreFailure> {
        for boot in 1..=BOOTS {
            let begun = Instant::now();
            let ended = loop {
                if self.answers() {
                    self.boot = begun.elapsed();
                    return Ok(());
                }
                let ended = self.qemu.try_wait();
                let ended = ended.map_err(ChoreFailure::file("look after QEMU"))?;
                if ended.is_some() || begun.elapsed() > LONGEST_BOOT {
                    break ended;
                }
                sleep(Duration::from_secs(1));
            };
            say::note(&match ended {
                Some(status) => format!("QEMU ended in the middle of a boot ({status})"),
                None => format!("nobody answered for {} s", LONGEST_BOOT.as_secs()),
            });
            say::note(&self.console());
            if boot < BOOTS {
                self.cut_power()?;
                self.port = free_port()?;
                self.qemu = self.hardware.start(self.port)?;
            }
        }
        Err(ChoreFailure::Lacking {
            what: "the machine does not come up".to_owned(),
            remedy: "what it said last stands above; is this one overloaded?".to_owned(),
        })
    }

    /// Where ssh finds no such connection, it makes one of its own for each command.
    fn connect(&mut self, users: &[GuestUser]) -> Result<(), ChoreFailure> {
        for who in users {
            let mut ssh = with_us("ssh");
            ssh.args(self.ssh_words()).args(["-M", "-N", "-T"]);
            self.connections.push(spawn(ssh.arg(who.address()))?);
        }
        Ok(())
    }

    /// The last lines of the console.
    fn console(&self) -> String {
        let said = fs::read(self.hardware.folder.join("console")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<_> = said.lines().rev().take(12).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n    ")
    }

    fn ssh_words(&self) -> Vec<String> {
        let mut words = vec![
            "-i".to_owned(),
            self.key.display().to_string(),
            "-p".to_owned(),
            self.port.to_string(),
        ];
        // The port differs at each boot, and with it the name of the connection.
        let connection = self.hardware.folder.join("ssh-%r-%p");
        words.extend(["-S".to_owned(), connection.display().to_string()]);
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            // Whoever gives up early and comes again keeps a slow machine busy with greetings.
            "ConnectTimeout=80",
            "BatchMode=yes",
            // Without the newer exchanges of keys, which take an emulated processor seconds.
            "KexAlgorithms=curve25519-sha256",
            "ServerAliveInterval=20",
            "ServerAliveCountMax=6",
        ] {
            words.extend(["-o".to_owned(), option.to_owned()]);
        }
        words
    }
}

impl Drop for VmGuest {
    fn drop(&mut self) {
        if let Err(why) = self.cut_power() {
            say::note(&why.to_string());
        }
        if let Err(why) = fs::remove_dir_all(&self.hardware.folder) {
            say::note(&format!("{} stays: {why}", self.hardware.folder.display()));
        }
    }
}

impl GuestUser {
    pub(crate) const BOTH: [Self; 2] = [Self::Root, Self::Person];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Person => "person",
        }
    }

    fn address(self) -> String {
        format!("{}@127.0.0.1", self.name())
    }
}

impl CommandOutput {
    /// Everything it said, for a person.
    pub(crate) fn all(&self) -> String {
        let code = self.code.map_or("no end in time".to_owned(), |code| {
            format!("exit code {code}")
        });
        format!("{code}: {}{}", self.out, self.err)
    }

    fn must(&self, what: &str) -> Result<(), ChoreFailure> {
        if self.code == Some(0) {
            return Ok(());
        }
        Err(ChoreFailure::Lacking {
            what: format!("cannot {what}"),
            remedy: self.all(),
        })
    }
}

/// Removes the disks of runs that were killed. Their machines ended with them.
pub(crate) fn remove_leftovers() -> Result<(), ChoreFailure> {
    let entries =
        fs::read_dir(image::folder()?).map_err(ChoreFailure::file("look for leftovers"))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(FOLDER) else {
            continue;
        };
        if !Path::new("/proc").join(owner).exists() {
            say::note(&format!("removing what a killed run left: {name}"));
            fs::remove_dir_all(entry.path())
                .map_err(ChoreFailure::file(format!("remove {name}")))?;
        }
    }
    Ok(())
}

fn free_port() -> Result<u16, ChoreFailure> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(ChoreFailure::file("find a free port"))
}
