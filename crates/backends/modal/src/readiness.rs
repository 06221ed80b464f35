//! What Modal has to offer, told by asking it. No sandbox is made: each one costs.

use hermetic_sandbox::{Layer, LayerState, Readiness};

use crate::modal::Host;
use crate::patience::Patience;
use crate::shape::Outbound;
use crate::trouble::trouble;
use crate::wire::{AuthTokenGetRequest, ClientHelloRequest};

/// A person waits for the answer: one that nobody gives is asked for again for two seconds, which covers a
/// connection that was lost, and not a service that is away.
const SOON: Patience = Patience::of(5, 2);

pub(crate) async fn examine(host: &Host) -> Readiness {
    let asked = async {
        host.control.ask(ClientHelloRequest {}, SOON).await?;
        host.control.ask(AuthTokenGetRequest {}, SOON).await
    };
    if let Err(status) = asked.await {
        return Readiness {
            layers: vec![Layer::broken(
                "service",
                &trouble("tell about itself", &status),
            )],
        };
    }
    let config = &host.config;
    Readiness {
        layers: vec![
            Layer::active("service", format!("{} takes the token", config.address)),
            Layer::active(
                "image",
                format!("{}, built at Modal when first needed", config.image),
            ),
            network(&config.outbound),
            Layer::active(
                "isolation",
                "Modal's own (gVisor), a machine that is not this one",
            ),
            Layer::active("cpu limit", "kept by Modal"),
            Layer::active("memory limit", "kept by Modal"),
            Layer::active(
                "end of life",
                "the warden's, Modal's for an idle one, and a day at most",
            ),
            Layer {
                name: "process and disk limit",
                state: LayerState::Weaker,
                detail: "Modal's own, which cannot be chosen".to_owned(),
                remedy: None,
            },
        ],
    }
}

fn network(outbound: &Outbound) -> Layer {
    match outbound {
        Outbound::Nothing => {
            Layer::active("network", "none but its own loopback, blocked by Modal")
        }
        Outbound::Named { networks, names } => Layer {
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
