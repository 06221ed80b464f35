//! Where a conversation's sandbox can be: every backend, each with what it lives on.

#[path = "../../backends/daytona/tests/server/mod.rs"]
#[allow(dead_code, unused_imports, reason = "its own tests use the rest")]
mod daytona_server;
#[path = "../../backends/modal/tests/service/mod.rs"]
#[allow(dead_code, unused_imports, reason = "its own tests use the rest")]
mod modal_service;
#[path = "../../backends/ssh/tests/lab.rs"]
#[allow(dead_code, reason = "its own tests use the rest")]
mod ssh_lab;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use hermetic_sandbox::{Backend, SystemView};
use hermetic_types::{BackendKind, InstallationId, Secret, SystemClock};

use crate::room::{Wishes, ground};

/// A backend, and what it needs for as long as it is used.
pub(crate) type Opened = (Arc<dyn Backend>, Box<dyn Any + Send + Sync>);

/// What the test services take for an image.
const IMAGE: &str = "debian:12";

pub(crate) fn system(backend: BackendKind) -> SystemView {
    let set = |name: &str| SystemView::Image(std::env::var(name).unwrap_or_default());
    match backend {
        BackendKind::Docker => set("HERMETIC_TEST_IMAGE"),
        BackendKind::Singularity => set("HERMETIC_TEST_ROOTFS"),
        BackendKind::Modal | BackendKind::Daytona => SystemView::Image(IMAGE.to_owned()),
        _ => SystemView::Host,
    }
}

/// Or why there is none here.
pub(crate) async fn open(
    wishes: &Wishes,
    state: &Path,
    installation: &InstallationId,
) -> Result<Opened, String> {
    std::fs::create_dir_all(ground(wishes, state).0).unwrap();
    let alone = |backend| Ok::<Opened, String>((backend, Box::new(())));
    match wishes.backend {
        BackendKind::Docker => alone(docker(installation)?),
        BackendKind::Singularity => alone(singularity(state, installation)?),
        BackendKind::Modal => modal(state, installation).await,
        BackendKind::Daytona => daytona(installation).await,
        BackendKind::Ssh => {
            let host = ssh_lab::Lab::open().ok_or("no sshd")?;
            Ok((host.backend(installation), Box::new(host)))
        }
        BackendKind::Local => alone(local(wishes, state)),
        _ => alone(native(state, installation)),
    }
}

fn native(state: &Path, installation: &InstallationId) -> Arc<dyn Backend> {
    let native = hermetic_native::NativeBackend::open(hermetic_native::NativeConfig {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: Vec::new(),
        authority: None,
        total: hermetic_native::TotalLimits::default(),
    });
    Arc::new(native.unwrap())
}

fn local(wishes: &Wishes, state: &Path) -> Arc<dyn Backend> {
    let (workdir, home) = ground(wishes, state);
    let local = hermetic_local::LocalBackend::open(hermetic_local::LocalConfig {
        open_files: None,
        state: state.to_owned(),
        program: hermetic_embedded::WARDEN,
        workdir,
        env: [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", home.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
    });
    Arc::new(local.unwrap())
}

fn docker(installation: &InstallationId) -> Result<Arc<dyn Backend>, String> {
    let image = std::env::var("HERMETIC_TEST_IMAGE").map_err(|_| "no HERMETIC_TEST_IMAGE")?;
    let docker = hermetic_docker::DockerBackend::open(hermetic_docker::DockerConfig {
        address: hermetic_docker::EngineAddress::find(&|name| std::env::var(name).ok()).unwrap(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: None,
        image,
        own: Vec::new(),
        accepted: Vec::new(),
        options: hermetic_docker::ContainerOptions::default(),
        client_folder: None,
        tell: hermetic_docker::PullListener::default(),
        clock: SystemClock::shared(),
    });
    Ok(Arc::new(docker.unwrap()))
}

fn singularity(state: &Path, installation: &InstallationId) -> Result<Arc<dyn Backend>, String> {
    let image = std::env::var("HERMETIC_TEST_ROOTFS").map_err(|_| "no HERMETIC_TEST_ROOTFS")?;
    let singularity =
        hermetic_singularity::SingularityBackend::open(hermetic_singularity::SingularityConfig {
            state: state.to_owned(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            runtime: hermetic_singularity::ApptainerRuntime::find(&|name| std::env::var_os(name)),
            image,
            scratch: state.join("scratch"),
            cache: state.join("images"),
            tell: hermetic_singularity::BuildListener::default(),
        });
    Ok(Arc::new(singularity.unwrap()))
}

async fn modal(state: &Path, installation: &InstallationId) -> Result<Opened, String> {
    if let Some(why) = modal_service::lacking().await {
        return Err(why);
    }
    let service = modal_service::Service::open().await;
    let modal = hermetic_modal::ModalBackend::new(hermetic_modal::ModalConfig {
        address: hermetic_modal::ControlAddress::parse(&service.url).unwrap(),
        credentials: hermetic_modal::ModalCredentials {
            token_id: Secret::new(modal_service::TOKEN_ID),
            token_secret: Secret::new(modal_service::TOKEN_SECRET),
            server_url: None,
            environment: None,
        },
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        app: "hermetic".to_owned(),
        image: IMAGE.to_owned(),
        snapshots: state.join("modal_snapshots.json"),
        outbound: hermetic_modal::OutboundAccess::Nothing,
        clock: SystemClock::shared(),
    });
    Ok((Arc::new(modal), Box::new(service)))
}

async fn daytona(installation: &InstallationId) -> Result<Opened, String> {
    if let Some(why) = daytona_server::lacking() {
        return Err(why);
    }
    let server = daytona_server::Server::start().await;
    let daytona = hermetic_daytona::DaytonaBackend::open(hermetic_daytona::DaytonaConfig {
        key: Secret::new(daytona_server::KEY),
        url: server.url(),
        organisation: None,
        target: None,
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        disk: hermetic_daytona::DiskWish::Default,
        patience: hermetic_daytona::DaytonaTimeouts::default(),
    });
    Ok((Arc::new(daytona.unwrap()), Box::new(server)))
}
