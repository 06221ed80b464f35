//! The warden, placed without a registry: its bytes come in by an exec and are checked inside.

use std::sync::OnceLock;

use hermetic_sandbox::BackendError;
use sha2::{Digest, Sha256};
use tokio::time::{Duration, timeout};

use super::client::ClusterClient;
use super::exec::{ExecEvent, ExecStream};
use super::shape::{BIN, PLACE};
use super::trouble::ClusterTrouble;

const PIECE: usize = 128 << 10;
/// Some 4 MB; over a slow line that is a while.
const PLACE_TIMEOUT: Duration = Duration::from_secs(120);

/// The program and the sum by which the pod knows it is whole.
#[derive(Debug)]
pub(crate) struct WardenProgram {
    bytes: &'static [u8],
    /// Worked out when it is first placed: most who open a backend place nothing.
    sum: OnceLock<String>,
}

impl WardenProgram {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        let sum = OnceLock::new();
        Self { bytes, sum }
    }

    fn sum(&self) -> &str {
        self.sum.get_or_init(|| {
            let digest = Sha256::digest(self.bytes);
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// Under a name of its own first: what has the program's name is whole.
    fn script(&self) -> String {
        let (size, sum) = (self.bytes.len(), self.sum());
        format!(
            "set -e; umask 022; part={BIN}/.part.$$; head -c {size} > $part; \
             sum=$(sha256sum < $part); [ \"${{sum%% *}}\" = {sum} ] || {{ rm -f $part; \
             echo 'the warden arrived damaged' >&2; exit 65; }}; \
             chmod 555 $part; mv -f $part {BIN}/warden; echo placed {sum}"
        )
    }

    /// Done when the pod says so itself: how the exec ended is not believed.
    pub(crate) async fn place(
        &self,
        cluster: &ClusterClient,
        pod: &str,
    ) -> Result<(), ClusterTrouble> {
        let words = ["/bin/sh", "-c", &self.script()].map(str::to_owned);
        let exec = ExecStream::begin(cluster, pod, PLACE, &words).await?;
        let (mut sink, mut source) = exec.split();
        let send = async {
            for piece in self.bytes.chunks(PIECE) {
                if !sink.write(&[piece]).await {
                    break;
                }
            }
            // The exec lives as long as its connection: held until it has said its word.
            std::future::pending::<()>().await;
        };
        let said = async {
            let mut said = Vec::new();
            let wanted = format!("placed {}", self.sum());
            loop {
                match source.next().await {
                    ExecEvent::Out(bytes) => said.extend_from_slice(&bytes),
                    ExecEvent::Ended => return false,
                }
                if String::from_utf8_lossy(&said).contains(&wanted) {
                    return true;
                }
                if said.len() > 10_000 {
                    return false;
                }
            }
        };
        let placed = timeout(PLACE_TIMEOUT, async {
            tokio::select! {
                () = send => false,
                placed = said => placed,
            }
        });
        let placed = placed.await.unwrap_or(false);
        sink.close().await;
        if placed {
            return Ok(());
        }
        Err(ClusterTrouble::lost(match source.words() {
            words if words.is_empty() => "the exec that places the warden ended".to_owned(),
            words => words,
        }))
    }
}

/// What an image has to have for this.
pub(crate) fn needs(trouble: &ClusterTrouble) -> BackendError {
    BackendError::Unavailable {
        what: format!("the warden cannot be placed in the sandbox: {trouble}"),
        remedy: "the image needs /bin/sh, head, sha256sum, chmod, mv and sleep".to_owned(),
    }
}
