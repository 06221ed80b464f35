//! The texts of two units: the gateway, and the place of its sandboxes.
//!
//! systemd puts a service's new main process into the service's cgroup, which the kernel refuses while
//! sandboxes with limits live below it. So they live in a unit of their own beside it, which a restart of
//! the gateway leaves alone (`docs/decisions/0017`).

use std::path::Path;
use std::time::Duration;

use hermetic_config::HomeFolder;

use super::{SystemdScope, SystemdService, VARIABLE};

#[derive(Debug)]
pub(crate) struct SystemdUnit<'a> {
    pub(crate) service: &'a SystemdService,
    pub(crate) program: &'a Path,
    pub(crate) home: &'a HomeFolder,
    /// Both units are in it and nothing else is.
    pub(crate) slice: &'a str,
    /// Of a system unit; root if nobody is named.
    pub(crate) run_as: Option<&'a str>,
    /// How long turns may go on when it is stopped.
    pub(crate) grace: Duration,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) commands: CommandPlace,
    pub(crate) origin: UnitOrigin,
}

/// Who puts a unit in its place, and removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitOrigin {
    /// `hermetic gateway install`.
    Installed,
    /// A package of the system's.
    Package,
}

/// Where commands run, which is what the gateway's own rights have to suffice for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPlace {
    /// In sandboxes, or on other machines.
    Apart,
    /// On this host as the gateway's own children: what binds it binds them.
    Here,
}

/// Beyond the turns' own time.
const TO_END: Duration = Duration::from_secs(60);

/// What tells the gateway the name of the unit that its sandboxes live in; the native backend reads it.
const SANDBOXES_VARIABLE: &str = "HERMETIC_SANDBOXES_UNIT";

/// For every gateway whose commands run elsewhere. Sandboxes inherit what is said about system calls, so
/// nothing is here that a program in one may need: no `RestrictNamespaces`, `RestrictSUIDSGID` (which takes
/// `openat2` away), `MemoryDenyWriteExecute` or `ProtectHostname`.
const CONFINED: &str = "\
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
";

/// By mounts, which only the system's manager can make. `/proc` stays as it is: where a part of it is
/// covered, the kernel refuses a sandbox of a plain user its own.
const CONFINED_BY_SYSTEM: &str = "\
PrivateDevices=yes
PrivateMounts=yes
ProtectClock=yes
ProtectKernelModules=yes
ProtectSystem=full
KeyringMode=private
";

/// Root's own sandboxes are built with these powers and have none of them; `/proc` may be covered here.
const CONFINED_ROOT: &str = "\
ProtectKernelLogs=yes
ProtectKernelTunables=yes
ProtectProc=invisible
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_KILL CAP_NET_ADMIN \
CAP_NET_BIND_SERVICE CAP_SETGID CAP_SETPCAP CAP_SETUID CAP_SYS_ADMIN CAP_SYS_PTRACE
";

/// A plain user's are built with the powers that a user namespace gives.
const CONFINED_USER: &str = "CapabilityBoundingSet=\n";

impl SystemdUnit<'_> {
    pub(crate) fn text(&self) -> String {
        let wanted_by = match self.service.keeper {
            SystemdScope::User => "default.target",
            SystemdScope::System => "multi-user.target",
        };
        let watchdog = self.watchdog.map_or_else(String::new, |every| {
            format!(
                "# As long as it answers /health.\nWatchdogSec={}\n",
                every.as_secs()
            )
        });
        let sandboxes = self.service.sandboxes();
        format!(
            "\
{origin}[Unit]
Description=Hermetic gateway
Wants=network-online.target
Requires={sandboxes}
After=network-online.target {sandboxes}

[Service]
Type=notify
{user}Slice={slice}
Environment={VARIABLE}={written}
Environment={SANDBOXES_VARIABLE}={sandboxes}
ExecStart={program} --home {home} gateway run
Restart=on-failure
RestartSec=5
# The configuration is wrong: starting again does not mend it.
RestartPreventExitStatus=78
# What it started elsewhere goes on; the next start adopts it.
KillMode=process
# It tries a sandbox and looks after those that are left before it is ready.
TimeoutStartSec=300
TimeoutStopSec={stop}
LimitNOFILE=524288
{watchdog}
{confined}
[Install]
WantedBy={wanted_by}
",
            origin = self.origin.header(),
            user = self.user(),
            slice = self.slice,
            written = self.service.written(),
            program = quoted(self.program),
            home = quoted(self.home.root()),
            stop = (self.grace + TO_END).as_secs(),
            confined = self.confined(),
        )
    }

    /// The unit that sandboxes live in: a process that waits, and a cgroup that is given away.
    pub(crate) fn sandboxes_text(&self) -> String {
        let lend = self.run_as.map_or_else(String::new, |user| {
            format!(
                "# Only these two units are in the slice, and both are {user}'s: the gateway may move what it\n\
                 # starts from the one into the other.\n\
                 ExecStartPre=-+chown {user} {}/cgroup.procs\n",
                self.slice_folder()
            )
        });
        let confined = match self.service.keeper {
            SystemdScope::System => {
                "CapabilityBoundingSet=\nPrivateNetwork=yes\nProtectHome=yes\nProtectSystem=strict\n"
            }
            SystemdScope::User => "",
        };
        format!(
            "\
{origin}# Stopping it ends every sandbox of the gateway; restarting the gateway does not.
[Unit]
Description=Sandboxes of the Hermetic gateway

[Service]
Type=exec
{user}Slice={slice}
# Each sandbox gets a cgroup of its own in here.
Delegate=yes
TasksMax=infinity
OOMPolicy=continue
{lend}ExecStart=sleep infinity
Restart=always
TimeoutStopSec=10
# These bind the one process above, and no sandbox.
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=none
SystemCallArchitectures=native
SystemCallFilter=@system-service
{confined}",
            origin = self.origin.header(),
            user = self.user(),
            slice = self.slice,
        )
    }

    fn user(&self) -> String {
        self.run_as
            .map_or_else(String::new, |user| format!("User={user}\n"))
    }

    fn confined(&self) -> String {
        if self.commands == CommandPlace::Here {
            return "# Commands run on this host as its children: what would bind it would bind them.\n"
                .to_owned();
        }
        let more = match (self.service.keeper, self.run_as) {
            (SystemdScope::User, _) => [""; 2],
            (SystemdScope::System, None) => [CONFINED_BY_SYSTEM, CONFINED_ROOT],
            (SystemdScope::System, Some(_)) => [CONFINED_BY_SYSTEM, CONFINED_USER],
        };
        format!("{CONFINED}{}", more.concat())
    }

    /// Where the slice is in the unified hierarchy: each dash in its name is a level.
    fn slice_folder(&self) -> String {
        let mut folder = String::from("/sys/fs/cgroup");
        let stem = self.slice.trim_end_matches(".slice");
        for (end, _) in stem.match_indices('-') {
            folder.push_str(&format!("/{}.slice", &stem[..end]));
        }
        format!("{folder}/{}", self.slice)
    }

    /// Whether a unit of this text is for this home.
    pub(crate) fn serves(text: &str, home: &HomeFolder) -> bool {
        let home = format!("--home {} gateway run", quoted(home.root()));
        text.lines()
            .any(|line| line.starts_with("ExecStart=") && line.ends_with(&home))
    }
}

impl UnitOrigin {
    fn header(self) -> &'static str {
        match self {
            Self::Installed => {
                "# Written by `hermetic gateway install`; `hermetic gateway uninstall` removes it.\n"
            }
            Self::Package => {
                "# Of the package hermetic. Changes go into `systemctl edit`; with another backend than a sandbox,\n\
                 # `hermetic --home /var/lib/hermetic/.hermes gateway install --system` writes one that fits.\n"
            }
        }
    }
}

/// As systemd reads it back: quotes, `%` for specifiers and `$` for variables mean themselves.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for c in path.display().to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests;
