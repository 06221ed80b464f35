use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, join_all};
use hermetic_egress::{HostAnswer, HostApprover, HostQuestion, RulesText};

use crate::lab::{Lab, Setup};

struct Person {
    answer: HostAnswer,
    asked: AtomicUsize,
}

impl HostApprover for Person {
    fn ask(&self, question: HostQuestion) -> BoxFuture<'static, HostAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        assert_eq!(question.conversation.as_str(), "agent:main:test:dm:1");
        let answer = self.answer;
        Box::pin(async move { answer })
    }

    fn still_holds(&self, _: HostQuestion) -> BoxFuture<'static, bool> {
        let holds = self.answer == HostAnswer::Kept;
        Box::pin(async move { holds })
    }
}

fn lab(answer: HostAnswer) -> (Lab, Arc<Person>) {
    let person = Arc::new(Person {
        answer,
        asked: AtomicUsize::new(0),
    });
    let asker = person.clone();
    let rules = RulesText {
        deny: vec!["denied.test".into()],
        ..RulesText::allowing(["known.test"])
    };
    let lab = Lab::changed(
        Setup {
            rules,
            ..Setup::default()
        },
        |proxy| proxy.asking(asker),
    );
    (lab, person)
}

/// A granted host still has to have a public address, which no test may dial: so the grant shows in the
/// refusal that comes after it.
async fn outcome(lab: &Lab, host: &str) -> String {
    let answer = lab
        .ask(format!(
            "CONNECT {host}:443 HTTP/1.1\r\nAccept: application/json\r\n\r\n"
        ))
        .await;
    let json: serde_json::Value =
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    json["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_yes_lets_the_connection_go_on_and_the_next_one_asks_again() {
    for answer in [HostAnswer::Once, HostAnswer::Kept] {
        let (lab, person) = lab(answer);
        assert_eq!(outcome(&lab, "new.test").await, "address");
        assert_eq!(outcome(&lab, "new.test").await, "address");
        assert_eq!(person.asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_no_is_a_refusal() {
    let (lab, _) = lab(HostAnswer::Deny);
    assert_eq!(outcome(&lab, "new.test").await, "denied-by-person");
}

#[tokio::test]
async fn nobody_is_asked_about_denied_hosts_or_literals() {
    let (lab, person) = lab(HostAnswer::Kept);
    assert_eq!(outcome(&lab, "denied.test").await, "denied");
    assert_eq!(outcome(&lab, "127.0.0.1").await, "bad-target");
    assert_eq!(person.asked.load(Ordering::SeqCst), 0);
}

/// Answers only when it is told to.
struct Slow {
    asked: AtomicUsize,
    go: Arc<tokio::sync::Semaphore>,
}

impl HostApprover for Slow {
    fn ask(&self, _: HostQuestion) -> BoxFuture<'static, HostAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let go = Arc::clone(&self.go);
        Box::pin(async move {
            let _told = go.acquire().await;
            HostAnswer::Once
        })
    }

    fn still_holds(&self, _: HostQuestion) -> BoxFuture<'static, bool> {
        Box::pin(async { false })
    }
}

#[tokio::test]
async fn connections_that_wait_for_the_same_host_ask_once() {
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        go: Arc::new(tokio::sync::Semaphore::new(0)),
    });
    let asker = slow.clone();
    let lab = Lab::changed(Setup::default(), |proxy| proxy.asking(asker));
    let all = join_all((0..20).map(|_| outcome(&lab, "new.test")));
    let told = async {
        while lab.conversation.account().connections() < 20 {
            tokio::task::yield_now().await;
        }
        while slow.asked.load(Ordering::SeqCst) < 1 {
            tokio::task::yield_now().await;
        }
        slow.go.add_permits(1);
    };
    let (outcomes, ()) = tokio::join!(all, told);
    assert!(outcomes.iter().all(|code| code == "address"));
    assert!(slow.asked.load(Ordering::SeqCst) < 20);
}
