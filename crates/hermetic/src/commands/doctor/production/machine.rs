//! What is found out about this machine, and nothing else is asked of it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hermetic_access::PairedRole;
use hermetic_app::{self as app, BackendCaller};
use hermetic_config::{Config, SettingOrigin, SettingValue, resolve_gateway_backend};
use hermetic_sandbox::BackendReadiness;
use hermetic_types::{BackendKind, Clock as _, InstallationId, Platform, SystemClock};

use crate::commands::backup::LastBackup;
use crate::commands::migrate::running_hermes;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayState, ObservedGateway, look};
use crate::service::{SystemdScope, SystemdService, linger};

#[derive(Debug)]
pub(super) struct MachineFacts {
    /// The backends that chats use, and how each is here.
    pub(super) backends: Vec<(BackendKind, Result<BackendReadiness, String>)>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) cores: usize,
    pub(super) disk_free_bytes: Option<u64>,
    pub(super) runs_as_root: bool,
    /// Files and folders that others get at, with their modes.
    pub(super) exposed: Vec<(PathBuf, u32)>,
    /// Of the gateway that runs.
    pub(super) listeners: Vec<SocketAddr>,
    pub(super) running_version: Option<String>,
    pub(super) keeper: ServiceKeeper,
    /// People who were let in by a code as operators.
    pub(super) paired_operators: usize,
    pub(super) clock: ClockSync,
    pub(super) last_backup: Option<LastBackup>,
    pub(super) is_backup_on_the_same_disk: bool,
    /// Gateways of Hermes on our accounts.
    pub(super) hermes: Vec<u32>,
    /// Seconds since 1970.
    pub(super) now: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceKeeper {
    Unit,
    /// It is there, and nobody starts it with the machine.
    DisabledUnit,
    /// A user's own, which ends when that user logs out.
    EndsWithSession,
    Nobody,
    NoSystemd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockSync {
    Synced,
    Adrift,
    Unknown,
}

impl MachineFacts {
    pub(super) fn look(
        runtime: &tokio::runtime::Runtime,
        config: &Config,
    ) -> Result<Self, CommandFailure> {
        let home = config.home();
        let running = match look(home) {
            ObservedGateway::Running(state) => state,
            ObservedGateway::Stopped(_) | ObservedGateway::Unknown(_) => None,
        };
        let last_backup = LastBackup::of(home);
        Ok(Self {
            backends: backends(runtime, config)?,
            memory_bytes: app::machine_memory(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            disk_free_bytes: free_bytes(&home.state()).or_else(|| free_bytes(home.root())),
            runs_as_root: runs_as_root(home.root(), running.as_ref()),
            exposed: exposed(config),
            listeners: running
                .as_ref()
                .map_or_else(Vec::new, |state| listeners(state.pid)),
            running_version: running.map(|state| state.version),
            keeper: keeper(config)?,
            paired_operators: runtime.block_on(paired_operators(config)),
            clock: clock(),
            is_backup_on_the_same_disk: last_backup
                .as_ref()
                .is_some_and(|last| is_on_one_disk(&last.file, home.root())),
            last_backup,
            hermes: running_hermes(config),
            now: GatewayState::now(),
        })
    }
}

/// A backend that chats use, and what it says of itself or why it cannot be opened.
type SeenBackend = (BackendKind, Result<BackendReadiness, String>);

fn backends(
    runtime: &tokio::runtime::Runtime,
    config: &Config,
) -> Result<Vec<SeenBackend>, CommandFailure> {
    // A look makes nothing: a home without a name gets none by it.
    let known = app::known_installation(config.home());
    let installation = known.unwrap_or_else(InstallationId::random);
    let resolved = resolve_gateway_backend(config)?;
    let platforms = resolved.platforms.values().copied();
    let kinds: BTreeSet<_> = platforms.chain([resolved.backend]).collect();
    let look = |kind| {
        let opened = app::backend(config, &installation, kind, BackendCaller::Onlooker);
        let readiness = opened.map(|backend| runtime.block_on(backend.readiness()));
        (kind, readiness.map_err(|failure| failure.to_string()))
    };
    Ok(kinds.into_iter().map(look).collect())
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}

/// The gateway that runs knows best; else it will be whoever owns the home.
fn runs_as_root(home: &Path, running: Option<&GatewayState>) -> bool {
    let process = running.map(|state| PathBuf::from(format!("/proc/{}", state.pid)));
    let owner = process
        .and_then(|process| fs::metadata(process).ok())
        .or_else(|| fs::metadata(home).ok());
    owner.is_some_and(|owner| owner.uid() == 0)
}

/// Whatever holds secrets or rows, and is not its owner's alone.
fn exposed(config: &Config) -> Vec<(PathBuf, u32)> {
    let (home, state) = (config.home(), config.home().state());
    let places = app::audit_places(config);
    let private = [
        home.dotenv_file(),
        state.clone(),
        state.join("state.db"),
        state.join("egress-ca.key"),
        places.key().to_owned(),
    ];
    let others_get_at = |path: PathBuf, bits: u32| {
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        (mode & bits != 0).then_some((path, mode))
    };
    // Whoever cannot enter our folder gets at nothing in it, whatever the mode of a file there.
    let is_closed = others_get_at(state.clone(), 0o077).is_none();
    let is_out_of_reach = |path: &PathBuf| is_closed && path.starts_with(&state) && *path != state;
    let mut exposed: Vec<_> = private
        .into_iter()
        .filter(|path| !is_out_of_reach(path))
        .filter_map(|path| others_get_at(path, 0o077))
        .collect();
    // Others may look at these, where no secret is in them; whoever writes them decides about everything.
    exposed.extend(others_get_at(home.root().to_owned(), 0o022));
    let file = home.config_file();
    let others_may = match holds_secret(config, &file) {
        true => 0o077,
        false => 0o022,
    };
    exposed.extend(others_get_at(file, others_may));
    exposed
}

/// Whether a value that never prints, or may hold one, stands in the file.
fn holds_secret(config: &Config, file: &Path) -> bool {
    config.settings().iter().any(|setting| {
        let is_here =
            matches!(setting.origin(), SettingOrigin::File { file: from, .. } if from == file);
        let may_be = matches!(
            setting.value(),
            Some(SettingValue::Secret(_) | SettingValue::Pairs(_) | SettingValue::Tree(_))
        );
        is_here && may_be
    })
}

/// The sockets of a process that wait for connections.
fn listeners(pid: u32) -> Vec<SocketAddr> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let links = links
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets: BTreeSet<String> = links
        .filter_map(|link| {
            let name = link.to_str()?.strip_prefix("socket:[")?;
            Some(name.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut listeners = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        let rows = text.lines().skip(1);
        listeners.extend(rows.filter_map(|row| listening(row, &sockets)));
    }
    listeners
}

/// `sl local remote state … inode`, with the address in the machine's order of bytes.
fn listening(row: &str, sockets: &BTreeSet<String>) -> Option<SocketAddr> {
    /// `TCP_LISTEN`
    const LISTEN: &str = "0A";
    let fields: Vec<_> = row.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != LISTEN || !sockets.contains(*inode) {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = address.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    let address = match <[u8; 16]>::try_from(bytes.as_slice()) {
        Ok(six) => Ipv6Addr::from(six).to_canonical(),
        Err(_) => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.as_slice()).ok()?).into(),
    };
    Some(SocketAddr::new(address, port))
}

/// Nobody where there is no store: a look makes none.
async fn paired_operators(config: &Config) -> usize {
    let is_there = match app::StorePlace::of(config) {
        Ok(app::StorePlace::File(path)) => path.exists(),
        Ok(app::StorePlace::Postgres(_)) => true,
        Err(_) => false,
    };
    if !is_there {
        return 0;
    }
    let Ok(store) = app::store(config).await else {
        return 0;
    };
    let pairing = app::pairing(&store);
    let mut operators = 0;
    for platform in Platform::ALL {
        let standing = pairing.standing(platform, SystemClock.now()).await;
        let approved = standing
            .map(|standing| standing.approved)
            .unwrap_or_default();
        let people = approved.iter();
        operators += people
            .filter(|one| one.role == PairedRole::Operator)
            .count();
    }
    operators
}

fn keeper(config: &Config) -> Result<ServiceKeeper, CommandFailure> {
    if let Some(service) = SystemdService::installed(config.home())? {
        let ends = service.keeper == SystemdScope::User && linger::is_missing_for().is_some();
        return Ok(match service.is_enabled() {
            Some(false) => ServiceKeeper::DisabledUnit,
            _ if ends => ServiceKeeper::EndsWithSession,
            _ => ServiceKeeper::Unit,
        });
    }
    let is_there = SystemdScope::System.is_there() || SystemdScope::User.is_there();
    Ok(match is_there {
        true => ServiceKeeper::Nobody,
        false => ServiceKeeper::NoSystemd,
    })
}

/// What systemd says, or the sign that its own client leaves.
fn clock() -> ClockSync {
    if Path::new("/run/systemd/timesync/synchronized").exists() {
        return ClockSync::Synced;
    }
    let asked = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let said = asked.ok().filter(|output| output.status.success());
    match said.as_ref().map(|output| output.stdout.trim_ascii()) {
        Some(b"yes") => ClockSync::Synced,
        Some(b"no") => ClockSync::Adrift,
        _ => ClockSync::Unknown,
    }
}

fn is_on_one_disk(file: &Path, home: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|about| about.dev()).ok();
    device(file).is_some_and(|one| device(home) == Some(one))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_that_listens_is_found_with_its_address() {
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let found = listeners(std::process::id());
        for listener in [four, everywhere] {
            let address = listener.local_addr().unwrap();
            assert!(found.contains(&address), "{address} in {found:?}");
        }
    }
}
