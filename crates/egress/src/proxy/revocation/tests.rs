use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_types::ConversationKey;

use super::*;
use crate::ask::{HostAnswer, HostApprover, HostQuestion};
use crate::audit::LogRecorder;
use crate::limits::EgressLimits;
use crate::resolve::SystemResolver;
use crate::rules::{Authority, ProxyMethod, RulesText};

/// Has allowed everything, until they take it back.
#[derive(Default)]
struct Person {
    withdrew: AtomicBool,
}

impl HostApprover for Person {
    fn ask(&self, _: HostQuestion) -> BoxFuture<'static, HostAnswer> {
        async { HostAnswer::Kept }.boxed()
    }

    fn still_holds(&self, _: HostQuestion) -> BoxFuture<'static, bool> {
        let holds = !self.withdrew.load(Ordering::SeqCst);
        async move { holds }.boxed()
    }
}

struct Lab {
    proxy: Proxy,
    conversation: Arc<ConversationEgress>,
    person: Arc<Person>,
}

impl Lab {
    fn new() -> Self {
        let (limits, person) = (EgressLimits::default(), Arc::new(Person::default()));
        let resolver = Arc::new(SystemResolver::default());
        let proxy = Proxy::new(limits.clone(), resolver, Arc::new(LogRecorder));
        let key = ConversationKey::new("test");
        Self {
            proxy: proxy.asking(person.clone()),
            conversation: ConversationEgress::new(
                key,
                CompiledRules::default(),
                Vec::new(),
                &limits,
            ),
            person,
        }
    }

    fn rules(&self, allow: &[&str]) {
        let text = RulesText::allowing(allow.iter().copied());
        self.conversation
            .set_rules(CompiledRules::compile(&text).unwrap());
    }

    async fn admit(&self) -> RevocationWatch {
        let target = Authority::parse("new.test:443").unwrap();
        let admitted = self
            .proxy
            .admit(&self.conversation, target, ProxyMethod::Tunnel);
        let Ok(admitted) = admitted.await else {
            panic!("nobody allowed it");
        };
        let peer = ReachedPeer::direct("1.1.1.1:443".parse().unwrap());
        RevocationWatch::new(&self.proxy, &self.conversation, &admitted, &peer)
    }
}

#[tokio::test(start_paused = true)]
async fn a_persons_word_ends_a_standing_connection_when_it_ends() {
    let lab = Lab::new();
    let mut ended = Box::pin(lab.admit().await.ended());
    assert!(
        tokio::time::timeout(100 * RECHECK, &mut ended)
            .await
            .is_err()
    );
    lab.person.withdrew.store(true, Ordering::SeqCst);
    assert_eq!(ended.await, "what a person allowed has ended");
}

#[tokio::test(start_paused = true)]
async fn a_word_that_became_a_rule_goes_with_the_rule() {
    let lab = Lab::new();
    let mut ended = Box::pin(lab.admit().await.ended());
    lab.rules(&["new.test"]);
    lab.person.withdrew.store(true, Ordering::SeqCst);
    assert!(
        tokio::time::timeout(100 * RECHECK, &mut ended)
            .await
            .is_err()
    );
    lab.rules(&[]);
    assert_eq!(ended.await, "the rule was taken back");
}

#[tokio::test(start_paused = true)]
async fn another_rule_for_the_host_is_not_the_same_permission() {
    let lab = Lab::new();
    for (before, after) in [
        (
            ["tcp://new.test:443 in 1.1.1.1"],
            ["new.test:443 in 1.1.1.1"],
        ),
        (["new.test in 10.0.0.0/8"], ["new.test"]),
    ] {
        lab.rules(&before);
        let mut watch = lab.admit().await;
        if before[0].contains("10.0") {
            watch.peer = ReachedPeer::direct("10.0.0.1:443".parse().unwrap());
        }
        let mut ended = Box::pin(watch.ended());
        assert!(ended.as_mut().now_or_never().is_none(), "{before:?}");
        lab.rules(&after);
        assert_eq!(ended.await, "the rule was taken back", "{after:?}");
    }
}

#[tokio::test]
async fn a_change_before_the_watch_began_counts() {
    let lab = Lab::new();
    lab.rules(&["new.test"]);
    let watch = lab.admit().await;
    lab.rules(&[]);
    assert_eq!(watch.ended().await, "the rule was taken back");
}
