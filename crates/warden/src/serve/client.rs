//! One connected gateway: hello, then a task for each call.

use std::rc::Rc;
use std::time::Duration;

use futures::future::{Either, select};
use hermetic_types::HolderEpoch;
use rustix::process::getpid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::holder::HolderLink;
use super::state::{WardenState, bad_request};
use super::{files, listen, run, shell};
use crate::mux::{self, LinkSide, MuxStream, StreamError, StreamOpener};
use crate::protocol::frame::{FrameCollector, FrameKind};
use crate::protocol::hello::{self, VERSION};
use crate::protocol::{
    KillRequest, WardenFailure, WardenInfo, WardenReply, WardenRequest, decode, encode,
};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// What a link that is refused has to read why, before it is ended: kept open by a gateway that does not
/// understand, it would keep the sandbox from ever being idle.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// What a link that is cut has to take the goodbye: whoever reads nothing hears of it by a broken link.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// A call's stream, past its request.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// By which the caller has the sandbox.
    pub(crate) holder: HolderEpoch,
    pub(crate) stream: MuxStream,
    pub(crate) frames: FrameCollector,
}

/// Serves one connection until it closes.
pub(crate) async fn tend(warden: Rc<WardenState>, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    warden.client_came();
    // Somebody who connects and says nothing would count as a client, and keep an idle sandbox
    // alive for ever.
    if let Ok(Ok(())) = timeout(HELLO_TIMEOUT, greet(&mut stream)).await {
        let (opener, mut driver) = mux::over(stream, LinkSide::Warden);
        let link = warden.holders.join();
        let inbound = |stream| {
            let (warden, link, opener) = (Rc::clone(&warden), Rc::clone(&link), opener.clone());
            spawn_local(async move {
                let cut = std::pin::pin!(link.until_cut());
                let answered = std::pin::pin!(answer(&warden, &link, opener, stream));
                // The cut is asked about first at every step: what a link has sent and was not begun goes
                // with the link, also what lies here already.
                select(cut, answered).await;
            });
        };
        let is_cut = {
            let cut = std::pin::pin!(link.until_cut());
            let driven = std::pin::pin!(driver.drive(inbound));
            // How the link broke does not matter here: its calls notice.
            matches!(select(cut, driven).await, Either::Left(_))
        };
        // Its calls have ended by now, and nothing more is read of it.
        if is_cut {
            let _ = timeout(GOODBYE_TIME, driver.say_goodbye()).await;
        }
    }
    warden.client_left();
}

async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.write_all(&hello::hello()).await?;
    let mut theirs = [0; hello::LENGTH];
    stream.read_exact(&mut theirs).await?;
    hello::check(theirs).map_err(std::io::Error::other)
}

async fn answer(
    warden: &Rc<WardenState>,
    link: &HolderLink,
    opener: StreamOpener,
    stream: MuxStream,
) {
    let mut frames = FrameCollector::default();
    let request = match stream.receive(&mut frames).await {
        Ok(Some(frame)) if frame.kind == FrameKind::Request => decode(&frame.payload, "request"),
        _ => return,
    };
    let mut call = OpenCall {
        holder: HolderEpoch::UNSHARED,
        stream,
        frames,
    };
    let request = match request {
        Ok(WardenRequest::Hold(hold)) => {
            return call.reply(&warden.holders.hold(link, hold)).await;
        }
        other => other,
    };
    match warden.holders.admit(link) {
        Ok(holder) => call.holder = holder,
        Err(refused) => {
            call.fail(&refused).await;
            sleep(REFUSAL_TIME).await;
            return link.end();
        }
    }
    match request {
        Ok(request) => dispatch(warden, opener, call, request).await,
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
        // Answered before anything else is asked of a link.
        WardenRequest::Hold(_) => {}
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
