//! HTTP/1 on a socket in a folder, for programs of the same account.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::patient_writer::PatientWriter;

/// What one connection may make us hold of a head, and of a body that nobody has read yet.
const BUFFER: usize = 64 << 10;

/// Between two tries where no connection could be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens on a socket at this path that no other account can open, whatever stood there before.
///
/// It is made under another name and moved: at no time does it stand there with other rights.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let aside = path.with_extension("new");
    match std::fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&aside)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&aside, path)?;
    Ok(listener)
}

/// Answers until `stop`, so many connections at once; then finishes what is being answered within `grace` and
/// cuts the rest.
///
/// Boxed so that dependants do not recompile the server future.
pub fn serve_unix(
    listener: UnixListener,
    routes: Router,
    most: usize,
    stop: CancellationToken,
    grace: Duration,
) -> BoxFuture<'static, ()> {
    serve(listener, routes, most, stop, grace).boxed()
}

async fn serve(
    listener: UnixListener,
    routes: Router,
    most: usize,
    stop: CancellationToken,
    grace: Duration,
) {
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    let room = Arc::new(Semaphore::new(most));
    let accept = async || {
        // Taken first: who finds no room waits in the kernel's queue.
        let place = Arc::clone(&room).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Some((stream, place)),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    while let Some(Some((stream, place))) = stop.run_until_cancelled(accept()).await {
        let answering = answer(stream, routes.clone(), stop.clone());
        let cut = cut.clone();
        connections.spawn(async move {
            cut.run_until_cancelled(answering).await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if timeout(grace, connections.wait()).await.is_err() {
        cut.cancel();
        connections.wait().await;
    }
}

async fn answer(stream: UnixStream, routes: Router, stop: CancellationToken) {
    let service = TowerToHyperService::new(routes);
    let serving = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(PatientWriter::new(stream)), service);
    let mut serving = Box::pin(serving);
    tokio::select! {
        // How a connection failed matters to nobody.
        _ = serving.as_mut() => return,
        () = stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}
