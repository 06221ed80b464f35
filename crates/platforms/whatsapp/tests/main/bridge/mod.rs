//! An account behind a bridge.

mod conformance;
mod server;
mod stories;

use std::time::Duration;

use hermetic_types::SystemClock;
use hermetic_whatsapp::{BridgeConfig, BridgeTiming};

use server::BridgeServer;

fn config(server: &BridgeServer) -> BridgeConfig {
    BridgeConfig {
        timing: BridgeTiming {
            poll: Duration::from_millis(5),
            health: Duration::from_millis(5),
            request: Duration::from_secs(10),
            retry: (Duration::from_millis(2), Duration::from_millis(20)),
        },
        ..BridgeConfig::new(&server.url, SystemClock::shared())
    }
}
