//! The terminal that carries everything, when it does not.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{Backend, DroppedLink};
use hermetic_types::{Command, RunId};
use hermetic_warden::client::RunEvent;
use tokio_util::sync::CancellationToken;

use crate::lab::{greet, sh, stories, until};

stories! {
    async fn a_command_outlives_a_cut_link_and_is_picked_up_again(lab: &Lab) {
        let spec = lab.spec();
        let link = lab.daytona.create(&spec).await.unwrap();
        let backend: Arc<dyn Backend> = Arc::new(lab.daytona.clone());
        let sandbox = greet(&spec, link).await.with_way_back(&backend);
        let text = "echo before; until [ -e /tmp/go ]; do sleep 0.05; done; echo after";
        let command = cleared(Command::script(text));
        let stop = CancellationToken::new();
        let running = sandbox.run(command, 1 << 16, &stop);
        let cutting = async {
            let other = greet(&spec, lab.daytona.connect(&spec.id).await.unwrap()).await;
            until("it runs", async || sh(&other, "pgrep -f tmp/go >/dev/null && echo yes").await == "yes\n").await;
            lab.server.cut_links();
            until("a new link works", async || match lab.daytona.connect(&spec.id).await {
                Ok(link) => sh(&greet(&spec, link).await, "touch /tmp/go; echo done").await == "done\n",
                Err(_) => false,
            }).await;
        };
        let (finished, ()) = tokio::join!(running, cutting);
        let finished = finished.unwrap();
        assert_eq!(finished.dropped, Some(DroppedLink::PickedUp));
        assert_eq!(finished.stdout.into_bytes(), b"before\nafter\n");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn an_interrupt_ends_the_command_and_not_the_sandbox(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let stop = CancellationToken::new();
        let command = cleared(Command::script("echo $$ > /tmp/pid; sleep 600 & sleep 600"));
        let interrupt = async {
            until("it runs", async || !sh(&sandbox, "cat /tmp/pid 2>/dev/null").await.is_empty()).await;
            stop.cancel();
        };
        let (finished, ()) = tokio::join!(sandbox.run(command, 1 << 16, &stop), interrupt);
        assert_eq!(finished.unwrap().code(), 130);
        until("its tree is gone", async || sh(&sandbox, "pgrep -x sleep -a | grep -c 600").await == "0\n").await;
        assert_eq!(lab.server.count(&format!("POST /api/sandbox/hermes-{}/stop", spec.id)), 0);
        assert_eq!(lab.server.machine(&format!("hermes-{}", spec.id)).state(), "started");
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    /// The service hangs up on who lags 256 messages behind; a megabyte is many more.
    async fn a_reader_who_stalls_is_not_hung_up_on(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let command = cleared(Command::words(["yes"]));
        let mut stalled = sandbox.start_as(RunId::random(), command, hermetic_sandbox::CommandBond::Caller).await.unwrap();
        assert!(matches!(stalled.next().await, Ok(Some(RunEvent::Started { .. }))));
        let large = "head -c 30000000 /dev/zero | tee >(wc -c >&2) >/dev/null; head -c 900000 /dev/zero | tr '\\0' x | wc -c";
        for _ in 0..3 {
            assert!(sh(&sandbox, large).await.contains("900000"));
        }
        // The first is still there, behind all of it.
        let mut read = 0;
        while read < 1 << 20 {
            match stalled.next().await.unwrap() {
                Some(RunEvent::Out(bytes)) => read += bytes.len(),
                other => panic!("it ended: {other:?}"),
            }
        }
        assert!(sandbox.is_reachable());
        drop(stalled);
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_link_that_is_let_go_takes_its_terminal_along(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let machine = lab.server.machine(&format!("hermes-{}", spec.id));
        assert_eq!(machine.terminals.lock().unwrap().len(), 1);
        sandbox.warden().close();
        drop(sandbox);
        until("the terminal is gone", async || machine.terminals.lock().unwrap().is_empty()).await;
        lab.daytona.destroy(&spec.id).await.unwrap();
    }

    async fn a_sandbox_in_use_is_not_taken_for_idle(lab: &Lab) {
        let mut spec = lab.spec();
        // The least the provider counts in is a minute; we say so three times in it.
        spec.lifetime = Duration::from_secs(60);
        let sandbox = lab.create(&spec).await;
        let machine = lab.server.machine(&format!("hermes-{}", spec.id));
        until("it was told", async || machine.fact("touched").as_u64() > Some(0)).await;
        assert!(sandbox.is_reachable());
        lab.daytona.destroy(&spec.id).await.unwrap();
    }
}
