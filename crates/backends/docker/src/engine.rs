//! The connection to the engine, made at its first use, and what is known of the engine.

use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::SystemInfo;
use bollard::{API_DEFAULT_VERSION, Docker};
use hermetic_sandbox::BackendError;
use tokio::sync::OnceCell;

use crate::address::EngineAddress;
use crate::rights::EngineRights;
use crate::ssh;

/// For what takes the engine long: making, starting, removing.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(120);
/// For what it knows by heart.
const IMPATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct DockerEngine {
    pub(crate) address: EngineAddress,
    docker: OnceCell<Docker>,
    facts: OnceCell<EngineFacts>,
}

/// What holds for every container of this engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineFacts {
    pub(crate) cpus: Option<i64>,
    /// The storage driver may know sizes; whether it does is seen when it is asked.
    pub(crate) may_size: bool,
    /// Numbers of users inside are others outside, and only a range of them is mapped.
    pub(crate) maps_users: bool,
    /// Whoever runs the engine is root inside, and nobody else is anybody outside.
    pub(crate) is_rootless: bool,
    /// Where it keeps containers and images, on its machine.
    pub(crate) folder: Option<PathBuf>,
    /// Limits that it leaves out, whatever it is asked for and whatever it says it made.
    pub(crate) dropped_limits: Vec<&'static str>,
}

impl DockerEngine {
    pub(crate) fn new(address: EngineAddress) -> Self {
        Self {
            address,
            docker: OnceCell::new(),
            facts: OnceCell::new(),
        }
    }

    /// Speaks the newest version that both sides know.
    pub(crate) async fn docker(&self) -> Result<&Docker, BackendError> {
        self.docker
            .get_or_try_init(async || {
                let docker = connect(&self.address)?;
                docker
                    .with_timeout(IMPATIENCE)
                    // With little patience: everything else waits behind this question, and an
                    // engine that is there answers it at once.
                    .negotiate_version()
                    .await
                    .map(|docker| docker.with_timeout(ENGINE_TIMEOUT))
            })
            .await
            .map_err(|error| self.trouble("agree on a version with the engine", error))
    }

    /// For questions whose answer nobody should wait two minutes for.
    pub(crate) async fn brisk(&self) -> Result<Docker, BackendError> {
        Ok(self.docker().await?.clone().with_timeout(IMPATIENCE))
    }

    pub(crate) async fn facts(&self) -> Result<&EngineFacts, BackendError> {
        self.facts
            .get_or_try_init(async || {
                let info = self.brisk().await?.info().await;
                info.map(|info| EngineFacts::of(&info, EngineRights::of(&info, &self.address)))
                    .map_err(|error| self.trouble("ask the engine about itself", error))
            })
            .await
    }

    /// Tells an engine that is not there from one that would not.
    pub(crate) fn trouble(&self, step: &str, error: Error) -> BackendError {
        match &error {
            Error::DockerResponseServerError { .. } | Error::DockerStreamError { .. } => {
                BackendError::failed(step, error)
            }
            Error::IOError { .. }
            | Error::HyperResponseError { .. }
            | Error::HyperLegacyError { .. }
            | Error::RequestTimeoutError
            | Error::SocketNotFoundError(_) => BackendError::Unavailable {
                what: format!(
                    "the engine at {} does not answer when asked to {step} ({})",
                    self.address,
                    cause(&error)
                ),
                remedy: self.remedy(&error),
            },
            Error::CertPathError { path } | Error::CertParseError { path } => {
                BackendError::Unavailable {
                    what: format!("{} is no certificate", path.display()),
                    remedy: "DOCKER_CERT_PATH holds ca.pem, cert.pem and key.pem".to_owned(),
                }
            }
            // Without the answer itself, which holds a container's variables.
            Error::JsonDataError { message, .. } => BackendError::failed(step, message.as_str()),
            _ => BackendError::failed(step, error),
        }
    }

    fn remedy(&self, error: &Error) -> String {
        let denied = cause(error).contains("ermission denied");
        match &self.address {
            EngineAddress::Socket(_) if denied => {
                "let this user use the socket: usermod -aG docker, or a rootless engine".to_owned()
            }
            EngineAddress::Socket(_) => {
                "start it (systemctl start docker; one without root: systemctl --user start podman.socket, or \
                 docker), or name another in DOCKER_HOST"
                    .to_owned()
            }
            EngineAddress::Ssh(host) => format!(
                "`ssh {} docker version` has to work without a question",
                host.destination
            ),
            EngineAddress::Plain(_) | EngineAddress::Tls(_) => {
                "check DOCKER_HOST, and that the engine there is up".to_owned()
            }
        }
    }
}

impl EngineFacts {
    fn of(info: &SystemInfo, rights: EngineRights) -> Self {
        let backing = info.driver_status.iter().flatten().find(|pair| {
            pair.first()
                .is_some_and(|name| name == "Backing Filesystem")
        });
        let on_xfs = backing.is_some_and(|pair| pair.get(1).is_some_and(|value| value == "xfs"));
        let mut options = info.security_options.iter().flatten();
        Self {
            maps_users: rights.is_rootless || options.any(|name| name.starts_with("name=userns")),
            is_rootless: rights.is_rootless,
            dropped_limits: rights.dropped(info),
            cpus: info.ncpu,
            folder: info.docker_root_dir.as_ref().map(PathBuf::from),
            may_size: match info.driver.as_deref() {
                Some("overlay2" | "overlay") => on_xfs,
                Some("btrfs" | "zfs" | "devicemapper") => true,
                _ => false,
            },
        }
    }
}

/// The status code, where it was the engine that answered.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

fn connect(address: &EngineAddress) -> Result<Docker, Error> {
    let patience = ENGINE_TIMEOUT.as_secs();
    match address {
        EngineAddress::Socket(path) => {
            Docker::connect_with_unix(&path.to_string_lossy(), patience, API_DEFAULT_VERSION)
        }
        EngineAddress::Plain(host) => {
            Docker::connect_with_http(host, patience, API_DEFAULT_VERSION)
        }
        EngineAddress::Tls(far) => {
            let pem = |name: &str| far.certificates.join(name);
            let (key, own, ca) = (pem("key.pem"), pem("cert.pem"), pem("ca.pem"));
            Docker::connect_with_ssl(&far.host, &key, &own, &ca, patience, API_DEFAULT_VERSION)
        }
        EngineAddress::Ssh(host) => ssh::connect(host, patience, API_DEFAULT_VERSION),
    }
}

/// The innermost reason: "connection refused" says more than "client error".
fn cause(error: &Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
