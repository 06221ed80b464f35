//! What Modal has to offer, told by asking it. No sandbox is made: each one costs.

use hermetic_sandbox::{BackendReadiness, LayerState, SealLayer};

use crate::modal::ModalState;
use crate::patience::CallTimeouts;
use crate::shape::OutboundAccess;
use crate::trouble::trouble;
use crate::wire::{AuthTokenGetRequest, ClientHelloRequest};

/// A person waits for the answer: one that nobody gives is asked for again for two seconds, which covers a
/// connection that was lost, and not a service that is away.
const READINESS_TIMEOUTS: CallTimeouts = CallTimeouts::of(5, 2);

pub(crate) async fn examine(host: &ModalState) -> BackendReadiness {
    let asked = async {
        host.control
            .ask(ClientHelloRequest {}, READINESS_TIMEOUTS)
            .await?;
        host.control
            .ask(AuthTokenGetRequest {}, READINESS_TIMEOUTS)
            .await
    };
    if let Err(status) = asked.await {
        return BackendReadiness {
            layers: vec![SealLayer::broken(
                "service",
                &trouble("tell about itself", &status),
            )],
        };
    }
    let config = &host.config;
    BackendReadiness {
        layers: vec![
            SealLayer::active("service", format!("{} takes the token", config.address)),
            SealLayer::active(
                "image",
                format!("{}, built at Modal when first needed", config.image),
            ),
            network(&config.outbound),
            SealLayer::active(
                "isolation",
                "Modal's own (gVisor), a machine that is not this one",
            ),
            SealLayer::active("cpu limit", "kept by Modal"),
            SealLayer::active("memory limit", "kept by Modal"),
            SealLayer::active(
                "end of life",
                "the warden's, Modal's for an idle one, and a day at most",
            ),
            SealLayer {
                name: "process and disk limit",
                state: LayerState::Weaker,
                detail: "Modal's own, which cannot be chosen".to_owned(),
                remedy: None,
            },
        ],
    }
}

fn network(outbound: &OutboundAccess) -> SealLayer {
    match outbound {
        OutboundAccess::Nothing => {
            SealLayer::active("network", "none but its own loopback, blocked by Modal")
        }
        OutboundAccess::Named { networks, names } => SealLayer {
            name: "network",
            state: LayerState::Missing,
            detail: format!(
                "open to {} past the gateway: terminal.modal_outbound",
                [networks.as_slice(), names].concat().join(", ")
            ),
            remedy: Some("leave terminal.modal_outbound out".to_owned()),
        },
    }
}
