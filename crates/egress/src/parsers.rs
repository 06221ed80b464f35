//! What reads the bytes of a sandbox and of an origin, for fuzzing.

use crate::credential::{CredentialRedactor, FrameRedactor};

pub use crate::http::chunked::{ChunkDecoder, ChunkStep};
pub use crate::http::head::{EndSearch, RequestHead, ResponseHead};
pub use crate::tls::hello::{ClientHello, ClientHelloError, read as read_hello};

/// An answer of an origin that knows this credential, as the sandbox gets it.
pub fn without_credential(credential: &crate::Credential, pieces: &[&[u8]]) -> Vec<u8> {
    let mut redactor = CredentialRedactor::new([credential.searched()]);
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(redactor.push(piece));
    }
    out.extend(redactor.finish());
    out
}

/// The same over a websocket; nothing if it has to end.
pub fn frames_without_credential(
    credential: &crate::Credential,
    pieces: &[&[u8]],
) -> Option<Vec<u8>> {
    let mut frames = FrameRedactor::new(&CredentialRedactor::new([credential.searched()]));
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(frames.push(piece).ok()?);
    }
    out.extend(frames.finish());
    Some(out)
}
