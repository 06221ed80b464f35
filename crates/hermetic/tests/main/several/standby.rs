//! A gateway that stands by, as its operator meets it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;

use super::cluster::{Cluster, Member};

fn health(member: &Member) -> String {
    let log = member.log();
    let (_, address) = log.rsplit_once("address=").unwrap();
    let address = address.split_whitespace().next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// It is there for whoever looks, a stop does not wait for the other gateway's end, and a release is heard.
#[tokio::test(flavor = "multi_thread")]
async fn who_stands_by_can_be_asked_started_stopped_and_takes_over() {
    let test = "several::standby::who_stands_by_can_be_asked_started_stopped_and_takes_over";
    let Some(mut cluster) = Cluster::new(test, 3, ("local", "", "")).await else {
        return;
    };
    cluster.members[0].start();
    assert_eq!(cluster.next_holder(&[]).await, 0);
    cluster.members[0].says(" ready").await;
    cluster.members[1].start();
    cluster.members[1].says("standing by").await;
    let answer = health(&cluster.members[1]);
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("standing by"), "{answer}");

    // Whoever starts one in the background is told that there is nothing more to wait for.
    let third = &cluster.members[2].home;
    let started = third.run(&["gateway", "start"]);
    assert_eq!(started.code, 0, "{}{}", started.out, started.err);
    let status = third.run(&["gateway", "status"]);
    assert_eq!(status.code, 3, "{}", status.out);
    assert!(status.out.contains("standing by"), "{}", status.out);
    let all = third.run(&["status", "--json"]).json();
    let all = all["gateways"].as_array().unwrap();
    let conditions: Vec<_> = all.iter().map(|one| one["condition"].as_str()).collect();
    let expected = [Some("serving"), Some("standing by"), Some("standing by")];
    assert_eq!(conditions, expected);
    let text = third.run(&["status"]).out;
    assert!(
        text.contains("gateways ") && text.contains("seen "),
        "{text}"
    );
    let stopped = third.run(&["gateway", "stop"]);
    assert_eq!(stopped.code, 0, "{}{}", stopped.out, stopped.err);
    assert!(!third.path("hermetic/gateway.pid").exists());

    cluster.members[0].signal(Signal::TERM);
    assert!(cluster.members[0].end().await.success());
    assert_eq!(cluster.next_holder(&[]).await, 1);
    cluster.members[1].says(" ready").await;
    assert!(health(&cluster.members[1]).starts_with("HTTP/1.1 200"));
    cluster.members[1].signal(Signal::TERM);
    assert!(cluster.members[1].end().await.success());
}

/// What a program was called with is read by every account of the machine.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_moved_with_the_password_on_standard_input_only_and_not_under_a_gateway() {
    let test = "several::standby::rows_are_moved_with_the_password_on_standard_input_only_and_not_under_a_gateway";
    let Some(mut cluster) = Cluster::new(test, 1, ("local", "", "")).await else {
        return;
    };
    let address = cluster.server.address("nobody");
    let address = address.replace("hermetic@", "hermetic:s3cret@");
    let home = crate::hermetic::Hermetic::new();
    let refused = home.run(&["store", "migrate", "--to", &address]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(refused.err.contains("standard input"), "{}", refused.err);
    assert!(!refused.err.contains("s3cret"), "{}", refused.err);
    // By standard input it gets as far as the database, which is not there.
    let mut moving = home.command(&["store", "migrate", "--to", "-"]);
    moving.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut moving = moving.spawn().unwrap();
    let mut input = moving.stdin.take().unwrap();
    input.write_all(format!("{address}\n").as_bytes()).unwrap();
    drop(input);
    let ended = moving.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("no such database"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");

    cluster.members[0].start();
    assert_eq!(cluster.next_holder(&[]).await, 0);
    // Another home of the installation, whose own lock is free.
    let other = std::fs::read_to_string(cluster.members[0].home.path("config.yaml")).unwrap();
    let other = crate::hermetic::Hermetic::with(&other);
    let file = format!("sqlite:{}", other.path("moved.db").display());
    let refused = other.run(&["store", "migrate", "--to", &file]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(
        refused.err.contains("serves from that database"),
        "{}",
        refused.err
    );
}
