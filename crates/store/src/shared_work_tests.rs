use hermetic_types::Timestamp;

use super::*;
use crate::test_databases::TestDatabase;
use crate::{AcceptedRow, GatewayProcess, HeldLease, InboxRows, MessageEnd, RowOwner, Store};

const NOW: Timestamp = Timestamp::from_millis(5);

fn process(id: &str) -> GatewayProcess {
    GatewayProcess {
        id: id.parse().unwrap(),
        installation: "home".parse().unwrap(),
        host: format!("host-of-{id}"),
        name: format!("{id}'s machine"),
        version: "1.2.3".to_owned(),
    }
}

struct Member {
    store: Store,
    held: HeldLease,
}

impl Member {
    async fn join(database: &TestDatabase, id: &str) -> Self {
        let store = database.open().await.unwrap();
        let joined = store.leases().join_serving(&process(id), None).await;
        let held = joined.unwrap().expect("nobody serves alone");
        let store = store.shared_by(held.clone());
        Self { store, held }
    }

    fn work(&self) -> SharedWork {
        self.store.shared_work()
    }

    fn inbox(&self) -> InboxRows {
        self.store.inbox()
    }

    async fn accept(&self, update: &str, conversation: &str) -> AcceptedRow {
        let key = ConversationKey::new(conversation);
        let inbox = self.inbox();
        let accepted = inbox.accept_for_holder("telegram", update, &key, "{}", NOW);
        accepted.await.unwrap()
    }

    async fn release(&self) {
        self.store.leases().release(&self.held).await.unwrap();
    }
}

fn row(accepted: AcceptedRow) -> MessageRow {
    match accepted {
        AcceptedRow::Here { row, .. } => row,
        other => panic!("{other:?}"),
    }
}

/// As if the process had not been seen for so long.
async fn silence(store: &Store, id: &str, by: Duration) {
    let back = SqlStatement::new("UPDATE gateways SET seen_at = seen_at - ? WHERE id = ?")
        .bind(millis(by))
        .bind(id);
    let written = store.database.write_unfenced("wait", vec![back]).await;
    assert_eq!(written.unwrap()[0].affected(), 1);
}

#[tokio::test]
async fn a_message_is_written_in_the_name_of_whoever_serves_its_conversation() {
    for database in TestDatabase::each().await {
        let one = Member::join(&database, "one").await;
        let two = Member::join(&database, "two").await;
        // Nobody takes conversations on yet, so each has what it hears first.
        let first = row(one.accept("1", "k").await);
        assert_eq!(two.accept("2", "k").await, AcceptedRow::Elsewhere);
        assert_eq!(two.accept("2", "k").await, AcceptedRow::Before);
        let other = row(two.accept("3", "l").await);
        let AcceptedRow::Here { row: last, earlier } = one.accept("4", "k").await else {
            panic!("the holder has it");
        };
        let found = one.work().look().await.unwrap();
        let [before, second, after] = found.open[..] else {
            panic!("{found:?}");
        };
        assert_eq!((before, after), (first, last));
        assert_eq!(earlier, [first, second]);
        let read = one.work().open(&found.open).await.unwrap();
        assert_eq!(
            read.iter().map(|open| open.row).collect::<Vec<_>>(),
            found.open
        );
        // What is another's is not read, whoever asks.
        assert_eq!(one.work().open(&[other]).await.unwrap(), []);
        assert_eq!(two.work().look().await.unwrap().open, [other]);
        assert_eq!(found.orphans, [""; 0]);
        let ids: Vec<_> = found.gateways.iter().map(|one| one.id.as_str()).collect();
        assert!(ids.contains(&"one") && ids.contains(&"two"), "{ids:?}");
        let key = ConversationKey::new("k");
        let holder = two.work().holder(&key).await.unwrap();
        assert_eq!(holder, Some(("one".to_owned(), 1)));
    }
}

#[tokio::test]
async fn new_conversations_are_spread_among_those_who_take_them_on() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let one = Member::join(&database, "one").await;
    let two = Member::join(&database, "two").await;
    one.work().take_on(true).await.unwrap();
    two.work().take_on(true).await.unwrap();
    for number in 0..40 {
        one.accept(&number.to_string(), &format!("chat{number}"))
            .await;
    }
    let counts = [&one, &two].map(|member| {
        let inbox = member.inbox();
        async move { inbox.open(RowOwner::ThisGateway).await.unwrap().len() }
    });
    let counts = futures::future::join_all(counts).await;
    assert_eq!(counts.iter().sum::<usize>(), 40);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    let seen = one.store.leases().gateways(SERVING).await.unwrap();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen.iter().map(|one| one.conversations).sum::<u64>(), 40);
    assert!(
        seen.iter().all(|one| one.condition() == "serving"),
        "{seen:?}"
    );
    // One that is about to end gets none.
    two.work().take_on(false).await.unwrap();
    for number in 40..60 {
        row(one
            .accept(&number.to_string(), &format!("chat{number}"))
            .await);
    }
}

#[tokio::test]
async fn what_a_dead_gateway_had_is_adopted_once_and_it_can_write_no_more() {
    for database in TestDatabase::each().await {
        let dead = Member::join(&database, "dead").await;
        let (one, two) = (
            Member::join(&database, "one").await,
            Member::join(&database, "two").await,
        );
        let message = row(dead.accept("1", "k").await);
        let reply = ("telegram", "{}", "hi");
        let notice = dead.store.deliveries().queue(reply, NOW).await.unwrap();
        dead.store.deliveries().begin(notice).await.unwrap();
        // Alive: nothing of it is anybody's.
        let early = one.work().adopt("dead", None).await.unwrap();
        assert_eq!(early, AdoptedWork::default());
        assert!(dead.store.leases().renew(&dead.held).await.unwrap());
        silence(&one.store, "dead", DEAD_AFTER).await;
        let (ones, twos) = (one.work(), two.work());
        let both = tokio::join!(ones.adopt("dead", None), twos.adopt("dead", None));
        let (first, second) = (both.0.unwrap(), both.1.unwrap());
        let (winner, adopted) = match first.messages.len() {
            1 => (&one, first.clone()),
            _ => (&two, second.clone()),
        };
        assert!(
            first == AdoptedWork::default() || second == AdoptedWork::default(),
            "{first:?} {second:?}"
        );
        assert_eq!(adopted.messages[0].row, message);
        assert!(adopted.deliveries[0].maybe_sent);
        let holder = winner.work().holder(&ConversationKey::new("k")).await;
        assert_eq!(
            holder.unwrap(),
            Some((winner.held.gateway().as_str().to_owned(), 2))
        );
        row(winner.accept("2", "k").await);
        // It wakes up.
        let inbox = dead.inbox();
        let late = inbox.end(message, MessageEnd::Answered, None, NOW);
        let late = late.await.unwrap_err();
        assert!(format!("{late:?}").contains("lease_was_lost"), "{late:?}");
        assert!(!dead.store.leases().renew(&dead.held).await.unwrap());
        assert_eq!(one.work().look().await.unwrap().gateways.len(), 2);
    }
}

#[tokio::test]
async fn what_is_given_back_in_good_order_is_adopted_at_once_and_nothing_is_overtaken() {
    for database in TestDatabase::each().await {
        let one = Member::join(&database, "one").await;
        let two = Member::join(&database, "two").await;
        let first = row(one.accept("1", "k").await);
        one.release().await;
        // Between the two nobody has the conversation, so neither does whoever hears the next message.
        assert_eq!(two.accept("2", "k").await, AcceptedRow::Elsewhere);
        let ahead = two.work().look().await.unwrap();
        assert_eq!(ahead.orphans, ["gateway"]);
        assert_eq!(ahead.gateways.len(), 1);
        let adopted = two.work().adopt("gateway", None).await.unwrap();
        let rows: Vec<_> = adopted.messages.iter().map(|message| message.row).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0], first);
        assert!(rows.is_sorted());
    }
}

#[tokio::test]
async fn one_that_serves_alone_and_those_that_serve_together_keep_each_other_out() {
    for database in TestDatabase::each().await {
        let alone = database.open().await.unwrap();
        let serving = alone.leases().claim(SERVING, &process("alone")).await;
        let serving = serving.unwrap().unwrap();
        let other = database.open().await.unwrap();
        let joined = other.leases().join_serving(&process("one"), None).await;
        assert_eq!(joined.unwrap(), None);
        alone.leases().release(&serving).await.unwrap();
        let one = Member::join(&database, "one").await;
        let two = Member::join(&database, "two").await;
        let refused = alone.leases().claim(SERVING, &process("again")).await;
        assert_eq!(refused.unwrap(), None);
        row(one.accept("1", "k").await);
        one.release().await;
        // The other still serves.
        let refused = alone.leases().claim(SERVING, &process("again")).await;
        assert_eq!(refused.unwrap(), None);
        // Silent for good, and with it all of them.
        silence(&alone, "two", DEAD_AFTER).await;
        silence(&alone, TOGETHER, DEAD_AFTER).await;
        row(two.accept("2", "l").await);
        let taken = alone.leases().claim(SERVING, &process("again")).await;
        let taken = taken.unwrap().unwrap();
        let late = two.inbox();
        let key = ConversationKey::new("l");
        let late = late.accept_for_holder("telegram", "3", &key, "{}", NOW);
        assert!(
            late.await.is_err(),
            "it serves beside one that serves alone"
        );
        let alone = alone.fenced_by(taken.clone());
        alone.shared_work().gather().await.unwrap();
        let open = alone.inbox().open(RowOwner::ThisGateway).await.unwrap();
        assert_eq!(open.len(), 2, "{open:?}");
        alone.leases().release(&taken).await.unwrap();
        let last = Member::join(&database, "last").await;
        assert_eq!(last.work().look().await.unwrap().orphans, ["gateway"]);
        last.release().await;
        // The last one left nothing held.
        let state = last.store.leases().look(SERVING).await.unwrap().unwrap();
        assert_eq!(state.holder, None);
    }
}

#[tokio::test]
async fn an_account_is_listened_to_by_one_until_that_is_gone() {
    for database in TestDatabase::each().await {
        let one = Member::join(&database, "one").await;
        let two = Member::join(&database, "two").await;
        let take = |member: &Member| {
            let work = member.work();
            async move { work.take_account("telegram", "home", "host").await.unwrap() }
        };
        assert!(take(&one).await);
        assert!(!take(&two).await);
        silence(&two.store, "one", DEAD_AFTER).await;
        assert!(!take(&two).await, "not before its work is adopted");
        two.work().adopt("one", None).await.unwrap();
        assert!(take(&two).await);
        two.release().await;
        let three = Member::join(&database, "three").await;
        assert!(take(&three).await);
    }
}

#[tokio::test]
async fn what_is_told_is_heard_by_every_other_gateway_once() {
    for database in TestDatabase::each().await {
        let one = Member::join(&database, "one").await;
        let two = Member::join(&database, "two").await;
        let three = Member::join(&database, "three").await;
        one.work().signal_others("first").await.unwrap();
        one.work().signal_others("second").await.unwrap();
        for other in [&two, &three] {
            assert!(other.work().look().await.unwrap().signals);
            let heard = other.work().take_signals().await.unwrap();
            assert_eq!(heard, ["first", "second"]);
            assert!(!other.work().look().await.unwrap().signals);
        }
        assert_eq!(one.work().take_signals().await.unwrap(), [""; 0]);
    }
}

impl Member {
    async fn takes_on(database: &TestDatabase, id: &str) -> Self {
        let member = Self::join(database, id).await;
        member.work().take_on(true).await.unwrap();
        member
    }

    async fn holder(&self, conversation: &str) -> (String, u64) {
        let key = ConversationKey::new(conversation);
        let holder = self.work().holder(&key).await.unwrap();
        holder.expect("somebody has it")
    }

    async fn end(&self, message: MessageRow) {
        let inbox = self.inbox();
        let ended = inbox.end(message, MessageEnd::Answered, None, NOW);
        ended.await.unwrap();
    }
}

/// An idle conversation of one that is gone is nobody's until somebody speaks there, and is spread then as a new one is.
#[tokio::test]
async fn who_has_nothing_to_do_in_a_conversation_leaves_it_to_whoever_serves_when_it_goes_on() {
    for database in TestDatabase::each().await {
        let gone = Member::join(&database, "gone").await;
        let idle = row(gone.accept("1", "idle").await);
        gone.end(idle).await;
        let open = row(gone.accept("2", "open").await);
        gone.release().await;
        let one = Member::takes_on(&database, "one").await;
        let adopted = one.work().adopt("gateway", None).await.unwrap();
        assert_eq!(adopted.messages.len(), 1);
        assert_eq!(adopted.messages[0].row, open);
        assert_eq!(one.holder("open").await, ("one".to_owned(), 3));
        let (nobody, epoch) = one.holder("idle").await;
        assert_eq!(nobody, "gateway");
        row(one.accept("3", "idle").await);
        assert_eq!(one.holder("idle").await, ("one".to_owned(), epoch + 1));
        // One that lives keeps what it has, whoever joins.
        let two = Member::takes_on(&database, "two").await;
        assert_eq!(two.accept("4", "idle").await, AcceptedRow::Elsewhere);
        assert_eq!(two.holder("idle").await, ("one".to_owned(), epoch + 1));
    }
}

/// What comes while its conversation's work waits to be adopted goes the same way, behind it.
#[tokio::test]
async fn a_conversation_with_work_is_adopted_before_it_gets_another_holder() {
    for database in TestDatabase::each().await {
        let gone = Member::join(&database, "gone").await;
        let first = row(gone.accept("1", "k").await);
        gone.release().await;
        let one = Member::takes_on(&database, "one").await;
        assert_eq!(one.accept("2", "k").await, AcceptedRow::Elsewhere);
        // Written by a gateway that served alone, which names no holders.
        let alone = database.open().await.unwrap();
        let key = ConversationKey::new("l");
        let inbox = alone.inbox();
        let left = inbox.accept("telegram", "3", &key, "{}", NOW);
        let left = left.await.unwrap().unwrap();
        assert_eq!(one.accept("4", "l").await, AcceptedRow::Elsewhere);
        let adopted = one.work().adopt("gateway", None).await.unwrap();
        let rows: Vec<_> = adopted.messages.iter().map(|one| one.row).collect();
        assert_eq!(rows.len(), 4);
        assert!(rows.contains(&first) && rows.contains(&left));
        for conversation in ["k", "l"] {
            assert_eq!(one.holder(conversation).await.0, "one");
        }
    }
}

#[tokio::test]
async fn what_one_had_that_is_gone_is_spread_over_those_that_serve() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let gone = Member::join(&database, "gone").await;
    for number in 0..40 {
        row(gone
            .accept(&number.to_string(), &format!("chat{number}"))
            .await);
    }
    let job = "agent:main:telegram:cron:a";
    row(gone.accept("job", job).await);
    let one = Member::takes_on(&database, "one").await;
    let two = Member::takes_on(&database, "two").await;
    silence(&one.store, "gone", DEAD_AFTER).await;
    let ones = one.work().adopt("gone", None).await.unwrap().messages;
    let ahead = two.work().look().await.unwrap();
    assert_eq!(ahead.orphans, ["gone"], "the rest waits for the other");
    let twos = two.work().adopt("gone", None).await.unwrap().messages;
    assert_eq!(ones.len() + twos.len(), 41);
    assert!(
        ones.len() > 8 && twos.len() > 8,
        "{} {}",
        ones.len(),
        twos.len()
    );
    for (member, messages) in [(&one, &ones), (&two, &twos)] {
        let people = messages
            .iter()
            .filter(|message| message.conversation.job().is_none());
        for message in people {
            let holder = member.work().holder(&message.conversation).await.unwrap();
            assert_eq!(holder.unwrap().0, member.held.gateway().as_str());
        }
    }
    assert_eq!(two.work().look().await.unwrap().orphans, [""; 0]);
}

#[tokio::test]
async fn one_that_is_about_to_leave_keeps_its_work_and_gives_its_accounts_back() {
    for database in TestDatabase::each().await {
        let one = Member::takes_on(&database, "one").await;
        let first = row(one.accept("1", "k").await);
        let take = |member: &Member| {
            let work = member.work();
            async move { work.take_account("telegram", "home", "host").await.unwrap() }
        };
        assert!(take(&one).await);
        let two = Member::takes_on(&database, "two").await;
        let heard = two.work().look().await.unwrap().heard_accounts;
        assert_eq!(heard, ["telegram"]);
        one.work().begin_to_leave().await.unwrap();
        assert_eq!(two.work().look().await.unwrap().heard_accounts, [""; 0]);
        assert!(take(&two).await);
        // A `/stop` still reaches it, and what is new does not.
        assert_eq!(two.accept("2", "k").await, AcceptedRow::Elsewhere);
        let own = one.work().look_for_own().await.unwrap();
        assert_eq!(own.open.len(), 2);
        assert_eq!(own.open[0], first);
        row(two.accept("3", "new").await);
    }
}
