use hermetic_types::{ConversationKey, Timestamp};

use super::*;
use crate::test_databases::TestDatabase;
use crate::{RowOwner, Store};

const NAME: &str = "serving";

fn process(id: &str) -> GatewayProcess {
    GatewayProcess {
        id: id.parse().unwrap(),
        installation: "home".parse().unwrap(),
        host: format!("host-of-{id}"),
        name: format!("{id}'s machine"),
        version: "1.2.3".to_owned(),
    }
}

/// As if the process had not been seen for so long.
async fn silence(store: &Store, id: &str, by: Duration) {
    let back = SqlStatement::new("UPDATE gateways SET seen_at = seen_at - ? WHERE id = ?")
        .bind(i64::try_from(by.as_millis()).unwrap())
        .bind(id);
    let written = store.database.write_unfenced("wait", vec![back]).await;
    assert_eq!(written.unwrap()[0].affected(), 1);
}

async fn accept(store: &Store, update: &str) -> Result<bool, StoreError> {
    let (key, now) = (ConversationKey::new("k"), Timestamp::from_millis(5));
    let inbox = store.inbox();
    let accepted = inbox.accept("telegram", update, &key, "{}", now);
    accepted.await.map(|row| row.is_some())
}

#[tokio::test]
async fn of_two_who_claim_one_holds_until_it_is_dead() {
    for database in TestDatabase::each().await {
        let (store, other) = (
            database.open().await.unwrap(),
            database.open().await.unwrap(),
        );
        assert_eq!(store.leases().look(NAME).await.unwrap(), None);
        let (one, two) = (process("one"), process("two"));
        let (leases, others) = (store.leases(), other.leases());
        let both = tokio::join!(leases.claim(NAME, &one), others.claim(NAME, &two));
        let held = match both {
            (Ok(Some(held)), Ok(None)) | (Ok(None), Ok(Some(held))) => held,
            both => panic!("{both:?}"),
        };
        assert_eq!(held.epoch(), 1);
        let loser = match held.gateway.as_str() {
            "one" => two,
            _ => one,
        };
        let seen = others.look(NAME).await.unwrap().unwrap();
        assert_eq!(
            seen.holder.map(|holder| holder.gateway).as_deref(),
            Some(held.gateway.as_str())
        );
        let almost = DEAD_AFTER - Duration::from_secs(3);
        silence(&store, held.gateway.as_str(), almost).await;
        assert_eq!(others.claim(NAME, &loser).await.unwrap(), None);
        assert!(leases.renew(&held).await.unwrap());
        silence(&store, held.gateway.as_str(), DEAD_AFTER).await;
        assert_eq!(others.look(NAME).await.unwrap().unwrap().holder, None);
        let taken = others.claim(NAME, &loser).await.unwrap().unwrap();
        assert_eq!(taken.epoch(), 2);
        assert!(!leases.renew(&held).await.unwrap(), "lost for good");
        assert!(others.renew(&taken).await.unwrap());
    }
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_free_at_once_and_its_epoch_grows() {
    for database in TestDatabase::each().await {
        let store = database.open().await.unwrap();
        let leases = store.leases();
        let first = leases.claim(NAME, &process("one")).await.unwrap().unwrap();
        leases.release(&first).await.unwrap();
        let seen = leases.look(NAME).await.unwrap().unwrap();
        assert_eq!((seen.holder, seen.host.as_str()), (None, "host-of-one"));
        let second = leases.claim(NAME, &process("two")).await.unwrap().unwrap();
        assert_eq!(second.epoch(), 2);
        // Late, and of an epoch that is over.
        leases.release(&first).await.unwrap();
        assert!(leases.renew(&second).await.unwrap());
    }
}

#[tokio::test]
async fn whoever_lost_the_lease_writes_nothing() {
    for database in TestDatabase::each().await {
        let (store, other) = (
            database.open().await.unwrap(),
            database.open().await.unwrap(),
        );
        let held = store.leases().claim(NAME, &process("one")).await;
        let held = held.unwrap().unwrap();
        let fenced = store.clone().fenced_by(held);
        assert!(accept(&fenced, "1").await.unwrap());
        assert!(!accept(&fenced, "1").await.unwrap(), "it is there already");
        silence(&store, "one", DEAD_AFTER).await;
        // Not seen for long, and still its own: nobody took it.
        assert!(accept(&fenced, "2").await.unwrap());
        let taken = other.leases().claim(NAME, &process("two")).await;
        let successor = other.clone().fenced_by(taken.unwrap().unwrap());
        let refused = accept(&fenced, "3").await.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains("lease_was_lost"), "{why}");
        let open = successor.inbox().open(RowOwner::AnyGateway).await.unwrap();
        assert_eq!(open.len(), 2, "nothing of the third");
        let refused = fenced.inbox().begin(open[0].row).await;
        assert!(refused.is_err(), "{refused:?}");
        assert_eq!(successor.inbox().begin(open[0].row).await.unwrap(), 1);
        // The store itself is well, and says so.
        assert!(matches!(
            store.health().health(),
            hermetic_types::PartHealth::Ok
        ));
    }
}

/// The database's clock was set back while nobody served: by it, the dead would live for as long as that was.
#[tokio::test]
async fn a_clock_that_was_set_back_keeps_nobody_alive() {
    for database in TestDatabase::each().await {
        let store = database.open().await.unwrap();
        let leases = store.leases();
        let held = leases.claim(NAME, &process("one")).await.unwrap().unwrap();
        let ahead = SqlStatement::new("UPDATE gateways SET seen_at = seen_at + 3600000");
        let ahead = store.database.write_unfenced("set back", vec![ahead]);
        ahead.await.unwrap();
        let two = process("two");
        let seen = leases.look(NAME).await.unwrap().unwrap().holder.unwrap();
        assert_eq!(leases.claim(NAME, &two).await.unwrap(), None);
        // Somebody who saw it say something since is not taken in.
        assert!(leases.renew(&held).await.unwrap());
        let claim = leases.claim_from(NAME, &two, Some(seen.beat));
        assert_eq!(claim.await.unwrap(), None);
        let seen = leases.look(NAME).await.unwrap().unwrap().holder.unwrap();
        let claim = leases.claim_from(NAME, &two, Some(seen.beat));
        assert_eq!(claim.await.unwrap().unwrap().epoch(), 2);
    }
}

#[tokio::test]
async fn everybody_who_shares_the_store_is_listed_until_they_leave_or_are_long_gone() {
    for database in TestDatabase::each().await {
        let store = database.open().await.unwrap();
        let leases = store.leases();
        let held = leases.claim(NAME, &process("one")).await.unwrap().unwrap();
        leases.join(&process("two")).await.unwrap();
        leases.is_here(&process("two")).await.unwrap();
        let listed = leases.gateways(NAME).await.unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|seen| (seen.name.as_str(), seen.version.as_str(), seen.serves))
            .collect();
        let expected = [
            ("one's machine", "1.2.3", true),
            ("two's machine", "1.2.3", false),
        ];
        assert_eq!(listed, expected);
        // A holder is not forgotten, however long it was not seen; others are, by whoever joins.
        silence(&store, "one", FORGOTTEN_AFTER * 2).await;
        silence(&store, "two", FORGOTTEN_AFTER * 2).await;
        leases.join(&process("three")).await.unwrap();
        let ids = |listed: Vec<SeenGateway>| -> Vec<_> {
            listed.into_iter().map(|seen| seen.gateway).collect()
        };
        let listed = leases.gateways(NAME).await.unwrap();
        assert_eq!(ids(listed), ["one", "three"]);
        leases.leave(&process("three")).await.unwrap();
        leases.release(&held).await.unwrap();
        assert_eq!(ids(leases.gateways(NAME).await.unwrap()), [""; 0]);
    }
}

#[tokio::test]
async fn who_stands_by_hears_of_a_release() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let store = database.open().await.unwrap();
    let held = store.leases().claim(NAME, &process("one")).await;
    let mut hints = database.open().await.unwrap().leases().hints().await;
    let release = store.leases();
    let release = release.release(held.as_ref().unwrap().as_ref().unwrap());
    release.await.unwrap();
    tokio::time::timeout(DEAD_AFTER, hints.next())
        .await
        .unwrap();
}

/// Nothing that others wait for keeps a holder from saying that it lives.
#[tokio::test]
async fn signs_of_life_wait_behind_no_write() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let store = database.open().await.unwrap();
    let leases = store.leases();
    let held = leases.claim(NAME, &process("one")).await.unwrap().unwrap();
    let TestDatabase::Postgres(address) = &database else {
        panic!("{database:?}");
    };
    let direct = sqlx::PgPool::connect(address.expose()).await.unwrap();
    let mut direct = direct.begin().await.unwrap();
    let lock = sqlx::raw_sql("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE");
    lock.execute(&mut *direct).await.unwrap();
    // More than there are connections.
    let waiting: Vec<_> = (0..20)
        .map(|update| {
            let store = store.clone();
            tokio::spawn(async move { accept(&store, &update.to_string()).await })
        })
        .collect();
    for _ in 0..3 {
        assert!(leases.renew(&held).await.unwrap());
    }
    assert!(waiting.iter().all(|write| !write.is_finished()));
    direct.rollback().await.unwrap();
    for write in waiting {
        assert!(write.await.unwrap().unwrap());
    }
}
