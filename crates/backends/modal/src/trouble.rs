//! What Modal answers when it does not do something, as something to act on.

use hermetic_sandbox::BackendError;
use tonic::{Code, Status};

/// As much of what a server says as a person reads.
const MOST_SERVER_WORDS: usize = 400;

pub(crate) fn trouble(step: &str, status: &Status) -> BackendError {
    let said = said(status);
    match status.code() {
        Code::Unauthenticated => BackendError::Unavailable {
            what: format!("Modal does not take the token: {said}"),
            remedy: "check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or make a new one with \
                     `modal token new`"
                .to_owned(),
        },
        Code::PermissionDenied => BackendError::Unavailable {
            what: format!("Modal does not let this token {step}: {said}"),
            remedy: "use a token of a member of that workspace and environment".to_owned(),
        },
        Code::ResourceExhausted => BackendError::Unavailable {
            what: format!("Modal refuses to {step}, a limit is reached: {said}"),
            remedy: "end other sandboxes, lower terminal.container_cpu or container_memory, or \
                     raise the workspace's limit at modal.com/settings"
                .to_owned(),
        },
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => BackendError::Unavailable {
            what: format!("Modal does not answer when asked to {step}: {said}"),
            remedy: "check the network and status.modal.com, or MODAL_SERVER_URL if it is set"
                .to_owned(),
        },
        _ => BackendError::failed(step, said),
    }
}

/// The server's own words, bounded and on one line.
pub(crate) fn said(status: &Status) -> String {
    one_line(match status.message() {
        "" => status.code().description(),
        message => message,
    })
}

pub(crate) fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim()
        .chars()
        .take(MOST_SERVER_WORDS)
        .map(plain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_can_mend_comes_with_how() {
        for (status, word) in [
            (
                Status::unauthenticated("token is expired"),
                "MODAL_TOKEN_ID",
            ),
            (Status::resource_exhausted("too many sandboxes"), "limit"),
            (Status::permission_denied("no"), "workspace"),
            (Status::unavailable("refused"), "MODAL_SERVER_URL"),
        ] {
            let BackendError::Unavailable { remedy, .. } = trouble("make a sandbox", &status)
            else {
                panic!("{status}");
            };
            assert!(remedy.contains(word), "{remedy}");
        }
    }

    #[test]
    fn a_server_that_rambles_is_cut_short() {
        let rambling = Status::internal(format!("\u{1b}[31m\n{}", "x".repeat(100_000)));
        let short = said(&rambling);
        assert!(short.len() <= MOST_SERVER_WORDS && !short.contains(['\n', '\u{1b}']));
    }
}
