//! The kinds of sandbox that a way out leads from.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermetic_docker::{
    ContainerOptions, ContainerUser, DockerBackend, EngineAddress, PullListener, RootView,
};
use hermetic_native::NativeBackend;
use hermetic_sandbox::{Backend, SystemView};
use hermetic_singularity::{ApptainerRuntime, SingularityBackend};
use hermetic_types::{InstallationId, SystemClock};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};

pub(crate) const USUAL: &[House] = &[
    House::Native,
    House::Container,
    House::FarContainer,
    House::Instance,
];
/// Where folders of this machine can be shown.
pub(crate) const NEAR: &[House] = &[House::Native, House::Container, House::Instance];
pub(crate) const ALL: &[House] = &[
    House::Native,
    House::Container,
    House::StrictContainer,
    House::FarContainer,
    House::Instance,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum House {
    Native,
    Container,
    /// A root that cannot be written, and nobody in particular inside.
    StrictContainer,
    /// On an engine that is reached over TCP.
    FarContainer,
    /// Of Apptainer.
    Instance,
}

impl House {
    pub(crate) fn system(self) -> SystemView {
        match self {
            Self::Native => SystemView::Host,
            Self::Container | Self::StrictContainer | Self::FarContainer => {
                SystemView::Image(image())
            }
            Self::Instance => SystemView::Image(rootfs()),
        }
    }

    /// Or why it cannot be had here.
    pub(crate) async fn open(
        self,
        state: &Path,
        installation: &InstallationId,
        certificate: &str,
    ) -> Opened {
        match self {
            Self::Native => native(state, installation, certificate).await,
            Self::Container => docker(near(), installation, ContainerOptions::default()).await,
            Self::FarContainer => match far().await {
                Ok(address) => docker(address, installation, ContainerOptions::default()).await,
                Err(why) => Err(why),
            },
            Self::Instance => instances(state, installation).await,
            Self::StrictContainer => {
                let strict = ContainerOptions {
                    user: ContainerUser::Host {
                        uid: 65534,
                        gid: 65534,
                    },
                    root: RootView::ReadOnly,
                    ..ContainerOptions::default()
                };
                docker(near(), installation, strict).await
            }
        }
    }
}

type Opened = Result<Arc<dyn Backend>, String>;

async fn native(state: &Path, installation: &InstallationId, certificate: &str) -> Opened {
    let native = NativeBackend::open(hermetic_native::NativeConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: Vec::new(),
        authority: Some(certificate.to_owned()),
        total: hermetic_native::TotalLimits::default(),
    })
    .unwrap();
    match native.readiness().await.missing() {
        Some(layer) => Err(format!("{}: {}", layer.name, layer.detail)),
        None => Ok(Arc::new(native)),
    }
}

async fn instances(state: &Path, installation: &InstallationId) -> Opened {
    if rootfs().is_empty() {
        return Err("no HERMETIC_TEST_ROOTFS; `cargo xtask test` provides one".to_owned());
    }
    let singularity = SingularityBackend::open(hermetic_singularity::SingularityConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        runtime: ApptainerRuntime::find(&|name| std::env::var_os(name)),
        image: rootfs(),
        scratch: state.join("scratch"),
        cache: state.join("images"),
        tell: hermetic_singularity::BuildListener::default(),
    })
    .unwrap();
    match singularity.readiness().await.missing() {
        Some(layer) => Err(format!("{}: {}", layer.name, layer.detail)),
        None => Ok(Arc::new(singularity)),
    }
}

fn near() -> EngineAddress {
    EngineAddress::find(&|name| std::env::var(name).ok()).unwrap()
}

/// The near engine behind somebody who passes bytes on, for as long as the test's runtime lives.
async fn far() -> Result<EngineAddress, String> {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    let Some(socket) = host.strip_prefix("unix://").map(PathBuf::from) else {
        return Err("no engine of the tests' own; `cargo xtask test` provides one".to_owned());
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = EngineAddress::Plain(listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let socket = socket.clone();
            tokio::spawn(async move {
                if let Ok(mut engine) = UnixStream::connect(socket).await {
                    let _ = copy_bidirectional(&mut near, &mut engine).await;
                }
            });
        }
    });
    Ok(address)
}

async fn docker(
    address: EngineAddress,
    installation: &InstallationId,
    options: ContainerOptions,
) -> Opened {
    if image().is_empty() {
        return Err("no HERMETIC_TEST_IMAGE; `cargo xtask test` provides one".to_owned());
    }
    let docker = DockerBackend::open(hermetic_docker::DockerConfig {
        address,
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: None,
        image: image(),
        own: Vec::new(),
        accepted: Vec::new(),
        options,
        client_folder: None,
        tell: PullListener::default(),
        clock: SystemClock::shared(),
    })
    .unwrap();
    match docker.list().await {
        Ok(_) => Ok(Arc::new(docker)),
        Err(error) => Err(error.to_string()),
    }
}

fn image() -> String {
    std::env::var("HERMETIC_TEST_IMAGE").unwrap_or_default()
}

fn rootfs() -> String {
    std::env::var("HERMETIC_TEST_ROOTFS").unwrap_or_default()
}
