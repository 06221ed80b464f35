//! npm and pip, which fetch and unpack, and run nothing of what they fetched.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::fetcher_failure::FetchError;
use crate::preset::{PackageRegistry, PackageSource};

/// What is fetched: the version that stands in the preset, or one that the operator named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WantedVersion<'a> {
    /// With every checksum known beforehand.
    Locked,
    /// With the checksums that the registry tells.
    Named(&'a str),
}

/// The npm or pip of this machine, and the registry it fetches from.
#[derive(Clone, Debug)]
pub struct PackageClient {
    program: PathBuf,
    registry: Option<String>,
}

impl PackageClient {
    /// From the registry that it is set up for.
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            registry: None,
        }
    }

    /// The one of this machine that fetches from there.
    pub fn of(registry: PackageRegistry) -> Self {
        Self::new(Path::new(registry.client()))
    }

    /// From this registry.
    pub fn at(mut self, registry: &str) -> Self {
        self.registry = Some(registry.to_owned());
        self
    }
}

impl PackageRegistry {
    pub(crate) fn client(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "pip3",
        }
    }
}

/// Where the packages of a program in Python lie in its tree.
pub(crate) const PYTHON_LIBRARY: &str = "lib";

/// Half a gigabyte over a slow line. Nothing else tells a fetch that hangs from one that is slow.
const LONGEST_MINUTES: u64 = 30;
const WAIT_STEP: Duration = Duration::from_millis(100);
/// Looking means to walk through all that is there.
const STEPS_A_LOOK: u32 = 10;
/// Of its complaints. The rest is read and thrown away: a full pipe would hold it up.
const MOST_WORDS: usize = 64 << 10;

/// What npm and pip need to find their registry and a proxy. Nothing else of this process's environment is their
/// business.
const VARIABLES: [&str; 14] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CONFIG_HOME",
];

/// Where a package is unpacked, and where npm puts what it needs meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct StagingFolders<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) scratch: &'a Path,
}

/// Fetches the package and what it depends on into the tree. `lock` stays held as long as npm or pip lives, also
/// where we are killed.
pub(crate) fn fetch(
    client: &PackageClient,
    source: &PackageSource,
    version: WantedVersion<'_>,
    staging: &StagingFolders<'_>,
    lock: &File,
    mut look: impl FnMut(),
) -> Result<(), FetchError> {
    let mut command = match source.registry {
        PackageRegistry::Npm => npm(client, source, version, staging),
        PackageRegistry::PyPi => pip(client, source, version, staging),
    }
    .map_err(FetchError::Start)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // One that outlives us goes on writing: the next one has to wait for it.
    let inherited = fcntl_setfd(lock, FdFlags::empty());
    let child = command.spawn();
    inherited.and(fcntl_setfd(lock, FdFlags::CLOEXEC)).ok();
    let mut child = child.map_err(|error| not_started(source.registry, error))?;
    let words = child.stderr.take().map(listen);
    let ended = wait(&mut child, &mut look);
    let said = words.and_then(|words| words.join().ok());
    match ended? {
        true => Ok(()),
        false => {
            let version = match version {
                WantedVersion::Locked => source.version,
                WantedVersion::Named(version) => version,
            };
            let said = said.unwrap_or_default();
            Err(FetchError::of(&said, source.package, version))
        }
    }
}

/// The Python that pip fetches for: its own, as it says in `pip 23.0 from … (python 3.11)`.
pub(crate) fn python_of(client: &PackageClient) -> Result<String, FetchError> {
    let asked = plain(client).arg("--version").output();
    let said = asked.map_err(|error| not_started(PackageRegistry::PyPi, error))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.rsplit_once("(python ").map(|(_, rest)| rest.trim());
    let version = version.and_then(|rest| rest.strip_suffix(')'));
    let is_plain = |version: &&str| {
        version.len() < 8 && version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    match version.filter(is_plain) {
        Some(version) => Ok(version.to_owned()),
        None => Err(FetchError::NoPython {
            said: said.chars().filter(|c| !c.is_control()).take(200).collect(),
        }),
    }
}

fn not_started(registry: PackageRegistry, error: io::Error) -> FetchError {
    match (error.kind(), registry) {
        (io::ErrorKind::NotFound, PackageRegistry::Npm) => FetchError::NoNpm,
        (io::ErrorKind::NotFound, PackageRegistry::PyPi) => FetchError::NoPip,
        _ => FetchError::Start(error),
    }
}

/// The client with the part of our environment that is its business.
fn plain(client: &PackageClient) -> Command {
    let mut command = Command::new(&client.program);
    command
        .env_clear()
        .envs(env::vars_os().filter(|(name, _)| is_the_clients(name)));
    command
}

fn npm(
    client: &PackageClient,
    source: &PackageSource,
    version: WantedVersion<'_>,
    staging: &StagingFolders<'_>,
) -> io::Result<Command> {
    let StagingFolders { tree, scratch } = *staging;
    let mut npm = plain(client);
    match version {
        WantedVersion::Locked => {
            write_lock(source, tree)?;
            npm.arg("ci");
        }
        WantedVersion::Named(version) => {
            // Without one, npm takes the nearest folder above that has one for its project.
            fs::write(tree.join("package.json"), "{}")?;
            npm.args(["install", "--no-save", "--no-package-lock", "--"]);
            npm.arg(format!("{}@{version}", source.package));
        }
    }
    let settings = [
        ("npm_config_ignore_scripts", "true"),
        ("npm_config_audit", "false"),
        ("npm_config_fund", "false"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_bin_links", "false"),
        ("npm_config_allow_git", "none"),
    ];
    let registry = client.registry.iter();
    npm.current_dir(tree)
        .envs(settings)
        .env("npm_config_cache", scratch)
        .envs(registry.map(|url| ("npm_config_registry", url)));
    Ok(npm)
}

/// Wheels alone: whatever else there is would run to be built.
fn pip(
    client: &PackageClient,
    source: &PackageSource,
    version: WantedVersion<'_>,
    staging: &StagingFolders<'_>,
) -> io::Result<Command> {
    let StagingFolders { tree, scratch } = *staging;
    let mut pip = plain(client);
    pip.args([
        "install",
        "--only-binary=:all:",
        "--no-input",
        "--no-cache-dir",
    ]);
    pip.args(["--disable-pip-version-check", "--no-warn-script-location"]);
    pip.arg("--target").arg(tree.join(PYTHON_LIBRARY));
    match version {
        WantedVersion::Locked => {
            let list = scratch.join("requirements.txt");
            fs::write(&list, source.lock)?;
            pip.args(["--no-deps", "--require-hashes", "-r"]).arg(list);
        }
        WantedVersion::Named(version) => {
            pip.arg(format!("{}=={version}", source.package));
        }
    }
    let registry = client.registry.iter();
    pip.current_dir(tree)
        .env("TMPDIR", scratch)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .envs(registry.map(|url| ("PIP_INDEX_URL", url)));
    Ok(pip)
}

/// The lock file, and the manifest that it belongs to.
fn write_lock(source: &PackageSource, tree: &Path) -> io::Result<()> {
    let lock: serde_json::Value = serde_json::from_str(source.lock)?;
    fs::write(tree.join("package-lock.json"), source.lock)?;
    fs::write(tree.join("package.json"), lock["packages"][""].to_string())
}

fn is_the_clients(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    let lower = name.to_ascii_lowercase();
    let configures = lower.starts_with("npm_config_") || lower.starts_with("pip_");
    configures || VARIABLES.contains(&&*name)
}

fn wait(child: &mut Child, look: &mut impl FnMut()) -> Result<bool, FetchError> {
    let begun = Instant::now();
    for step in 1u32.. {
        if let Some(status) = child.try_wait().map_err(FetchError::Start)? {
            return Ok(status.success());
        }
        if begun.elapsed() > Duration::from_secs(LONGEST_MINUTES * 60) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(FetchError::TooSlow {
                minutes: LONGEST_MINUTES,
            });
        }
        thread::sleep(WAIT_STEP);
        if step % STEPS_A_LOOK == 0 {
            look();
        }
    }
    // Four billion steps are longer than the bound above.
    Ok(false)
}

/// The first words, which name the reason; the rest is read and let go, so that it never waits for us.
fn listen(mut stderr: ChildStderr) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut words = Vec::new();
        let _ = stderr
            .by_ref()
            .take(MOST_WORDS as u64)
            .read_to_end(&mut words);
        let _ = io::copy(&mut stderr, &mut io::sink());
        String::from_utf8_lossy(&words).into_owned()
    })
}
