//! One page, fetched through a conversation's egress.
//!
//! Every step of a redirection is a request of its own, which the proxy judges anew: by name, by the address
//! that the name has, and by asking where somebody is to be asked.

use std::time::Duration;

use hermetic_egress::EgressClient;
use hyper::Method;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue, LOCATION, USER_AGENT};
use tokio::time::timeout;
use url::Url;

use super::arguments::checked;
use super::compression::{self, unpack};
use crate::web_request::{WebAnswer, WebRequest};

/// What a server sent, unpacked and bounded.
#[derive(Debug)]
pub(super) struct FetchedBody {
    /// Where it was in the end.
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_cut: bool,
}

/// What is looked for, and how much of it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchBounds {
    pub(super) accept: &'static str,
    pub(super) most_bytes: usize,
    /// For one step, and for the body.
    pub(super) patience: Duration,
}

/// Steps of one redirection, as browsers and curl have some.
const MOST_REDIRECTS: usize = 5;
const AGENT: &str = concat!("hermetic/", env!("CARGO_PKG_VERSION"));

pub(super) async fn fetch(
    client: &EgressClient,
    url: Url,
    bounds: FetchBounds,
) -> Result<FetchedBody, String> {
    let mut url = url;
    for _ in 0..=MOST_REDIRECTS {
        let mut answer = ask(client, &url, bounds).await?;
        if let Some(next) = redirection(&url, &answer)? {
            url = next;
            continue;
        }
        if !answer.status.is_success() {
            return Err(format!("the server answered {}", answer.status));
        }
        return body(url, &mut answer, bounds).await;
    }
    Err(format!(
        "it leads from one address to the next, more than {MOST_REDIRECTS} times; the last was {url}"
    ))
}

async fn ask(client: &EgressClient, url: &Url, bounds: FetchBounds) -> Result<WebAnswer, String> {
    let unusable = |_| "it is no address that can be asked for".to_owned();
    let address = url.as_str().parse().map_err(unusable)?;
    let mut request = WebRequest::new(Method::GET, address);
    let headers = &mut request.headers;
    headers.insert(ACCEPT, HeaderValue::from_static(bounds.accept));
    headers.insert(
        ACCEPT_ENCODING,
        HeaderValue::from_static(compression::TAKEN),
    );
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    // A person may be asked about the host first.
    let patience = bounds.patience + client.longest_question();
    let answer = request.send(client, patience).await;
    answer.map_err(|error| error.to_string())
}

/// Where the answer leads; nothing where it is one itself.
fn redirection(from: &Url, answer: &WebAnswer) -> Result<Option<Url>, String> {
    if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = answer.headers.get(LOCATION).map(HeaderValue::as_bytes);
    let location = location.ok_or("it leads elsewhere without saying where")?;
    let location = String::from_utf8_lossy(location);
    let mut next = from
        .join(&location)
        .map_err(|_| "it leads to something that is no address".to_owned())?;
    checked(&next).map_err(|why| format!("it leads elsewhere: {why}"))?;
    next.set_fragment(None);
    Ok(Some(next))
}

async fn body(
    url: Url,
    answer: &mut WebAnswer,
    bounds: FetchBounds,
) -> Result<FetchedBody, String> {
    let most = bounds.most_bytes;
    // The time that a person took for an answer is none that a server may take.
    let read = timeout(bounds.patience, answer.beginning(most)).await;
    let endless = |_| {
        let seconds = bounds.patience.as_secs();
        format!("it did not come to an end within {seconds} s")
    };
    let read = read.map_err(endless)?;
    let (packed, was_cut) = read.map_err(|error| error.to_string())?;
    let unpacked = unpack(&packed, answer.header("content-encoding"), most)?;
    Ok(FetchedBody {
        url,
        content_type: answer.header("content-type").to_ascii_lowercase(),
        bytes: unpacked.bytes,
        is_cut: was_cut || unpacked.is_cut,
    })
}
