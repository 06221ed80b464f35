//! Kubernetes, from the configuration.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_kubernetes::{
    ClusterAccess, ClusterSource, KubernetesBackend, KubernetesConfig, KubernetesTimeouts,
    PodOptions, PodOptionsError,
};
use hermetic_sandbox::Backend;
use hermetic_types::{BackendKind, InstallationId};
use tracing::warn;

use super::BackendCaller;
use crate::AppFailure;

pub(super) fn kubernetes(
    config: &Config,
    installation: &InstallationId,
    caller: BackendCaller,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let options = options(config)?;
    if !options.accepted.is_empty() && !matches!(caller, BackendCaller::Onlooker) {
        let names: Vec<_> = options.accepted.iter().map(|risk| risk.name()).collect();
        warn!(
            "⚠ pods may reach what terminal.kubernetes_accept_risks names: {}",
            names.join(", ")
        );
    }
    Ok(Arc::new(KubernetesBackend::open(KubernetesConfig {
        access: Arc::new(access(config)?),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        image: super::sandbox_plan::image(config, BackendKind::Kubernetes, caller)
            .unwrap_or_default(),
        options,
        timeouts: KubernetesTimeouts::default(),
    })))
}

/// Whether what is written about pods can be understood, and says where the cluster is.
pub(super) fn check(config: &Config) -> Result<(), AppFailure> {
    options(config)?;
    access(config).map(drop)
}

fn access(config: &Config) -> Result<ClusterAccess, AppFailure> {
    let settings = &config.terminal().kubernetes;
    let source = ClusterSource {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        namespace: settings.namespace.clone(),
    };
    ClusterAccess::find(&source).map_err(|error| AppFailure::new(error.to_string(), error.remedy()))
}

fn options(config: &Config) -> Result<PodOptions, AppFailure> {
    let settings = &config.terminal().kubernetes;
    let wrong = |error: PodOptionsError| AppFailure::new(error.to_string(), error.remedy());
    Ok(PodOptions {
        runtime_class: settings.runtime_class.clone(),
        node_selector: PodOptions::node_selector(&settings.node_selector).map_err(wrong)?,
        tolerations: PodOptions::tolerations(&settings.tolerations).map_err(wrong)?,
        image_pull_secrets: settings.image_pull_secrets.clone(),
        request_cpu: settings.request_cpu.clone(),
        request_memory: settings.request_memory.clone(),
        request_storage: settings.request_storage.clone(),
        storage_class: settings.storage_class.clone(),
        volume_size: settings.volume_size.clone(),
        deadline: settings.deadline,
        user: settings.user,
        host_users: settings.host_users,
        accepted: PodOptions::accepted(&settings.accept_risks).map_err(wrong)?,
    })
}
