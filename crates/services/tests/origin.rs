//! A server that answers everything alike and remembers what it heard.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, request::Parts};

#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) address: String,
    heard: Arc<Mutex<Vec<(Parts, Bytes)>>>,
}

#[derive(Clone)]
struct Reply {
    status: u16,
    location: &'static str,
    body: Bytes,
    heard: Arc<Mutex<Vec<(Parts, Bytes)>>>,
}

impl Origin {
    pub(crate) async fn answering(status: u16, body: impl Into<Bytes>) -> Self {
        Self::redirecting(status, "", body).await
    }

    pub(crate) async fn redirecting(
        status: u16,
        location: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        let heard = Arc::default();
        let reply = Reply {
            status,
            location,
            body: body.into(),
            heard: Arc::clone(&heard),
        };
        let router = Router::new().fallback(answer).with_state(reply);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, heard }
    }

    pub(crate) fn last(&self) -> (Parts, Bytes) {
        self.heard.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

async fn answer(State(reply): State<Reply>, parts: Parts, body: Bytes) -> Response<Body> {
    reply.heard.lock().unwrap().push((parts, body));
    let response = Response::builder().status(reply.status);
    let response = match reply.location {
        "" => response,
        location => response.header("location", location),
    };
    response.body(Body::from(reply.body)).unwrap()
}
