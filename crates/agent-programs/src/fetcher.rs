//! npm, which fetches and unpacks, and runs nothing of what it fetched.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::fetcher_failure::FetchError;
use crate::preset::PackageSource;

/// What is fetched: the version that stands in the preset, or one that the operator named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WantedVersion<'a> {
    /// With every checksum known beforehand.
    Locked,
    /// With the checksums that the registry tells.
    Named(&'a str),
}

/// The npm of this machine, and the registry it fetches from.
#[derive(Clone, Debug)]
pub struct NpmClient {
    program: PathBuf,
    registry: Option<String>,
}

impl NpmClient {
    /// From the registry that it is set up for.
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            registry: None,
        }
    }

    /// From this one.
    pub fn at(mut self, registry: &str) -> Self {
        self.registry = Some(registry.to_owned());
        self
    }
}

const LONGEST_MINUTES: u64 = 30;
const WAIT_STEP: Duration = Duration::from_millis(100);
/// Looking means to walk through all that is there.
const STEPS_A_LOOK: u32 = 10;
const MOST_WORDS: usize = 64 << 10;

/// What npm needs to find its registry and a proxy. Nothing else of this process's environment is its business.
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

/// Fetches the package and what it depends on into `node_modules` of the tree. `lock` stays held as long as npm lives, also where we are killed.
pub(crate) fn fetch(
    client: &NpmClient,
    source: &PackageSource,
    version: WantedVersion<'_>,
    staging: &StagingFolders<'_>,
    lock: &File,
    mut look: impl FnMut(),
) -> Result<(), FetchError> {
    let StagingFolders { tree, scratch } = *staging;
    let mut npm = Command::new(&client.program);
    match version {
        WantedVersion::Locked => {
            write_lock(source, tree).map_err(FetchError::Start)?;
            npm.arg("ci");
        }
        WantedVersion::Named(version) => {
            // Without one, npm takes the nearest folder above that has one for its project.
            fs::write(tree.join("package.json"), "{}").map_err(FetchError::Start)?;
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
    npm.current_dir(tree)
        .env_clear()
        .envs(env::vars_os().filter(|(name, _)| is_npms(name)))
        // After the variables of this process, over which these win.
        .envs(settings)
        .env("npm_config_cache", scratch)
        .envs(
            client
                .registry
                .iter()
                .map(|url| ("npm_config_registry", url)),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // An npm that outlives us goes on writing: the next one has to wait for it.
    let inherited = fcntl_setfd(lock, FdFlags::empty());
    let child = npm.spawn();
    inherited.and(fcntl_setfd(lock, FdFlags::CLOEXEC)).ok();
    let mut child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FetchError::NoNpm,
        _ => FetchError::Start(error),
    })?;
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

/// The lock file, and the manifest that it belongs to.
fn write_lock(source: &PackageSource, tree: &Path) -> io::Result<()> {
    let lock: serde_json::Value = serde_json::from_str(source.lock)?;
    fs::write(tree.join("package-lock.json"), source.lock)?;
    fs::write(tree.join("package.json"), lock["packages"][""].to_string())
}

fn is_npms(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    let configures = name.to_ascii_lowercase().starts_with("npm_config_");
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
