//! A host that no rule names, a person who is asked about it, and how long their yes holds.
//!
//! What a person allows has to be at a public address, so each story happens in a network of its own that
//! has one.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::lab::{ALICE, Lab};
use crate::probes::dns::{Answer, Liar};
use crate::probes::namespace::{Namespace, PUBLIC};

/// Asks for a host that no rule names.
const ASKS: &str = "/sh curl -sS -m 50 http://new.test/";

/// A world in which `new.test` is a web server, and a gateway that asks about it.
struct World {
    lab: Lab,
    _dns: Liar,
}

impl World {
    async fn start(test: &str, more: &str) -> Option<Self> {
        let dns = Liar::start();
        dns.tell("new.test", Answer::of(&[PUBLIC]));
        serve();
        let config = format!(
            "gateway: {{egress: {{ask: true, {more}}}}}\napprovals: {{approvers: ['telegram:7']}}\n"
        );
        let lab = Lab::start_with(test, [], &config, "TELEGRAM_ALLOWED_USERS=7,8").await?;
        Some(Self { lab, _dns: dns })
    }

    /// The name of the question that comes of asking for the host.
    async fn question(&self) -> String {
        let question = self.lab.ask(ALICE, ASKS).await;
        assert!(
            question.contains("may this conversation reach it?"),
            "{question}"
        );
        let name = question.split("❓ ").nth(1).unwrap();
        name.split(':').next().unwrap().to_owned()
    }

    /// Says this, and reads on until this is said back.
    async fn until(&self, says: &str, word: &str) -> String {
        let mut seen = self.lab.sent_to(ALICE);
        self.lab.telegram.says(ALICE, says);
        loop {
            seen += 1;
            let told = self.lab.replies(ALICE, seen).await.remove(seen - 1);
            if told.contains(word) {
                return told;
            }
        }
    }

    /// Asked again, nobody is: it is reached at once.
    async fn is_reached(&self) {
        let told = self.lab.ask(ALICE, ASKS).await;
        assert!(told.contains("reached"), "{told}");
    }
}

fn serve() {
    let listener = TcpListener::bind((PUBLIC, 80)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nreached\n");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_lets_the_waiting_connection_through_for_as_long_as_it_says() {
    let test = "flow::hosts::a_yes_lets_the_waiting_connection_through_for_as_long_as_it_says";
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let Some(world) = World::start(test, "").await else {
        return;
    };
    let once = world.question().await;
    world.until(&format!("/approve {once}"), "reached").await;
    let longer = world.question().await;
    world
        .until(&format!("/approve {longer} 10m"), "reached")
        .await;
    world.is_reached().await;
    // A conversation that starts anew has been allowed nothing.
    world.until("/new", "").await;
    let session = world.question().await;
    world
        .until(&format!("/approve {session} session"), "reached")
        .await;
    world.is_reached().await;
    world.until("/new", "").await;
    let refused = world.question().await;
    let told = world.until(&format!("/deny {refused}"), "said no").await;
    assert!(told.contains("hermetic egress allow new.test:80"), "{told}");
    // A no is remembered: nobody is asked again at once.
    let told = world.lab.ask(ALICE, ASKS).await;
    assert!(told.contains("said no"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn always_is_a_rule_and_goes_with_it() {
    let test = "flow::hosts::always_is_a_rule_and_goes_with_it";
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let Some(world) = World::start(test, "").await else {
        return;
    };
    let asked = world.question().await;
    world
        .until(&format!("/approve {asked} always"), "reached")
        .await;
    let rules = world.lab.run(&["egress", "rules"]).out;
    assert!(
        rules.contains("allow new.test:80 for telegram:dm:7"),
        "{rules}"
    );
    world.is_reached().await;
    world.until("/new", "").await;
    world.is_reached().await;
    let forgotten = world
        .lab
        .run(&["egress", "forget", "new.test:80", "--for", "telegram:dm:7"]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.err);
    world.question().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_a_refusal_that_says_so() {
    let test = "flow::hosts::silence_is_a_refusal_that_says_so";
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let Some(world) = World::start(test, "ask_timeout: 1").await else {
        return;
    };
    let told = world.until(ASKS, "did not answer in time").await;
    assert!(!told.contains("reached"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_outlives_the_gateway_and_so_does_the_answer() {
    let test = "flow::hosts::a_question_outlives_the_gateway_and_so_does_the_answer";
    if !Namespace::STAND_IN.is_where(test) {
        return;
    }
    let Some(mut world) = World::start(test, "").await else {
        return;
    };
    let asked = world.question().await;
    world.lab.kill();
    world.lab.restart();
    // Nobody waits for it now; what was asked is allowed all the same.
    world
        .until(
            &format!("/approve {asked} session"),
            "allowed for this session",
        )
        .await;
    world.until(ASKS, "reached").await;
    world.lab.terminate();
    world.lab.restart();
    world.is_reached().await;
}
