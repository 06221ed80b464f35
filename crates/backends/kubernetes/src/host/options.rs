//! What the operator may choose about the pods.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq)]
pub struct PodOptions {
    pub runtime_class: Option<String>,
    pub node_selector: BTreeMap<String, String>,
    /// As the API has them.
    pub tolerations: Vec<Value>,
    pub image_pull_secrets: Vec<String>,
    /// Quantities as Kubernetes writes them; chosen to be small where absent.
    pub request_cpu: Option<String>,
    pub request_memory: Option<String>,
    pub request_storage: Option<String>,
    /// Of a kept sandbox's volume; the cluster's default class where absent.
    pub storage_class: Option<String>,
    pub volume_size: String,
    /// However much a sandbox is used, it ends after this.
    pub deadline: Duration,
    /// One user for all sandboxes, where the cluster wants that. Else each has one of its own.
    pub user: Option<u32>,
    /// `false` puts each pod into a user namespace.
    pub host_users: bool,
    pub accepted: Vec<AcceptedRisk>,
}

/// What a pod may reach because the operator wrote so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceptedRisk {
    /// An interface besides loopback: only a policy stands between the pod and others.
    Route,
    Dns,
    Api,
    Metadata,
    Node,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum PodOptionsError {
    #[error("terminal.kubernetes_accept_risks names no known risk: {0:?}")]
    Risk(String),
    #[error("terminal.kubernetes_node_selector has {0:?}, which is not name=value")]
    Selector(String),
    #[error(
        "terminal.kubernetes_tolerations has {0:?}, which is not name, name=value or either with :effect"
    )]
    Toleration(String),
}

impl PodOptionsError {
    pub fn remedy(&self) -> String {
        match self {
            Self::Risk(_) => format!(
                "known: {}",
                AcceptedRisk::ALL.map(AcceptedRisk::name).join(", ")
            ),
            Self::Selector(_) => "for example pool=sandboxes".to_owned(),
            Self::Toleration(_) => "for example sandboxes=only:NoSchedule".to_owned(),
        }
    }
}

impl Default for PodOptions {
    fn default() -> Self {
        Self {
            runtime_class: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            image_pull_secrets: Vec::new(),
            request_cpu: None,
            request_memory: None,
            request_storage: None,
            storage_class: None,
            volume_size: "5Gi".to_owned(),
            deadline: Duration::from_secs(24 * 3600),
            user: None,
            host_users: true,
            accepted: Vec::new(),
        }
    }
}

impl PodOptions {
    pub fn node_selector(texts: &[String]) -> Result<BTreeMap<String, String>, PodOptionsError> {
        let parsed = texts.iter().map(|text| {
            let (name, value) = text
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| PodOptionsError::Selector(text.clone()))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        parsed.collect()
    }

    /// As `kubectl taint` writes taints: `name=value:NoSchedule`, with less where any will do.
    pub fn tolerations(texts: &[String]) -> Result<Vec<Value>, PodOptionsError> {
        let parsed = texts.iter().map(|text| {
            let wrong = || PodOptionsError::Toleration(text.clone());
            let (taint, effect) = match text.rsplit_once(':') {
                Some((taint, effect)) => (taint, Some(effect)),
                None => (text.as_str(), None),
            };
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            if taint.is_empty() || effect.is_some_and(|effect| !effects.contains(&effect)) {
                return Err(wrong());
            }
            let mut toleration = match taint.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    json!({"key": name, "operator": "Equal", "value": value})
                }
                Some(_) => return Err(wrong()),
                None => json!({"key": taint, "operator": "Exists"}),
            };
            if let Some(effect) = effect {
                toleration["effect"] = effect.into();
            }
            Ok(toleration)
        });
        parsed.collect()
    }

    pub fn accepted(texts: &[String]) -> Result<Vec<AcceptedRisk>, PodOptionsError> {
        texts.iter().map(|text| text.parse()).collect()
    }
}

impl AcceptedRisk {
    pub const ALL: [Self; 5] = [
        Self::Route,
        Self::Dns,
        Self::Api,
        Self::Metadata,
        Self::Node,
    ];

    /// As the program in the pod knows it too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Dns => "dns",
            Self::Api => "api",
            Self::Metadata => "metadata",
            Self::Node => "node",
        }
    }
}

impl FromStr for AcceptedRisk {
    type Err = PodOptionsError;

    fn from_str(text: &str) -> Result<Self, PodOptionsError> {
        let known = Self::ALL.into_iter().find(|risk| risk.name() == text);
        known.ok_or_else(|| PodOptionsError::Risk(text.to_owned()))
    }
}

impl fmt::Display for AcceptedRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn taints_are_tolerated_as_they_are_written() {
        let parsed =
            PodOptions::tolerations(&texts(&["a=b:NoSchedule", "c:NoExecute", "d", "e=f"]));
        assert_eq!(
            parsed.unwrap(),
            [
                json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}),
                json!({"key": "c", "operator": "Exists", "effect": "NoExecute"}),
                json!({"key": "d", "operator": "Exists"}),
                json!({"key": "e", "operator": "Equal", "value": "f"}),
            ]
        );
        for wrong in ["", "=b", "a:Sometimes", ":NoSchedule"] {
            assert!(
                PodOptions::tolerations(&texts(&[wrong])).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_is_misspelt_is_an_error_with_the_known_names() {
        let error = PodOptions::accepted(&texts(&["routes"])).unwrap_err();
        assert!(
            error.remedy().contains("route, dns, api"),
            "{}",
            error.remedy()
        );
        assert!(PodOptions::node_selector(&texts(&["pool"])).is_err());
        let parsed = PodOptions::node_selector(&texts(&["a.b/c=d"])).unwrap();
        assert_eq!(parsed["a.b/c"], "d");
    }
}
