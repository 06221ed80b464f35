//! A warden played by the gateway itself, for a host on which none can be placed.
//!
//! The link's other end is in this process, so whoever uses a sandbox need not know. What such a
//! warden cannot do it refuses.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::mux::{self, MuxStream, Side};
use crate::protocol::frame::{Frame, Frames, Kind};
use crate::protocol::{Ended, Failure, Reply, Request, decode, encode, hello};

/// Answers one call. Whatever it says last ends the call.
pub type Answer = Arc<dyn Fn(Request, Caller) -> BoxFuture<'static, ()> + Send + Sync>;

/// Who asked, and where the answer goes.
#[derive(Debug)]
pub struct Caller {
    stream: MuxStream,
    frames: Frames,
}

/// The way to a caller.
#[derive(Clone, Debug)]
pub struct Voice(MuxStream);

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
    let (_opener, driver) = mux::over(stream, Side::Warden);
    let inbound = |stream| {
        tokio::spawn(hear(stream, Arc::clone(&answer)));
    };
    let _ = driver.run(inbound).await;
}

async fn hear(stream: MuxStream, answer: Answer) {
    let mut frames = Frames::default();
    let request = match stream.receive(&mut frames).await {
        Ok(Some(frame)) if frame.kind == Kind::Request => decode(&frame.payload, "request"),
        _ => return,
    };
    if let Ok(request) = request {
        answer(request, Caller { stream, frames }).await;
    }
}

impl Caller {
    /// What he says next; nothing when he is gone.
    pub async fn next(&mut self) -> Option<Frame> {
        self.stream.receive(&mut self.frames).await.ok().flatten()
    }

    pub fn voice(&self) -> Voice {
        Voice(self.stream.clone())
    }
}

impl Voice {
    /// False when nobody listens any more.
    pub async fn say(&self, kind: Kind, payload: &[u8]) -> bool {
        self.0.send(kind, payload).await.is_ok()
    }

    pub async fn reply(&self, reply: &Reply) {
        self.last(Kind::Reply, &encode(reply)).await;
    }

    pub async fn fail(&self, failure: &Failure) {
        self.last(Kind::Failed, &encode(failure)).await;
    }

    pub async fn ended(&self, ended: &Ended) {
        self.last(Kind::Ended, &encode(ended)).await;
    }

    async fn last(&self, kind: Kind, payload: &[u8]) {
        if self.0.send(kind, payload).await.is_ok() {
            let _ = self.0.close().await;
        }
    }
}
