//! Where commands run: the one place that decides it.
//!
//! A `terminal.backend: local` stands in many existing files and was written for a person at a
//! keyboard. It does not put chats on the host; only `gateway.terminal_backend: local` does.

use std::collections::BTreeMap;

use hermetic_types::{BackendKind, Boundary};
use thiserror::Error;

use crate::config::Config;
use crate::origin::SettingOrigin;
use crate::settings::ApprovalMode;

/// Where chats run their commands.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedBackend {
    pub backend: BackendKind,
    /// `None` for backends that have none.
    pub image: Option<String>,
    pub chosen_by: BackendChoice,
    /// Platforms that go elsewhere.
    pub platforms: BTreeMap<&'static str, BackendKind>,
    /// `gateway.sandbox_image` is written, and nothing here has an image.
    pub image_ignored: bool,
    /// Nobody is asked about dangerous commands.
    pub approvals_off: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// `gateway.terminal_backend`.
    Gateway(SettingOrigin),
    /// `terminal.backend`, which is a boundary or a host of its own.
    Terminal(SettingOrigin),
    /// Nothing was written.
    Default,
    /// `terminal.backend: local`, which does not count for chats.
    InsteadOfLocal(SettingOrigin),
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BackendDoubt {
    #[error("{key} is ssh ({origin}), and {missing} is not written")]
    Ssh {
        /// The key that chose it.
        key: String,
        origin: SettingOrigin,
        missing: &'static str,
    },
}

impl BackendDoubt {
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Ssh { .. } => {
                "write terminal.ssh_host and terminal.ssh_user, or choose another backend"
            }
        }
    }
}

pub fn resolve_gateway_backend(config: &Config) -> Result<ResolvedBackend, BackendDoubt> {
    let origin = |key| {
        config
            .origin(key)
            .cloned()
            .unwrap_or(SettingOrigin::Default)
    };
    let (backend, chosen_by) = match (config.gateway().terminal_backend, config.terminal().backend)
    {
        (Some(backend), _) => (
            backend,
            BackendChoice::Gateway(origin("gateway.terminal_backend")),
        ),
        (None, Some(BackendKind::Local)) => (
            BackendKind::Native,
            BackendChoice::InsteadOfLocal(origin("terminal.backend")),
        ),
        (None, Some(backend)) => (backend, BackendChoice::Terminal(origin("terminal.backend"))),
        (None, None) => (BackendKind::Native, BackendChoice::Default),
    };
    let platforms: BTreeMap<_, _> = config
        .platforms()
        .all()
        .into_iter()
        .filter_map(|platform| Some((platform.name, platform.terminal_backend?)))
        .filter(|(_, own)| *own != backend)
        .collect();
    let key = match chosen_by {
        BackendChoice::Gateway(_) => "gateway.terminal_backend",
        BackendChoice::Terminal(_) | BackendChoice::Default | BackendChoice::InsteadOfLocal(_) => {
            "terminal.backend"
        }
    };
    check(config, backend, key)?;
    for (platform, backend) in &platforms {
        check(
            config,
            *backend,
            &format!("platforms.{platform}.terminal_backend"),
        )?;
    }
    let image = image(config, backend);
    Ok(ResolvedBackend {
        backend,
        image_ignored: image.is_none() && config.gateway().sandbox_image.is_some(),
        image,
        chosen_by,
        platforms,
        approvals_off: config.approvals().mode == ApprovalMode::Off,
    })
}

/// The command line's own: what is written, else sealed with the current folder as workspace.
pub fn resolve_cli_backend(config: &Config) -> Result<BackendKind, BackendDoubt> {
    let backend = config.terminal().backend.unwrap_or(BackendKind::Native);
    check(config, backend, "terminal.backend")?;
    Ok(backend)
}

/// The image of a chat's sandbox: the gateway's, else the command line's.
pub fn image(config: &Config, backend: BackendKind) -> Option<String> {
    let own = terminal_image(config, backend)?;
    Some(config.gateway().sandbox_image.clone().unwrap_or(own))
}

/// The image of a command line's sandbox: the backend's own, else docker's.
pub fn terminal_image(config: &Config, backend: BackendKind) -> Option<String> {
    let terminal = config.terminal();
    let own = match backend {
        BackendKind::Docker => None,
        BackendKind::Singularity => terminal
            .singularity_image
            .clone()
            .or_else(|| Some(format!("docker://{}", terminal.docker.image))),
        BackendKind::Modal => terminal.modal_image.clone(),
        BackendKind::Daytona => terminal.daytona_image.clone(),
        BackendKind::Kubernetes => terminal.kubernetes_image.clone(),
        BackendKind::Native | BackendKind::Ssh | BackendKind::Local => return None,
    };
    own.or_else(|| Some(terminal.docker.image.clone()))
}

impl ResolvedBackend {
    /// One line on how it came to this, for the log.
    pub fn note(&self) -> String {
        let backend = self.backend;
        match &self.chosen_by {
            BackendChoice::Gateway(origin) => {
                format!("chats run on {backend}: gateway.terminal_backend ({origin})")
            }
            BackendChoice::Terminal(origin) => {
                format!("chats run on {backend}: terminal.backend ({origin})")
            }
            BackendChoice::Default => {
                format!("chats run on {backend}: no backend is written, so the default holds")
            }
            BackendChoice::InsteadOfLocal(origin) => format!(
                "chats run on {backend}: terminal.backend is local ({origin}), which holds for \
                 the command line only"
            ),
        }
    }

    /// What somebody should read at every start; nothing where every chat is sealed. What is a boundary
    /// each backend says of itself, and `boundary` passes it on.
    pub fn warnings(&self, boundary: impl Fn(BackendKind) -> Boundary) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.backend == BackendKind::Local {
            warnings.push(local_warning("Gateway is"));
        }
        for (platform, backend) in &self.platforms {
            if *backend == BackendKind::Local {
                warnings.push(local_warning(&format!("Platform {platform} is")));
            }
        }
        let used = || std::iter::once(self.backend).chain(self.platforms.values().copied());
        if used().any(|backend| backend == BackendKind::Ssh) {
            warnings.push(
                "The ssh backend is no boundary: commands act on the remote host, and dangerous \
                 ones wait for approval."
                    .to_owned(),
            );
        }
        if self.approvals_off && used().any(|backend| boundary(backend) == Boundary::Judged) {
            warnings.push(
                "approvals.mode is off: nobody is asked before a dangerous command runs there."
                    .to_owned(),
            );
        }
        if self.image_ignored {
            warnings.push(format!(
                "gateway.sandbox_image is not used: {} has no image.",
                self.backend
            ));
        }
        warnings
    }
}

fn local_warning(who: &str) -> String {
    format!(
        "{who} running with local terminal backend.\n  \
         Commands from messaging platforms will execute on this machine.\n  \
         Consider using a sandboxed backend: native, docker, daytona, or modal.\n  \
         To seal chats again, remove `terminal_backend: local`."
    )
}

fn check(config: &Config, backend: BackendKind, key: &str) -> Result<(), BackendDoubt> {
    let ssh = &config.terminal().ssh;
    let missing = match backend {
        BackendKind::Ssh if ssh.host.is_none() => "terminal.ssh_host",
        BackendKind::Ssh if ssh.user.is_none() => "terminal.ssh_user",
        _ => return Ok(()),
    };
    Err(BackendDoubt::Ssh {
        key: key.to_owned(),
        origin: config
            .origin(key)
            .cloned()
            .unwrap_or(SettingOrigin::Default),
        missing,
    })
}
