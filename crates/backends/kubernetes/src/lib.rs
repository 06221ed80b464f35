//! Sandboxes as pods on Kubernetes, each reached by one exec.
//!
//! Two programs share this crate. The gateway (`host`) makes, finds and ends sandboxes by the cluster's
//! API, places the embedded program by an exec and keeps one more open as the link. In the pod (`inside`)
//! that program first looks at what the pod reaches, drops what the cluster put into its environment and
//! sets the bounds that no field of a pod sets; then it becomes the warden.
//!
//! A sandbox is a Job with one pod, so that the cluster itself clears away both when the warden ends,
//! whether or not any gateway is left. What carries no label of this installation is never touched.

#![forbid(unsafe_code)]

#[cfg(feature = "host")]
mod host;
#[cfg(feature = "inside")]
pub mod inside;

#[cfg(feature = "host")]
pub use host::{
    AcceptedRisk, AccessError, ClusterAccess, ClusterSource, KubernetesBackend, KubernetesConfig,
    KubernetesTimeouts, ManifestOptions, PodOptions, PodOptionsError, manifest,
};
