//! What a pod reaches, and what becomes of one that reaches too much. All of it in the pod's own namespace.

use std::time::Duration;

use hermetic_kubernetes::AcceptedRisk;
use hermetic_sandbox::{Backend, BackendError};

use crate::lab::{Lab, greet, sh, stories};

/// Something that takes connections, in the network namespace of the pod, for so many seconds.
fn listener(address: &str, port: u16, seconds: &str) -> String {
    format!(
        "ip addr add {address}/32 dev lo; python3 -c 'import os, socket, time; \
         s = socket.create_server((\"{address}\", {port})); os.fork() and os._exit(0); \
         time.sleep({seconds})' </dev/null >/dev/null 2>&1"
    )
}

const ROUTE: &str = "ip link add veth0 type veth peer name veth1; ip addr add 10.9.9.2/24 dev veth0; \
                     ip link set veth0 up; ip link set veth1 up";

async fn refusal(lab: &Lab, network: &str) -> String {
    lab.server.habits().network = network.to_owned();
    match lab.kube.create(&lab.spec()).await {
        Err(BackendError::Unavailable { what, remedy }) => {
            assert!(remedy.contains("kubernetes_accept_risks"), "{remedy}");
            what
        }
        other => panic!("it is refused: {other:?}"),
    }
}

stories! {
    async fn a_pod_that_reaches_the_metadata_service_is_refused(lab: &Lab) {
        let what = refusal(lab, &listener("169.254.169.254", 80, "60")).await;
        assert!(what.contains("metadata (169.254.169.254:80)"), "{what}");
    }

    async fn a_pod_that_reaches_the_api_or_dns_is_refused(lab: &Lab) {
        let what = refusal(lab, &listener("10.96.0.1", 443, "60")).await;
        assert!(what.contains("api (10.96.0.1:443)"), "{what}");
        let what = refusal(lab, &listener("10.96.0.10", 53, "60")).await;
        assert!(what.contains("dns (10.96.0.10:53)"), "{what}");
    }

    async fn a_pod_with_a_route_is_refused_unless_that_was_accepted_in_writing(lab: &Lab) {
        let what = refusal(lab, ROUTE).await;
        assert!(what.contains("route (veth0)"), "{what}");
        let accepting = lab.with(|config| config.options.accepted = vec![AcceptedRisk::Route]);
        let spec = lab.spec();
        let sandbox = greet(&spec, accepting.create(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        accepting.destroy(&spec.id).await.unwrap();
        // And nothing more than that.
        lab.server.habits().network = format!("{ROUTE}; {}", listener("169.254.169.254", 80, "60"));
        let refused = accepting.create(&lab.spec()).await.unwrap_err().to_string();
        assert!(refused.contains("metadata") && !refused.contains("route"), "{refused}");
    }

    async fn a_network_that_closes_a_moment_later_is_waited_for(lab: &Lab) {
        lab.server.habits().network = listener("10.96.0.1", 443, "1");
        let patient = lab.with(|config| config.timeouts.settle = Duration::from_secs(20));
        let spec = lab.spec();
        let sandbox = greet(&spec, patient.create(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        patient.destroy(&spec.id).await.unwrap();
    }
}
