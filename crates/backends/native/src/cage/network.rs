//! A host of its own that only knows itself.

use std::net::{Ipv4Addr, TcpListener};

use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_send_buffer_size, set_tcp_congestion,
};
use rustix::system::{setdomainname, sethostname};

use super::step_failure::{FailingStep, StepFailure};
use super::sys;

pub(crate) fn name_host() -> Result<(), StepFailure> {
    sethostname(b"hermetic").step("set the host name")?;
    setdomainname(b"(none)").step("set the domain name")
}

pub(crate) fn raise_loopback() -> Result<(), StepFailure> {
    sys::loopback::raise().step("raise the loopback interface")
}

/// Bytes that one connection may keep waiting, each way, in memory that is not the sandbox's. The kernel
/// would let it grow to megabytes.
const WAITING: usize = 256 << 10;

/// The port by which the sandbox leaves, listening before anything of the sandbox's runs. The gateway
/// accepts on it, so that a connection has two ends: the client's, and one that nobody in here ever held.
pub(crate) fn open_exit(port: u16) -> Result<TcpListener, StepFailure> {
    let open = || {
        let exit = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        exit.set_nonblocking(true)?;
        set_socket_recv_buffer_size(&exit, WAITING)?;
        set_socket_send_buffer_size(&exit, WAITING)?;
        // Accepted sockets inherit it. Another one may send at a pace, which costs a timer for every burst
        // and does nothing on loopback.
        let _ = set_tcp_congestion(&exit, "reno");
        Ok::<_, std::io::Error>(exit)
    };
    open().step("open the way out")
}
