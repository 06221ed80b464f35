//! The way out comes and goes with its sandbox, and with the link to it.

use hermetic_egress::EgressDecision;
use hermetic_sandbox::SandboxPersistence;
use hermetic_session::SandboxHolder;

use super::house::House;
use super::lab::{Lab, Setup, key, run, story, try_to_run};

fn hello(lab: &Lab) -> String {
    format!("curl -sS -m 20 {}", lab.url("origin.test", "hello"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_lost_brings_the_way_out_back() {
    story(
        "a_link_that_was_lost_brings_the_way_out_back",
        Setup::default(),
        async |lab| {
            let lease = lab.lease("alice").await;
            assert_eq!(run(&lease, &hello(lab)).await.out, "hello\n");
            lease.warden().close();
            lease.warden().closed().await;
            drop(lease);
            assert_eq!(lab.run("alice", &hello(lab)).await.out, "hello\n");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_restarts_serves_the_sandboxes_it_finds() {
    let test = "a_gateway_that_restarts_serves_the_sandboxes_it_finds";
    story(test, Setup::default(), async |lab| {
        let first = lab.lease("alice").await;
        let id = first.id().clone();
        drop(first);
        lab.sandboxes.drain().await;

        let after = lab.restart();
        assert_eq!(after.settle().await.unwrap().adopted, 1);
        let lease = after.lease(&key("alice")).await.unwrap();
        assert_eq!(lease.id(), &id);
        assert_eq!(run(&lease, &hello(lab)).await.out, "hello\n");
        drop(lease);
        after.drain().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_sandbox_that_resumes_has_it_again() {
    let kept = Setup {
        persistence: SandboxPersistence::Kept,
        ..Setup::default()
    };
    story(
        "a_kept_sandbox_that_resumes_has_it_again",
        kept,
        async |lab| {
            let lease = lab.lease("alice").await;
            assert_eq!(run(&lease, &hello(lab)).await.out, "hello\n");
            let id = lease.id().clone();
            lab.stop(lease).await;
            let back = lab.lease("alice").await;
            assert_eq!(back.id(), &id);
            assert_eq!(run(&back, &hello(lab)).await.out, "hello\n");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_ends_what_is_under_way() {
    story(
        "a_reset_ends_what_is_under_way",
        Setup::default(),
        async |lab| {
            let lease = lab.lease("alice").await;
            let download = format!("curl -sSN {}", lab.url("origin.test", "forever"));
            let follow = try_to_run(&lease, &download);
            let reset = async {
                // The origin has been asked: the tunnel stands.
                while lab.origin.heads().is_empty() {
                    tokio::task::yield_now().await;
                }
                lab.sandboxes.reset(&key("alice")).await.unwrap();
                assert_eq!(lab.record.closed(), 1, "{:?}", lab.record.entries());
            };
            let (said, ()) = tokio::join!(follow, reset);
            // Cut on the way, or gone with its sandbox: whichever was seen first.
            assert!(
                said.as_ref().is_ok_and(|said| said.code != 0) || said.is_err(),
                "{said:?}"
            );
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_outlives_the_link() {
    let bounded = Setup {
        budget: Some(128 << 10),
        ..Setup::default()
    };
    story("a_budget_outlives_the_link", bounded, async |lab| {
        std::fs::write(lab.files.join("large"), vec![b'x'; 100 << 10]).unwrap();
        let large = format!(
            "curl -sS -m 20 -o /dev/null {}",
            lab.url("origin.test", "large")
        );
        let lease = lab.lease("alice").await;
        assert_eq!(run(&lease, &large).await.code, 0);
        lease.warden().close();
        lease.warden().closed().await;
        drop(lease);
        assert_ne!(lab.run("alice", &large).await.code, 0);
        assert_eq!(lab.run("bob", &large).await.code, 0, "bob has his own");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_outlives_the_gateway_and_ends_with_the_conversation() {
    let bounded = Setup {
        budget: Some(128 << 10),
        ..Setup::default()
    };
    let test = "a_budget_outlives_the_gateway_and_ends_with_the_conversation";
    story(test, bounded, async |lab| {
        std::fs::write(lab.files.join("large"), vec![b'x'; 100 << 10]).unwrap();
        let url = lab.url("origin.test", "large");
        let large = format!("curl -sS -m 20 -o /dev/null {url}");
        assert_eq!(lab.run("alice", &large).await.code, 0);
        lab.sandboxes.drain().await;

        let again = lab.restart();
        again.settle().await.unwrap();
        let lease = again.lease(&key("alice")).await.unwrap();
        let told = run(&lease, &large).await;
        assert_ne!(told.code, 0, "{}", told.out);
        drop(lease);
        again.reset(&key("alice")).await.unwrap();
        let lease = again.lease(&key("alice")).await.unwrap();
        let told = run(&lease, &large).await;
        assert_eq!(told.code, 0, "{}", told.out);
        drop(lease);
        again.reset(&key("alice")).await.unwrap();
        again.drain().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_is_written_down_as_its_conversations() {
    let test = "every_connection_is_written_down_as_its_conversations";
    story(test, Setup::default(), async |lab| {
        lab.run("alice", &hello(lab)).await;
        lab.run("bob", "curl -sS https://elsewhere.test/").await;
        lab.sandboxes.drain().await;
        let told: Vec<_> = lab
            .record
            .entries()
            .into_iter()
            .map(|entry| {
                let verdict = match entry.verdict {
                    EgressDecision::Opened => "opened",
                    EgressDecision::Closed { .. } => "closed",
                    EgressDecision::Refused { .. } => "refused",
                };
                (entry.conversation, entry.host, verdict)
            })
            .collect();
        let entry = |who, host: &str, verdict| (key(who), host.to_owned(), verdict);
        assert_eq!(
            told,
            [
                entry("alice", "origin.test", "opened"),
                entry("alice", "origin.test", "closed"),
                entry("bob", "elsewhere.test", "refused"),
            ]
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_the_port_inside_loses_it_again() {
    let test = "whoever_takes_the_port_inside_loses_it_again";
    story(test, Setup::default(), async |lab| {
        let lease = lab.lease("alice").await;
        let id = lease.id().clone();
        // It waits until the warden's listener is gone, and keeps the port until it is told.
        let squat = "import socket, time\n\
            s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
            while True:\n  try: s.bind(('127.0.0.1', 3128)); break\n  except OSError: time.sleep(0.01)\n\
            s.listen(); open('/tmp/taken', 'w').close()\n\
            import os\n\
            while not os.path.exists('/tmp/go'): time.sleep(0.01)\n";
        let start = format!(
            "cat > /tmp/squat.py <<'E'\n{squat}E\nsetsid python3 /tmp/squat.py </dev/null >/dev/null 2>&1 &"
        );
        assert_eq!(run(&lease, &start).await.code, 0);
        lease.warden().close();
        lease.warden().closed().await;
        drop(lease);
        // By a link of its own, which opens no way out.
        let apart = lab.apart(&id).await;
        let waits = "while ! [ -e /tmp/taken ]; do sleep 0.01; done";
        assert_eq!(run(&apart, waits).await.code, 0);
        // Whoever has the port takes the connection and says nothing, so nobody waits for long.
        let impatient = hello(lab).replace("-m 20", "-m 2");
        assert_ne!(impatient, hello(lab));
        assert_ne!(lab.run("alice", &impatient).await.out, "hello\n");
        let again = format!(
            "touch /tmp/go; until [ \"$({} 2>/dev/null)\" = hello ]; do sleep 0.1; done; echo back",
            hello(lab)
        );
        assert_eq!(lab.run("alice", &again).await.out, "back\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_of_many_topics_leaves_others_a_way_out() {
    let few = Setup {
        houses: &[House::Native],
        everybody: 8,
        ..Setup::default()
    };
    let test = "one_person_of_many_topics_leaves_others_a_way_out";
    story(test, few, async |lab| {
        let (ada, ben) = (SandboxHolder::named("ada"), SandboxHolder::named("ben"));
        let mut leases = Vec::new();
        for (topic, holder) in [("1", &ada), ("2", &ada), ("3", &ada), ("4", &ben)] {
            leases.push(lab.sandboxes.lease_for(&key(topic), holder).await.unwrap());
        }
        let mut open = Vec::new();
        let mut granted = Vec::new();
        for topic in ["1", "2", "3", "1", "2", "3", "4"] {
            let (stream, head) = lab.knock(topic).await;
            open.push(stream);
            granted.push(head.starts_with("HTTP/1.1 200 "));
        }
        assert_eq!(granted, [true, true, false, false, false, false, true]);
        drop((open, leases));
    })
    .await;
}
