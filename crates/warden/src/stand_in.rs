//! A warden played by the gateway itself, for a host on which none can be placed.
//!
//! The link's other end is in this process, so whoever uses a sandbox need not know. What such a
//! warden cannot do it refuses.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::mux::{self, LinkSide, MuxStream};
use crate::protocol::frame::{FrameCollector, FrameKind, WardenFrame};
use crate::protocol::{
    CommandEnd, WardenFailure, WardenReply, WardenRequest, decode, encode, hello,
};

/// Answers one call. Whatever it says last ends the call.
pub type Answer = Arc<dyn Fn(WardenRequest, StandInCaller) -> BoxFuture<'static, ()> + Send + Sync>;

/// Who asked, and where the answer goes.
#[derive(Debug)]
pub struct StandInCaller {
    stream: MuxStream,
    frames: FrameCollector,
}

/// Carries answers to a caller.
#[derive(Clone, Debug)]
pub struct CallerStream(MuxStream);

/// Serves one link until it closes.
pub async fn play<S>(mut stream: S, answer: Answer)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut theirs = [0; hello::LENGTH];
    let greeted = async {
        stream.write_all(&hello::hello()).await?;
        stream.read_exact(&mut theirs).await
    };
    if greeted.await.is_err() || hello::check(theirs).is_err() {
        return;
    }
    // Nothing is opened from here: there is nothing to listen on over there.
    let (_opener, driver) = mux::over(stream, LinkSide::Warden);
    let inbound = |stream| {
        tokio::spawn(hear(stream, Arc::clone(&answer)));
    };
    let _ = driver.run(inbound).await;
}

async fn hear(stream: MuxStream, answer: Answer) {
    let mut frames = FrameCollector::default();
    let request = match stream.receive(&mut frames).await {
        Ok(Some(frame)) if frame.kind == FrameKind::Request => decode(&frame.payload, "request"),
        _ => return,
    };
    if let Ok(request) = request {
        answer(request, StandInCaller { stream, frames }).await;
    }
}

impl StandInCaller {
    /// What he says next; nothing when he is gone.
    pub async fn next(&mut self) -> Option<WardenFrame> {
        self.stream.receive(&mut self.frames).await.ok().flatten()
    }

    pub fn voice(&self) -> CallerStream {
        CallerStream(self.stream.clone())
    }
}

impl CallerStream {
    /// False when nobody listens any more.
    pub async fn say(&self, kind: FrameKind, payload: &[u8]) -> bool {
        self.0.send(kind, payload).await.is_ok()
    }

    pub async fn reply(&self, reply: &WardenReply) {
        self.last(FrameKind::Reply, &encode(reply)).await;
    }

    pub async fn fail(&self, failure: &WardenFailure) {
        self.last(FrameKind::Failed, &encode(failure)).await;
    }

    pub async fn ended(&self, ended: &CommandEnd) {
        self.last(FrameKind::Ended, &encode(ended)).await;
    }

    async fn last(&self, kind: FrameKind, payload: &[u8]) {
        if self.0.send(kind, payload).await.is_ok() {
            let _ = self.0.close().await;
        }
    }
}
