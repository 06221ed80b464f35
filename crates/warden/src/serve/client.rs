//! One connected gateway: hello, then a task for each call.

use std::rc::Rc;
use std::time::Duration;

use rustix::process::getpid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::state::{WardenState, bad_request};
use super::{files, listen, run, shell};
use crate::mux::{self, LinkSide, MuxStream, StreamError, StreamOpener};
use crate::protocol::frame::{FrameCollector, FrameKind};
use crate::protocol::hello::{self, VERSION};
use crate::protocol::{
    KillRequest, WardenFailure, WardenInfo, WardenReply, WardenRequest, decode, encode,
};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A call's stream, past its request.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) stream: MuxStream,
    pub(crate) frames: FrameCollector,
}

/// Serves one connection until it closes.
pub(crate) async fn tend(warden: Rc<WardenState>, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    warden.client_came();
    // Somebody who connects and says nothing would count as a client, and keep an idle sandbox
    // alive for ever.
    if let Ok(Ok(())) = timeout(HELLO_TIMEOUT, greet(&mut stream)).await {
        let (opener, driver) = mux::over(stream, LinkSide::Warden);
        let inbound = |stream| {
            let (warden, opener) = (Rc::clone(&warden), opener.clone());
            spawn_local(answer(warden, opener, stream));
        };
        // How the link broke does not matter here: its calls notice.
        let _ = driver.run(inbound).await;
    }
    warden.client_left();
}

async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.write_all(&hello::hello()).await?;
    let mut theirs = [0; hello::LENGTH];
    stream.read_exact(&mut theirs).await?;
    hello::check(theirs).map_err(std::io::Error::other)
}

async fn answer(warden: Rc<WardenState>, opener: StreamOpener, stream: MuxStream) {
    let mut frames = FrameCollector::default();
    let request = match stream.receive(&mut frames).await {
        Ok(Some(frame)) if frame.kind == FrameKind::Request => decode(&frame.payload, "request"),
        _ => return,
    };
    let call = OpenCall { stream, frames };
    match request {
        Ok(request) => dispatch(&warden, opener, call, request).await,
        Err(malformed) => call.fail(&bad_request(&malformed.to_string())).await,
    }
}

async fn dispatch(
    warden: &Rc<WardenState>,
    opener: StreamOpener,
    call: OpenCall,
    request: WardenRequest,
) {
    match request {
        WardenRequest::Run(request) => run::run(warden, call, request).await,
        WardenRequest::Shell(request) => shell::run(warden, call, request).await,
        WardenRequest::Attach(request) => run::attach(warden, call, &request).await,
        WardenRequest::Runs => call.reply(&WardenReply::Runs(warden.runs.list())).await,
        WardenRequest::Kill(KillRequest::Run(id)) => {
            call.answer(run::kill(warden, &id).await).await;
        }
        WardenRequest::Kill(KillRequest::Shell(name)) => {
            call.answer(shell::kill(warden, &name).await).await;
        }
        WardenRequest::Read(request) => files::read(call, request).await,
        WardenRequest::Write(request) => files::write(call, request).await,
        WardenRequest::Stat(at) => call.answer(files::stat(&at)).await,
        WardenRequest::Resolve(request) => call.answer(files::resolve(warden, &request)).await,
        WardenRequest::ListDir(at) => call.answer(files::list(&at)).await,
        WardenRequest::MakeDir(at) => call.answer(files::make_dir(&at)).await,
        WardenRequest::Remove(at) => call.answer(files::remove(&at)).await,
        WardenRequest::Listen(request) => listen::listen(warden, opener, call, request).await,
        WardenRequest::Info => call.reply(&WardenReply::Info(info(warden))).await,
        WardenRequest::Look(request) => run::look(warden, call, &request).await,
    }
}

fn info(warden: &WardenState) -> WardenInfo {
    WardenInfo {
        version: VERSION,
        pid: getpid().as_raw_pid().unsigned_abs(),
        rss_bytes: rss_bytes().unwrap_or(0),
        uptime: warden.born.elapsed(),
        clients: warden.clients(),
        runs: warden.runs.count_running(),
        shells: warden.shells.count(),
        listeners: warden.listeners.get(),
    }
}

/// The second number of `statm`, in pages.
fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

impl OpenCall {
    pub(crate) async fn reply(&self, reply: &WardenReply) {
        self.last(FrameKind::Reply, &encode(reply)).await;
    }

    pub(crate) async fn fail(&self, failure: &WardenFailure) {
        self.last(FrameKind::Failed, &encode(failure)).await;
    }

    pub(crate) async fn answer(&self, answer: Result<WardenReply, WardenFailure>) {
        match answer {
            Ok(reply) => self.reply(&reply).await,
            Err(failure) => self.fail(&failure).await,
        }
    }

    async fn last(&self, kind: FrameKind, payload: &[u8]) {
        // A caller who is gone does not miss the answer.
        let _: Result<(), StreamError> = async {
            self.stream.send(kind, payload).await?;
            self.stream.close().await
        }
        .await;
    }
}
