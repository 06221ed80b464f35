//! The link: one exec of `warden connect`, for as long as it holds.
//!
//! Neither the API server nor a kubelet tells the program at the far end that nobody is here any more, so
//! what goes in is framed, and a frame of nothing now and then says that we are. The other way round, a ping
//! is answered by the API server. Either end that hears nothing for a minute gives the link up.

use std::time::Duration;

use bytes::Bytes;
use hermetic_sandbox::WardenLink;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::client::ClusterClient;
use super::exec::{ExecEvent, ExecSink, ExecSource, ExecStream};
use super::shape::{self, LEASH};
use super::trouble::ClusterTrouble;

/// What is sent at once.
const PIECE: usize = 128 << 10;
/// What waits on its way through this process.
const CAPACITY: usize = 256 << 10;
/// Shorter than any idle cut on the way that is known: load balancers have 60 seconds and more.
const BEAT_INTERVAL: Duration = Duration::from_secs(15);
/// A frame of no bytes.
const BEAT: [u8; 4] = [0; 4];

/// A link whose warden has said something already: an exec succeeds even where there is no container.
pub(crate) async fn reach(
    cluster: &ClusterClient,
    pod: &str,
    patience: Duration,
) -> Result<WardenLink, ClusterTrouble> {
    let words = shape::connect();
    let exec = ExecStream::begin(cluster, pod, shape::SANDBOX, &words).await?;
    let (sink, mut source) = exec.split();
    let first = timeout(patience, first_bytes(&mut source)).await;
    let Ok(Some(first)) = first else {
        return Err(ClusterTrouble::lost(match source.words() {
            words if words.is_empty() => "its warden does not answer".to_owned(),
            words => words,
        }));
    };
    let (ours, theirs) = tokio::io::duplex(CAPACITY);
    tokio::spawn(hold(sink, source, first, ours));
    Ok(WardenLink::new(theirs))
}

/// Nothing where it ended before there were any.
async fn first_bytes(source: &mut ExecSource) -> Option<Bytes> {
    loop {
        match source.next().await {
            ExecEvent::Out(bytes) if bytes.is_empty() => {}
            ExecEvent::Out(bytes) => return Some(bytes),
            ExecEvent::Ended => return None,
        }
    }
}

/// Ends with whichever side ends first, and the exec with it.
async fn hold(mut sink: ExecSink, source: ExecSource, first: Bytes, pipe: DuplexStream) {
    let (from_us, to_us) = tokio::io::split(pipe);
    tokio::select! {
        () = hear(source, first, to_us) => {}
        () = tell(&mut sink, from_us) => {}
    }
    let _ = timeout(BEAT_INTERVAL, sink.close()).await;
}

async fn hear(mut source: ExecSource, first: Bytes, mut pipe: WriteHalf<DuplexStream>) {
    let mut bytes = first;
    loop {
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
        bytes = match timeout(LEASH, source.next()).await {
            Ok(ExecEvent::Out(bytes)) => bytes,
            Ok(ExecEvent::Ended) => {
                return tracing::debug!(words = source.words(), "a link to a pod ended");
            }
            Err(_) => return tracing::debug!("a link to a pod went silent"),
        };
    }
}

async fn tell(sink: &mut ExecSink, mut pipe: ReadHalf<DuplexStream>) {
    let mut beat = interval_at(Instant::now() + BEAT_INTERVAL, BEAT_INTERVAL);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut buffer = vec![0; PIECE];
    loop {
        let taken = tokio::select! {
            read = pipe.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    let length = u32::try_from(read).unwrap_or_default().to_be_bytes();
                    sink.write(&[&length, &buffer[..read]]).await
                }
            },
            _ = beat.tick() => sink.write(&[&BEAT]).await && sink.ping().await,
        };
        if !taken {
            return;
        }
    }
}
