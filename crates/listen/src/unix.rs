//! HTTP/1 on a socket in a folder, for programs of the same account.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
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
/// It is made in a folder that nobody else can enter, and moved: a socket begins with the rights that the
/// account gives its files by default, and whoever opened it then would keep what he has.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let folder = path.with_extension("new");
    let aside = folder.join("s");
    clear(&folder, &aside)?;
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let listener = UnixListener::bind(&aside)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&aside, path)?;
    std::fs::remove_dir(&folder)?;
    Ok(listener)
}

/// What one that was killed left.
fn clear(folder: &Path, aside: &Path) -> io::Result<()> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match std::fs::symlink_metadata(folder) {
        Err(error) if missing(&error) => return Ok(()),
        Err(error) => return Err(error),
        // An earlier version made the socket itself under this name.
        Ok(found) if !found.is_dir() => return std::fs::remove_file(folder),
        Ok(_) => {}
    }
    match std::fs::remove_file(aside) {
        Err(error) if !missing(&error) => Err(error),
        _ => std::fs::remove_dir(folder),
    }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_socket_is_ours_alone_and_what_a_killed_one_left_is_in_nobodys_way() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.sock");
        let left = home.path().join("a.new");
        let bind = || bind_private(&path).unwrap();
        drop(bind());
        fs::write(&left, "").unwrap();
        drop(bind());
        fs::create_dir(&left).unwrap();
        drop(bind());
        fs::create_dir(&left).unwrap();
        fs::write(left.join("s"), "").unwrap();
        let _listener = bind();
        let rights = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(rights & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        std::os::unix::net::UnixStream::connect(&path).unwrap();
    }
}
