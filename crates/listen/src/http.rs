//! HTTP/1 on a bounded port.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::patient_writer::PatientWriter;
use crate::{BoundedListener, TrackedConnection};

/// What one connection may make us hold of a head, and of a body that nobody has read yet.
const BUFFER: usize = 64 << 10;

/// Answers until `stop`; then finishes what is being answered within `grace` and cuts the rest.
///
/// Boxed so that dependants do not recompile the server future.
pub fn serve_http(
    listener: BoundedListener,
    routes: Router,
    stop: CancellationToken,
    grace: Duration,
) -> BoxFuture<'static, ()> {
    serve(listener, routes, stop, grace).boxed()
}

async fn serve(
    mut listener: BoundedListener,
    routes: Router,
    stop: CancellationToken,
    grace: Duration,
) {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    while let Some((stream, _, tracked)) = stop.run_until_cancelled(listener.accept()).await {
        // Fails only on a socket that is gone already, which the first read will tell.
        let _ = stream.set_nodelay(true);
        let answering = answer(stream, tracked, routes.clone(), stop.clone());
        let cut = cut.clone();
        connections.spawn(async move { cut.run_until_cancelled(answering).await });
    }
    // The port is free for whoever starts next while the last answers are finished.
    drop(listener);
    connections.close();
    if timeout(grace, connections.wait()).await.is_err() {
        cut.cancel();
        connections.wait().await;
    }
}

/// One connection, until it ends or has to go.
async fn answer(
    stream: TcpStream,
    tracked: TrackedConnection,
    routes: Router,
    stop: CancellationToken,
) {
    let tracked = Arc::new(tracked);
    let (routes, connection) = (TowerToHyperService::new(routes), Arc::clone(&tracked));
    let service = service_fn(move |request: Request<Incoming>| {
        connection.head_came();
        let request = request.map(|body| RequestBody::new(body, Arc::clone(&connection)));
        let (answered, connection) = (routes.call(request), Arc::clone(&connection));
        async move {
            let response: Response<Body> = answered.await?;
            let response = response.map(|body| ResponseBody { body, connection });
            Ok::<_, Infallible>(response)
        }
    });
    let serving = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(PatientWriter::new(stream)), service);
    let mut serving = Box::pin(serving);
    tokio::select! {
        // How a stranger's connection failed matters to nobody.
        _ = serving.as_mut() => return,
        () = tracked.over() => return,
        // What is being answered is finished, and the client told that no other request is taken.
        () = stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = serving => {}
        () = tracked.over() => {}
    }
}

/// A request's body, whose end proves the connection.
struct RequestBody {
    body: Incoming,
    connection: Arc<TrackedConnection>,
}

impl RequestBody {
    fn new(body: Incoming, connection: Arc<TrackedConnection>) -> Self {
        // A request without a body is whole with its head, and its body is perhaps never polled.
        if body.is_end_stream() {
            connection.request_came();
        }
        Self { body, connection }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            this.connection
                .holds(frame.data_ref().map_or(0, Bytes::len));
        }
        if frame.is_none() || this.body.is_end_stream() {
            this.connection.request_came();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body, whose end leaves the connection to itself.
struct ResponseBody {
    body: Body,
    connection: Arc<TrackedConnection>,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    // Dropped in any case, also when the client went away or nobody read the body to its end.
    fn drop(&mut self) {
        self.connection.answered();
    }
}
