//! A conversation's sandbox leaves by a person's word.

use std::io::{Read, Write};
use std::net::TcpListener;

use hermetic_testkit::chat::Record;

use crate::approvals::name;
use crate::lab::{ALICE, Lab, has_sandboxes};

#[tokio::test]
async fn a_person_is_asked_about_a_host_while_the_connection_waits() {
    if !has_sandboxes("a_person_is_asked_about_a_host_while_the_connection_waits").await {
        return;
    }
    let more = "gateway: {egress: {ask: true}}\napprovals: {approvers: ['telegram:7']}\n";
    let builder = Lab::builder().configured_backends();
    let lab = builder.config(more).start().await;
    let port = origin();
    let question = lab.ask(ALICE, &asks(port)).await;
    assert!(
        question.contains("may this conversation reach it?"),
        "{question}"
    );
    assert!(
        question.contains(&format!("localhost:{port}")),
        "{question}"
    );
    lab.says(ALICE, &format!("/deny {}", name(&question)));
    let texts = |record: &Record| -> String {
        let messages = record.messages_in(&ALICE.into());
        messages.iter().map(|message| message.text()).collect()
    };
    let is_told = |record: &Record| texts(record).contains("hermetic egress");
    let record = lab
        .chat()
        .wait_for("what a person can do about it", is_told)
        .await;
    assert!(!texts(&record).contains("reached"), "{record:?}");
}

#[tokio::test]
async fn a_yes_for_always_is_kept_although_whoever_asked_is_gone() {
    if !has_sandboxes("a_yes_for_always_is_kept_although_whoever_asked_is_gone").await {
        return;
    }
    let more =
        "gateway: {egress: {ask: true}}\napprovals: {approvers: ['telegram:7'], timeout: 600}\n";
    let builder = Lab::builder().configured_backends();
    let mut lab = builder.config(more).start().await;
    let port = origin();
    let question = lab.ask(ALICE, &asks(port)).await;
    lab.crash_and_start().await;
    lab.says(ALICE, &format!("/approve {} always", name(&question)));
    // Once more to find what nobody waited for: what it finds is kept before it serves.
    lab.chat()
        .wait_for("what it means", |record| {
            let messages = record.messages_in(&ALICE.into());
            messages
                .iter()
                .any(|message| message.text().contains("from now on"))
        })
        .await;
    lab.restart().await;
    let (book, host) = (
        hermetic_app::rule_book(&lab.config()),
        format!("localhost:{port}"),
    );
    let kept = || std::fs::read_to_string(book.path()).unwrap_or_default();
    for _ in 0..200 {
        if kept().contains(&host) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{} has no rule: {}", book.path().display(), kept());
}

#[tokio::test]
async fn a_host_that_was_refused_is_named_with_how_to_allow_it() {
    if !has_sandboxes("a_host_that_was_refused_is_named_with_how_to_allow_it").await {
        return;
    }
    let lab = Lab::builder().configured_backends().start().await;
    // What curl says of a refused tunnel does not say why.
    let said = lab
        .ask(ALICE, "/sh curl -s -m 50 https://api.example.org/; true")
        .await;
    assert!(
        said.contains("api.example.org:443 was not reached"),
        "{said}"
    );
    assert!(
        said.contains("hermetic egress allow api.example.org"),
        "{said}"
    );
    let said = lab.ask(ALICE, "/sh echo hi").await;
    assert!(!said.contains("not reached"), "told once: {said}");
}

/// A web server on loopback that answers everything with one word.
pub(crate) fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nreached\n");
        }
    });
    port
}

/// This machine's own name is never proxied by itself, so curl is told.
pub(crate) fn asks(port: u16) -> String {
    format!(
        "/sh curl -sS -m 50 --noproxy '' --proxy http://127.0.0.1:3128 http://localhost:{port}/"
    )
}
