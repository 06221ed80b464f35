use std::sync::Arc;

use hermetic_types::Secret;

use super::*;
use crate::audit::LogRecorder;
use crate::limits::EgressLimits;
use crate::resolve::SystemResolver;
use crate::rules::{Authority, ProxyMethod, RuleVerdict};

fn egress(rules: EgressRules) -> Egress {
    let proxy = Proxy::new(
        EgressLimits::default(),
        Arc::new(SystemResolver::default()),
        Arc::new(LogRecorder),
    );
    Egress::new(proxy, rules).unwrap()
}

fn key(text: &str) -> ConversationKey {
    ConversationKey::new(text)
}

fn allows(conversation: &ConversationEgress, target: &str) -> bool {
    let target = Authority::parse(target).unwrap();
    let verdict = conversation.rules().decide(&target, ProxyMethod::Tunnel);
    matches!(verdict, RuleVerdict::Allow(_))
}

#[test]
fn what_is_for_some_is_not_for_others() {
    let egress = egress(EgressRules {
        rules: RulesText::allowing(["all.test"]),
        more: vec![(
            "telegram:dm:1".parse().unwrap(),
            RulesText::allowing(["one.test"]),
        )],
        ..EgressRules::default()
    });
    let one = egress.conversation(&key("agent:main:telegram:dm:1"));
    let two = egress.conversation(&key("agent:main:telegram:dm:2"));
    assert!(allows(&one, "all.test:443") && allows(&one, "one.test:443"));
    assert!(allows(&two, "all.test:443") && !allows(&two, "one.test:443"));
}

#[test]
fn a_credential_and_its_placeholder_are_its_owners() {
    let credential = |name: &str| {
        let value = Secret::new(format!("secret-of-{name}"));
        Credential::new("api.test", "authorization", "Bearer", value, "placeholder").unwrap()
    };
    let egress = egress(EgressRules {
        credentials: vec![CredentialGrant {
            credential: credential("one"),
            scope: Some("telegram:dm:1".parse().unwrap()),
            variable: Some("API_TOKEN".into()),
            agent: None,
        }],
        ..EgressRules::default()
    });
    let target = Authority::parse("api.test:443").unwrap();
    let (one, two) = (
        key("agent:main:telegram:dm:1"),
        key("agent:main:telegram:dm:11"),
    );
    assert_eq!(egress.conversation(&one).credentials_for(&target).len(), 1);
    assert_eq!(egress.conversation(&two).credentials_for(&target).len(), 0);
    assert_eq!(egress.env(&one, 3128)["API_TOKEN"], "placeholder");
    assert!(!egress.env(&two, 3128).contains_key("API_TOKEN"));
}

#[test]
fn a_conversation_is_the_same_while_somebody_holds_it() {
    let egress = egress(EgressRules::default());
    let first = egress.conversation(&key("a"));
    assert!(Arc::ptr_eq(&first, &egress.conversation(&key("a"))));
    first.account().spend(10).unwrap();
    drop(first);
    assert_eq!(egress.conversation(&key("a")).account().bytes(), 0);
}

#[test]
fn an_added_rule_counts_at_once_and_a_broken_book_closes() {
    let folder = tempfile::tempdir().unwrap();
    let book = RuleBook::at(folder.path().join("egress.rules"));
    let egress = egress(EgressRules {
        rules: RulesText::allowing(["all.test"]),
        ..EgressRules::default()
    })
    .reading(book.clone());
    let conversation = egress.conversation(&key("cli:x"));
    assert!(!allows(&conversation, "new.test:443"));

    std::fs::write(book.path(), "allow new.test\ndeny all.test for telegram\n").unwrap();
    egress.refresh();
    assert!(allows(&conversation, "new.test:443") && allows(&conversation, "all.test:443"));
    assert_eq!(
        egress.reach(&key("cli:x")).allowed,
        ["all.test", "new.test"]
    );

    std::fs::write(book.path(), "allow new.test\ndney all.test\n").unwrap();
    egress.refresh();
    assert!(!allows(&conversation, "new.test:443") && !allows(&conversation, "all.test:443"));
    assert_eq!(egress.reach(&key("cli:x")).mode, RuleMode::Closed);

    std::fs::remove_file(book.path()).unwrap();
    egress.refresh();
    assert!(!allows(&conversation, "new.test:443") && allows(&conversation, "all.test:443"));
}

/// A process that has no descriptor left cannot open the book, which has not changed when it can again.
#[test]
fn a_book_that_could_not_be_read_is_read_again_though_it_did_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let book = RuleBook::at(folder.path().join("egress.rules"));
    let egress = egress(EgressRules {
        rules: RulesText::allowing(["all.test"]),
        ..EgressRules::default()
    })
    .reading(book.clone());
    std::fs::write(book.path(), "allow new.test\n").unwrap();
    // A folder of that name stands for any failure of the disk: it is there, and cannot be read.
    let aside = folder.path().join("aside");
    std::fs::rename(book.path(), &aside).unwrap();
    std::fs::create_dir(book.path()).unwrap();
    let conversation = egress.conversation(&key("cli:x"));
    assert!(!allows(&conversation, "all.test:443"), "doubt is closed");
    let stamp = egress.state().read;
    std::fs::remove_dir(book.path()).unwrap();
    std::fs::rename(&aside, book.path()).unwrap();
    // As if it had been that file all along.
    if stamp.is_some() {
        egress.state().read = Some(book.stamp());
    }
    egress.refresh();
    assert!(allows(&conversation, "all.test:443") && allows(&conversation, "new.test:443"));
}

/// Who chose an agent for one conversation opened nothing for any other.
#[test]
fn what_an_agent_needs_is_there_where_it_answers_and_while_it_does() {
    let value = Secret::new("secret-of-claude");
    let credential = Credential::new("model.test", "x-api-key", "", value, "placeholder").unwrap();
    let egress = egress(EgressRules {
        rules: RulesText::allowing(["all.test"]),
        credentials: vec![CredentialGrant {
            credential,
            scope: None,
            variable: Some("MODEL_KEY".into()),
            agent: Some("claude".to_owned()),
        }],
        agents: [("claude".to_owned(), RulesText::allowing(["model.test"]))].into(),
        ..EgressRules::default()
    });
    let (one, two) = (key("telegram:dm:1"), key("telegram:dm:2"));
    let target = Authority::parse("model.test:443").unwrap();
    let (held, other) = (egress.conversation(&one), egress.conversation(&two));
    let has = |conversation: &ConversationEgress| {
        let credentials = conversation.credentials_for(&target).len();
        (allows(conversation, "model.test:443"), credentials)
    };
    assert_eq!(has(&held), (false, 0));

    let told = egress.choose_agent(&one, Some("claude"));
    assert_eq!(told["MODEL_KEY"], "placeholder");
    assert_eq!((has(&held), has(&other)), ((true, 1), (false, 0)));
    assert!(
        !egress.env(&one, 1).contains_key("MODEL_KEY"),
        "for the agent alone"
    );

    assert!(egress.choose_agent(&one, Some("another")).is_empty());
    assert_eq!(has(&held), (false, 0));
    egress.choose_agent(&one, Some("claude"));
    egress.choose_agent(&one, None);
    assert_eq!(has(&held), (false, 0));
    assert!(allows(&held, "all.test:443"));
}

#[test]
fn conversations_of_one_owner_are_bounded_together() {
    let egress = egress(EgressRules::default());
    let share = |conversation: &ConversationEgress| Arc::as_ptr(&conversation.owner());
    let chat = egress.conversation(&key("agent:main:telegram:dm:1"));
    let thread = egress.conversation(&key("agent:main:telegram:dm:1:7"));
    let group = egress.conversation(&key("agent:main:telegram:group:9"));
    assert_eq!(share(&chat), share(&thread), "nobody said whose they are");
    assert_ne!(share(&chat), share(&group));

    for one in [&thread, &group] {
        egress.note_owner(one, EgressOwner::named("telegram:1"));
    }
    assert_eq!(share(&thread), share(&group));
    egress.note_owner(&group, EgressOwner::named("telegram:2"));
    assert_ne!(share(&thread), share(&group), "who speaks there now has it");

    drop((chat, thread, group));
    egress.conversation(&key("cli:work"));
    assert_eq!(
        egress.state().shares.len(),
        1,
        "shares that nobody has are forgotten"
    );
}
