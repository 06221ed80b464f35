//! The side in the gateway.

mod access;
mod birth;
mod client;
mod credential;
mod death;
mod exec;
mod find;
mod kubeconfig;
mod kubernetes;
mod label;
mod link;
mod manifest;
mod options;
mod place;
mod readiness;
mod reasons;
mod shape;
mod trouble;
mod unchanged;
mod yaml;

pub use access::{AccessError, ClusterAccess, ClusterSource};
pub use kubernetes::{KubernetesBackend, KubernetesConfig, KubernetesTimeouts};
pub use manifest::{ManifestOptions, manifest};
pub use options::{AcceptedRisk, PodOptions, PodOptionsError};
