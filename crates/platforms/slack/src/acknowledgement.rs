//! What tells Slack that an event is with us.

use tokio::sync::{mpsc, oneshot};

/// One of them for each time that Slack sent the event. Dropped, it says nothing, and Slack sends the
/// event again.
#[derive(Debug)]
pub(crate) enum EventAcknowledgement {
    /// By the id of the envelope, over the socket on which it came.
    Socket {
        socket: mpsc::UnboundedSender<String>,
        envelope: String,
    },
    /// By answering the request.
    Request(oneshot::Sender<()>),
    /// Found in a history: nobody waits.
    Nobody,
}

impl EventAcknowledgement {
    pub(crate) fn give(self) {
        match self {
            // A socket that is gone takes no acknowledgement. Slack sends the event again on another,
            // and there it is known.
            Self::Socket { socket, envelope } => drop(socket.send(envelope)),
            Self::Request(request) => drop(request.send(())),
            Self::Nobody => {}
        }
    }
}
