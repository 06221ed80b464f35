//! The kinds of sandbox that a way out leads from.

use std::path::Path;
use std::sync::Arc;

use hermetic_docker::{Address, Docker, Options, RootView, Tell, User};
use hermetic_native::Native;
use hermetic_sandbox::{Backend, SystemView};
use hermetic_types::InstallationId;

pub(crate) const USUAL: &[House] = &[House::Native, House::Container];
pub(crate) const ALL: &[House] = &[House::Native, House::Container, House::StrictContainer];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum House {
    Native,
    Container,
    /// A root that cannot be written, and nobody in particular inside.
    StrictContainer,
}

impl House {
    pub(crate) fn system(self) -> SystemView {
        match self {
            Self::Native => SystemView::Host,
            Self::Container | Self::StrictContainer => SystemView::Image(image()),
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
            Self::Container => docker(installation, Options::default()).await,
            Self::StrictContainer => {
                let strict = Options {
                    user: User::Host {
                        uid: 65534,
                        gid: 65534,
                    },
                    root: RootView::ReadOnly,
                    ..Options::default()
                };
                docker(installation, strict).await
            }
        }
    }
}

type Opened = Result<Arc<dyn Backend>, String>;

async fn native(state: &Path, installation: &InstallationId, certificate: &str) -> Opened {
    let native = Native::open(hermetic_native::Config {
        state: state.to_owned(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: Vec::new(),
        authority: Some(certificate.to_owned()),
    })
    .unwrap();
    match native.readiness().await.missing() {
        Some(layer) => Err(format!("{}: {}", layer.name, layer.detail)),
        None => Ok(Arc::new(native)),
    }
}

async fn docker(installation: &InstallationId, options: Options) -> Opened {
    if image().is_empty() {
        return Err("no HERMETIC_TEST_IMAGE; `cargo xtask test` provides one".to_owned());
    }
    let docker = Docker::open(hermetic_docker::Config {
        address: Address::find(&|name| std::env::var(name).ok()).unwrap(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        authority: None,
        image: image(),
        own: Vec::new(),
        accepted: Vec::new(),
        options,
        client_folder: None,
        tell: Tell::default(),
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
