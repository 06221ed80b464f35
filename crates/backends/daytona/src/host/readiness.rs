//! What the provider has to offer, told by asking it. No sandbox is tried: that would be billed.

use hermetic_sandbox::{BackendReadiness, LayerState, SealLayer};

use super::daytona::DaytonaState;
use super::label;
use super::size::MOST_DISK;
use super::wire::is_loopback;

pub(crate) async fn examine(host: &DaytonaState) -> BackendReadiness {
    let asked = host
        .service
        .list(&label::filter(&host.config.installation))
        .await;
    let listed = match asked {
        Ok(listed) => listed,
        Err(trouble) => {
            return BackendReadiness {
                layers: vec![SealLayer::broken(
                    "service",
                    &trouble.at("list the sandboxes"),
                )],
            };
        }
    };
    let count = listed.len();
    let service = format!(
        "{} takes the key; sandboxes of ours: {count}",
        host.config.url
    );
    BackendReadiness {
        layers: vec![
            SealLayer::active("service", &service),
            connection(host),
            SealLayer::active(
                "network",
                "blocked by Daytona; bytes leave by the link alone",
            ),
            SealLayer::active("cpu limit", "Daytona's, in whole cores"),
            SealLayer::active("memory limit", "Daytona's, rounded up to GiB"),
            SealLayer::active("disk limit", format!("Daytona's, {MOST_DISK} GiB at most")),
            SealLayer::active("open files limit", "an rlimit"),
            SealLayer {
                name: "process limit",
                state: LayerState::Missing,
                detail: "Daytona bounds no processes; the memory limit does in the end".to_owned(),
                remedy: None,
            },
            SealLayer::active(
                "bill",
                "Daytona stops what is idle for the sandbox's lifetime, and deletes what is not kept",
            ),
        ],
    }
}

fn connection(host: &DaytonaState) -> SealLayer {
    let base = &host.service.base;
    if base.scheme() == "https" {
        return SealLayer::active("connection", "TLS");
    }
    if is_loopback(base) {
        return SealLayer::active("connection", "on this machine");
    }
    SealLayer {
        name: "connection",
        state: LayerState::Weaker,
        detail: "neither hidden nor proven: whoever is on the way has the key".to_owned(),
        remedy: Some("write an https address in DAYTONA_API_URL".to_owned()),
    }
}
