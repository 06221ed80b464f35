//! From the request a sandbox sent to the one that goes out.

use crate::credential::Credential;
use crate::http::exchange::OutgoingRequest;
use crate::http::fields::HeaderFields;
use crate::http::framing::BodyFraming;
use crate::http::head::{HttpVersion, RequestHead};
use crate::refusal::ProxyRefusal;
use crate::rules::Authority;
use crate::upstream::UpstreamRoute;

/// `http://host[:port]/path?query`, in the one form plain HTTP through a proxy has. A websocket begins as
/// such a request, and some clients leave its own scheme there.
pub(super) fn absolute_target(target: &str) -> Result<(Authority, String), ProxyRefusal> {
    let refuse = |reason: &str| ProxyRefusal::bad_request(target, reason);
    let after = |scheme: &str| {
        let (begin, rest) = target.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let Some(rest) = after("http://").or_else(|| after("ws://")) else {
        let by_tls = after("https://").or_else(|| after("wss://")).is_some();
        return Err(refuse(if by_tls {
            "https goes through CONNECT, not through a plain request"
        } else {
            "this is a proxy: the request must name its target as http://host/path"
        }));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = Authority::parse_with_default(authority, 80)
        .map_err(|error| ProxyRefusal::bad_target(authority, error.to_string()))?;
    checked_path(path)
        .map(|path| (authority, path))
        .ok_or_else(|| refuse("the path is malformed"))
}

fn checked_path(path: &str) -> Option<String> {
    match path.bytes().next() {
        _ if path.contains(['#', '\\']) => None,
        None => Some("/".to_owned()),
        Some(b'?') => Some(format!("/{path}")),
        Some(b'/') => Some(path.to_owned()),
        Some(_) => None,
    }
}

/// `/path?query`, where the host is known already.
pub(super) fn origin_target(target: &str) -> Option<String> {
    target
        .starts_with('/')
        .then(|| checked_path(target))
        .flatten()
}

/// The Host header must be the target. Only HTTP/1.0 may leave it out.
pub(super) fn check_host(
    head: &RequestHead,
    target: &Authority,
    default_port: u16,
) -> Result<(), ProxyRefusal> {
    let refuse = |reason: &str| Err(ProxyRefusal::bad_request(&target.to_string(), reason));
    if !head.fields.has("host") {
        return match head.version {
            HttpVersion::Http10 => Ok(()),
            HttpVersion::Http11 => refuse("the Host header is missing"),
        };
    }
    let Some(host) = head.fields.only("host") else {
        return refuse("there is more than one Host header");
    };
    let host = std::str::from_utf8(host)
        .ok()
        .and_then(|host| Authority::parse_with_default(host, default_port).ok());
    if host.as_ref() == Some(target) {
        Ok(())
    } else {
        refuse("the Host header is not the target")
    }
}

/// Headers by which interfaces take keys. None of the sandbox's goes where a credential of ours is limited.
const KEY_HEADERS: &[&str] = &[
    "authorization",
    "x-authorization",
    "x-api-key",
    "api-key",
    "apikey",
    "x-goog-api-key",
    "x-goog-user-project",
    "x-auth-token",
    "x-access-token",
    "x-amz-security-token",
    "openai-organization",
    "openai-project",
    "cookie",
];

/// What we add to a request of the sandbox.
#[derive(Default)]
pub(super) struct RequestAdditions<'a> {
    pub(super) credentials: &'a [Credential],
    /// The proxy that reads the request and passes it on.
    pub(super) forwarder: Option<&'a UpstreamRoute>,
}

/// The head that goes out: our framing, our Host, nothing of this hop, the credentials put in.
pub(super) fn outgoing(
    head: RequestHead,
    target: &Authority,
    default_port: u16,
    path: &str,
    framing: BodyFraming,
    additions: &RequestAdditions<'_>,
) -> OutgoingRequest {
    let RequestHead {
        method,
        version,
        mut fields,
        ..
    } = head;
    let upgrade = framing == BodyFraming::Empty
        && version == HttpVersion::Http11
        && method == "GET"
        && asks_for_websocket(&fields);
    let keep = match version {
        HttpVersion::Http11 => !fields.lists("connection", "close"),
        HttpVersion::Http10 => fields.lists("connection", "keep-alive"),
    };
    let empty_length = framing == BodyFraming::Empty && fields.has("content-length");

    // First what the sandbox says about its hop, then ours is put in: nothing of its framing goes
    // on.
    strip_framing(&mut fields);
    match framing {
        BodyFraming::Length(length) => fields.push("Content-Length", length.to_string().as_bytes()),
        BodyFraming::Chunked => fields.push("Transfer-Encoding", b"chunked"),
        BodyFraming::Empty if empty_length => fields.push("Content-Length", b"0"),
        BodyFraming::Empty | BodyFraming::UntilClose => {}
    }
    if upgrade {
        fields.push("Connection", b"Upgrade");
        fields.push("Upgrade", b"websocket");
    }
    let forwarder = additions.forwarder;
    additions.put_into(&mut fields);

    let host = if target.port == default_port {
        target.host.to_string()
    } else {
        target.to_string()
    };
    // A proxy that passes requests on is told the whole address.
    let origin = forwarder.map_or_else(String::new, |_| format!("http://{host}"));
    let mut bytes = format!("{method} {origin}{path} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    fields.write(&mut bytes);
    OutgoingRequest {
        head: bytes,
        method,
        framing,
        upgrade,
        forwarded: forwarder.is_some(),
        client_version: version,
        keep,
    }
}

impl RequestAdditions<'_> {
    fn put_into(&self, fields: &mut HeaderFields) {
        let login = self.forwarder.and_then(UpstreamRoute::authorization);
        if !self.credentials.is_empty() || login.is_some() {
            make_searchable(fields);
        }
        // With a key of somebody else's in another header, the path would be a way to carry files out to them.
        if self.credentials.iter().any(Credential::is_limited) {
            for header in KEY_HEADERS {
                fields.remove(header);
            }
        }
        for credential in self.credentials {
            // Last, over whatever the sandbox has written there.
            credential.put_into(fields);
        }
        if let Some(login) = login {
            fields.push("Proxy-Authorization", login.expose().as_bytes());
        }
    }
}

fn asks_for_websocket(fields: &HeaderFields) -> bool {
    let wanted = fields.only("upgrade");
    fields.lists("connection", "upgrade")
        && wanted.is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
}

fn strip_framing(fields: &mut HeaderFields) {
    fields.strip_hop_by_hop();
    fields.remove("host");
    fields.remove("content-length");
    // The one expectation that is passed on; any other would be a promise of ours to the sandbox.
    if !fields
        .only("expect")
        .is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
    {
        fields.remove("expect");
    }
}

/// The answer will be searched for the secret, so it has to come whole and uncompressed.
fn make_searchable(fields: &mut HeaderFields) {
    // `Request-Range` is what Apache still takes for `Range`.
    for name in [
        "range",
        "request-range",
        "if-range",
        "a-im",
        "sec-websocket-extensions",
    ] {
        fields.remove(name);
    }
    fields.set("Accept-Encoding", b"identity");
}

pub(super) fn wants_json(fields: &HeaderFields) -> bool {
    fields.all("accept").any(|value| {
        String::from_utf8_lossy(value)
            .to_ascii_lowercase()
            .contains("application/json")
    })
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
