//! A Modal of the tests' own: the real protocol on loopback, and sandboxes that really run.

mod cell;
mod execs;
mod fault;
mod images;
mod plane;
mod process;
mod sandboxes;
mod wire;

use std::convert::Infallible;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use hermetic_modal::wire::*;
use http::HeaderMap;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

pub(crate) use cell::lacking;
pub(crate) use fault::Fault;
pub(crate) use plane::{Plane, TOKEN_ID, TOKEN_SECRET};
use wire::*;

/// Whose the control plane's own tokens are.
const CONTROL: &str = "control";

/// Gone, with all that runs in it, when dropped.
pub(crate) struct Service {
    pub(crate) plane: Arc<Plane>,
    pub(crate) url: String,
    serving: AbortHandle,
}

impl Service {
    pub(crate) async fn open() -> Self {
        let plane = Arc::new(Plane::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        plane.url.lock().unwrap().clone_from(&url);
        let answering = Arc::clone(&plane);
        let service = service_fn(move |request| {
            let plane = Arc::clone(&answering);
            async move { Ok::<_, Infallible>(answer(plane, request).await) }
        });
        let incoming = futures::stream::unfold(listener, async |listener| {
            let accepted = listener.accept().await.map(|(stream, _)| {
                // As real services have it; else each answer waits 40 ms for an acknowledgement.
                let _ = stream.set_nodelay(true);
                stream
            });
            Some((accepted, listener))
        });
        let served = tonic::transport::Server::builder()
            .initial_stream_window_size(1 << 20)
            .serve_with_incoming(service, Box::pin(incoming));
        let serving = tokio::spawn(served).abort_handle();
        Self {
            plane,
            url,
            serving,
        }
    }

    /// How often a question of that name was put.
    pub(crate) fn count(&self, method: &str) -> usize {
        let seen = self.plane.seen.lock().unwrap();
        seen.iter()
            .filter(|path| path.ends_with(&format!("/{method}")))
            .count()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(plane: Arc<Plane>, request: http::Request<Body>) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    plane.seen.lock().unwrap().push(path.clone());
    let key = header(request.headers(), "x-idempotency-key").to_owned();
    let p = Arc::clone(&plane);
    macro_rules! routes {
        ($($question:ident => |$asked:ident| $answer:expr,)* ; $($stream:ident => |$from:ident| $pieces:expr,)*) => {
            match path.as_str() {
                $(path if path == $question::PATH => {
                    one(&plane, request, move |$asked: $question| async move { $answer }).await
                })*
                $(path if path == $stream::PATH => {
                    many(&plane, request, move |$from: $stream| $pieces).await
                })*
                other => Status::unimplemented(other).into_http(),
            }
        };
    }
    routes! {
        ClientHelloRequest => |_q| Ok(ClientHelloResponse::default()),
        AuthTokenGetRequest => |_q| Ok(AuthTokenGetResponse { token: p.pass(CONTROL) }),
        AppGetOrCreateRequest => |q| p.app(q),
        EnvironmentGetOrCreateRequest => |_q| Ok(p.environment()),
        ImageGetOrCreateRequest => |q| p.image(q),
        ImageFromIdRequest => |q| p.image_by_id(q),
        ImageDeleteRequest => |q| p.delete_image(q),
        SandboxCreateRequest => |q| p.create(q, key).await,
        SandboxListRequest => |q| Ok(p.list(q)),
        SandboxTagsSetRequest => |q| p.tag(q),
        SandboxGetTaskIdRequest => |q| p.task(q),
        SandboxGetCommandRouterAccessRequest => |q| p.router(q),
        SandboxTerminateRequest => |q| p.terminate(q).await,
        SandboxWaitRequest => |q| p.wait(q).await,
        SandboxStdinWriteRequest => |q| p.entry_stdin(q).await,
        TaskExecStartRequest => |q| p.start_exec(q),
        TaskExecStdinWriteRequest => |q| p.exec_stdin(q).await,
        TaskExecWaitRequest => |q| p.exec_wait(q).await,
        TaskExecPollRequest => |q| p.exec_poll(q),
        TaskSnapshotFilesystemRequest => |q| p.snapshot(q).await,
        ;
        ImageJoinStreamingRequest => |q| p.build(q),
        SandboxStdioReadRequest => |q| p.entry_stdio(q),
        TaskExecStdioReadRequest => |q| p.exec_stdio(q),
    }
}

async fn one<Q, F>(
    plane: &Plane,
    request: http::Request<Body>,
    answer: impl FnOnce(Q) -> F + Send,
) -> http::Response<Body>
where
    Q: RpcCall + Default,
    F: Future<Output = Result<Q::Answer, Status>> + Send,
{
    let fault = plane.faults.next(Q::PATH);
    let allowed = allowed::<Q>(plane, request.headers());
    let mut answer = Some(answer);
    let service = service_fn(|request: Request<Q>| {
        let answer = answer.take().expect("a question is answered once");
        let (fault, allowed) = (fault.clone(), allowed.clone());
        async move {
            allowed?;
            if let Some(Fault::Before(status)) = fault {
                return Err(status);
            }
            let answered = answer(request.into_inner()).await?;
            match fault {
                Some(Fault::After(status)) => Err(status),
                _ => Ok(Response::new(answered)),
            }
        }
    });
    let codec = ProstCodec::<Q::Answer, Q>::default();
    Grpc::new(codec).unary(service, request).await
}

async fn many<Q: RpcCall + Default>(
    plane: &Plane,
    request: http::Request<Body>,
    answer: impl FnOnce(Q) -> Result<BoxStream<'static, Q::Answer>, Status> + Send,
) -> http::Response<Body> {
    let fault = plane.faults.next(Q::PATH);
    let allowed = allowed::<Q>(plane, request.headers());
    let mut away = Some(plane.faults.away());
    let mut answer = Some(answer);
    let service = service_fn(|request: Request<Q>| {
        let answer = answer.take().expect("a question is answered once");
        let answered = allowed.clone().and_then(|()| match fault.clone() {
            Some(Fault::Before(status)) => Err(status),
            Some(Fault::Cut(pieces, status)) => {
                let whole = answer(request.into_inner())?.map(Ok).take(pieces);
                Ok(whole
                    .chain(futures::stream::once(async { Err(status) }))
                    .boxed())
            }
            _ => {
                let whole = answer(request.into_inner())?;
                let away = away.take().expect("a question is answered once");
                Ok(until_away(whole, away))
            }
        });
        std::future::ready(answered.map(Response::new))
    });
    let codec = ProstCodec::<Q::Answer, Q>::default();
    Grpc::new(codec).server_streaming(service, request).await
}

/// A stream that breaks off when nobody is there any more.
fn until_away<T: Send + 'static>(
    whole: BoxStream<'static, T>,
    away: watch::Receiver<bool>,
) -> BoxStream<'static, Result<T, Status>> {
    let mut leaving = away.clone();
    let left = async move {
        let _ = leaving.wait_for(|away| *away).await;
    };
    let broken = async move { away.borrow().then(|| Err(fault::absence())) };
    let rest = futures::stream::once(broken).filter_map(std::future::ready);
    whole.map(Ok).take_until(left.boxed()).chain(rest).boxed()
}

/// Who asks has said who he is, in the way this question wants it.
fn allowed<Q: RpcCall>(plane: &Plane, headers: &HeaderMap) -> Result<(), Status> {
    if let Some(absence) = plane.faults.absence() {
        return Err(absence);
    }
    let denied = |why: &str| Err(Status::unauthenticated(why));
    if Q::PATH.contains("TaskCommandRouter") {
        let pass = header(headers, "authorization").strip_prefix("Bearer ");
        return match pass {
            Some(pass) if plane.is_good(pass, "ta-") => Ok(()),
            _ => denied("the pass is not good"),
        };
    }
    let told = (
        header(headers, "x-modal-token-id"),
        header(headers, "x-modal-token-secret"),
    );
    if told != (TOKEN_ID, TOKEN_SECRET) {
        return denied("token is not known");
    }
    if Q::NEEDS_TOKEN && !plane.is_good(header(headers, "x-modal-auth-token"), CONTROL) {
        return denied("the token is not good");
    }
    if header(headers, "x-modal-client-version").is_empty() {
        return Err(Status::failed_precondition("which client is this?"));
    }
    Ok(())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}
