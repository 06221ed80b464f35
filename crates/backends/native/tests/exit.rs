//! The port by which a sandbox leaves: made before anything runs inside, served outside.

use hermetic_native::NativeBackend;
use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{
    Backend, NetworkMode, Sandbox, SandboxPersistence, SandboxSpec, WardenLink,
};
use hermetic_types::{Command, OutputMode};
use hermetic_warden::protocol::ListenEndpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::lab::{Lab, Said, finished, said, stories};

const PORT: u16 = 3128;

stories! {
    async fn what_connects_inside_is_accepted_outside(lab: &Lab) {
        let spec = leaving(lab.spec());
        let (sandbox, exit) = create(lab, &spec).await;
        assert!(sandbox.take_exit().is_none(), "it is handed over once");
        let talk = python("s.sendall(b'hello'); s.shutdown(1); print(s.recv(9).decode())");
        let outside = async {
            let (mut socket, from) = exit.accept().await.unwrap();
            assert!(from.ip().is_loopback());
            let mut said = String::new();
            socket.read_to_string(&mut said).await.unwrap();
            socket.write_all(b"goodbye").await.unwrap();
            said
        };
        let (inside, said) = finished(async { tokio::join!(sh(&sandbox, &talk), outside) }).await;
        assert_eq!((said.as_str(), inside.text.as_str()), ("hello", "goodbye\n"));
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn nobody_inside_can_have_the_port(lab: &Lab) {
        let spec = leaving(lab.spec());
        let (sandbox, _exit) = create(lab, &spec).await;
        let said = sh(&sandbox, r#"exec python3 - <<'PROBE'
import socket as s, errno
for address in ("127.0.0.1", "0.0.0.0"):
    for option in (None, s.SO_REUSEADDR, s.SO_REUSEPORT):
        squatter = s.socket()
        if option: squatter.setsockopt(s.SOL_SOCKET, option, 1)
        try: squatter.bind((address, 3128)); squatter.listen(); print("TAKEN", address, option)
        except OSError as error: assert error.errno == errno.EADDRINUSE, error
print("held")
PROBE"#).await;
        assert_eq!(said.text, "held\n");
        assert!(sandbox.warden().listen(ListenEndpoint::Tcp(PORT), 1).await.is_err());
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn closed_it_leaves_the_port_to_the_warden(lab: &Lab) {
        let spec = leaving(lab.spec());
        let (sandbox, exit) = create(lab, &spec).await;
        let call = python("s.sendall(b'x'); s.recv(1); print('served')");
        // With a connection that was served and has ended a moment ago.
        let serve = async { exit.accept().await.unwrap().0.write_all(b"y").await.unwrap() };
        let (said, ()) = finished(async { tokio::join!(sh(&sandbox, &call), serve) }).await;
        assert_eq!(said.text, "served\n");
        drop(exit);
        let mut listener = sandbox.warden().listen(ListenEndpoint::Tcp(PORT), 1).await.unwrap();
        let relay = async { listener.accept().await.unwrap().write_all(b"y").await.unwrap() };
        let (said, ()) = finished(async { tokio::join!(sh(&sandbox, &call), relay) }).await;
        assert_eq!(said.text, "served\n");
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn where_nothing_may_leave_nothing_listens(lab: &Lab) {
        let spec = lab.spec();
        let link = lab.native.create(&spec).await.unwrap();
        let sandbox = meet(&spec, link).await;
        assert!(sandbox.take_exit().is_none());
        let said = sh(&sandbox, "exec 3<>/dev/tcp/127.0.0.1/3128").await;
        assert_eq!(said.code, 1, "{}", said.text);
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn a_connection_ends_with_its_sandbox(lab: &Lab) {
        let spec = leaving(lab.spec());
        let (sandbox, exit) = create(lab, &spec).await;
        let hold = python("s.sendall(b'x'); s.recv(1)");
        let outside = async {
            let mut socket = exit.accept().await.unwrap().0;
            socket.read_exact(&mut [0]).await.unwrap();
            lab.native.destroy(&spec.id).await.unwrap();
            // Ended or reset, whichever way its process went.
            assert!(matches!(socket.read(&mut [0]).await, Ok(0) | Err(_)));
        };
        let running = sandbox.start(cleared(bash(&hold))).await.unwrap();
        finished(outside).await;
        drop(running);
    }

    async fn one_that_resumes_has_it_again(lab: &Lab) {
        let spec = SandboxSpec { persistence: SandboxPersistence::Kept, ..leaving(lab.spec()) };
        let (_first, exit) = create(lab, &spec).await;
        lab.native.stop(&spec.id).await.unwrap();
        drop(exit);
        let link = lab.native.resume(&spec).await.unwrap();
        let exit = served(&meet(&spec, link).await);
        assert_eq!(exit.local_addr().unwrap().port(), PORT);
        // Who comes back to one that lives finds the port the warden's to open.
        let link = lab.native.connect(&spec.id).await.unwrap();
        assert!(meet(&spec, link).await.take_exit().is_none());
        lab.native.destroy(&spec.id).await.unwrap();
    }
}

async fn sh(sandbox: &Sandbox, text: &str) -> Said {
    said(sandbox.start(cleared(bash(text))).await.unwrap()).await
}

fn bash(text: &str) -> Command {
    let mut command = Command::words(["/bin/bash", "-c", text]);
    command.output = OutputMode::Merged;
    command
}

fn leaving(spec: SandboxSpec) -> SandboxSpec {
    SandboxSpec {
        network: NetworkMode::Proxied { port: PORT },
        ..spec
    }
}

async fn create(lab: &Lab, spec: &SandboxSpec) -> (Sandbox, TcpListener) {
    let link = lab.native.create(spec).await.unwrap();
    let sandbox = meet(spec, link).await;
    let exit = served(&sandbox);
    (sandbox, exit)
}

async fn meet(spec: &SandboxSpec, link: WardenLink) -> Sandbox {
    let greeted = Sandbox::greet(&spec.id, NativeBackend::DESCRIPTION, link).await;
    greeted.unwrap()
}

fn served(sandbox: &Sandbox) -> TcpListener {
    TcpListener::from_std(sandbox.take_exit().unwrap()).unwrap()
}

fn python(talk: &str) -> String {
    format!(
        "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', {PORT})); {talk}\""
    )
}
