//! Notices a warden that neither answers nor goes away.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::warden::ClientLink;

/// Between two questions. Nobody is asked while nothing waits for an answer.
const PULSE_INTERVAL: Duration = Duration::from_secs(15);
/// A warden answers within a millisecond; one on a machine that swaps, or behind a slow line, takes
/// longer.
const PULSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns when the link deserves no more waiting, or is no longer there.
pub(super) async fn watch(link: Weak<ClientLink>) {
    loop {
        sleep(PULSE_INTERVAL).await;
        // Weak, or the watch would keep alive the link whose end it waits for.
        let Some(link) = link.upgrade() else { return };
        if link.is_idle() {
            continue;
        }
        if timeout(PULSE_TIMEOUT, link.ping()).await.is_err() {
            return;
        }
    }
}
