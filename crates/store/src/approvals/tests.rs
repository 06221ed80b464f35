use super::*;
use crate::test_databases::TestDatabase;

const HOUR: i64 = 3_600_000;

struct Lab {
    _database: TestDatabase,
    rows: ApprovalRows,
    key: ConversationKey,
}

impl Lab {
    async fn new(database: TestDatabase) -> Self {
        let store = database.open().await.unwrap();
        Self {
            _database: database,
            rows: store.approvals(),
            key: ConversationKey::new("k"),
        }
    }

    fn question<'a>(&'a self, fingerprint: &'a str) -> NewRequest<'a> {
        NewRequest {
            subject: StoredSubject::Command,
            conversation: &self.key,
            message: None,
            what: "rm -rf build",
            fingerprint,
            reasons: &[],
            longest: ApprovalScope::Always,
            asker: "telegram:7",
            asked_at: at(0),
            expires_at: at(HOUR),
        }
    }

    async fn asked(&self) -> RequestId {
        self.rows.open(&self.question("f")).await.unwrap().id
    }

    async fn granted(&self, now: i64) -> bool {
        let granted = self
            .rows
            .is_granted(&self.key, StoredSubject::Command, "f", at(now));
        granted.await.unwrap()
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn yes(scope: ApprovalScope, by: &str) -> RequestReply<'_> {
    RequestReply {
        given: GivenAnswer::Yes(scope),
        by,
        via: "test",
        reason: None,
    }
}

#[tokio::test]
async fn of_two_answers_at_once_one_counts() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        for _ in 0..20 {
            let id = lab.asked().await;
            let no = RequestReply {
                given: GivenAnswer::No,
                ..yes(ApprovalScope::Once, "bob")
            };
            let (one, two) = tokio::join!(
                lab.rows
                    .answer(&id, yes(ApprovalScope::Once, "alice"), at(1)),
                lab.rows.answer(&id, no, at(1))
            );
            let outcomes = [one.unwrap(), two.unwrap()];
            let first = |outcome: &&AnswerOutcome| matches!(outcome, AnswerOutcome::First(_));
            assert_eq!(outcomes.iter().filter(first).count(), 1, "{outcomes:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_after_its_time_does_not_count() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        let late = lab
            .rows
            .answer(&id, yes(ApprovalScope::Session, "alice"), at(HOUR));
        let AnswerOutcome::TooLate(request) = late.await.unwrap() else {
            panic!("it counted");
        };
        assert_eq!(request.state, RequestState::Expired);
        assert!(!lab.granted(HOUR).await);
        assert!(!lab.rows.spend(&id, at(HOUR)).await.unwrap());
    }
}

#[tokio::test]
async fn a_yes_is_spent_once() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        assert!(
            !lab.rows.spend(&id, at(1)).await.unwrap(),
            "nobody said yes"
        );
        let _ = lab
            .rows
            .answer(&id, yes(ApprovalScope::Once, "alice"), at(1))
            .await
            .unwrap();
        let (one, two) = tokio::join!(lab.rows.spend(&id, at(2)), lab.rows.spend(&id, at(2)));
        assert_ne!(one.unwrap(), two.unwrap());
        assert!(!lab.granted(2).await);
    }
}

#[tokio::test]
async fn a_grant_is_for_one_thing_in_one_conversation_until_it_ends() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        let yes_for_a_while = yes(ApprovalScope::TenMinutes, "alice");
        let _ = lab.rows.answer(&id, yes_for_a_while, at(1)).await.unwrap();
        assert!(lab.granted(600_000).await && !lab.granted(600_001).await);

        let id = lab.asked().await;
        let _ = lab
            .rows
            .answer(&id, yes(ApprovalScope::Session, "alice"), at(1))
            .await
            .unwrap();
        assert!(lab.granted(i64::MAX).await);
        let rows = &lab.rows;
        let other = ConversationKey::new("other");
        for (conversation, subject, fingerprint) in [
            (&other, StoredSubject::Command, "f"),
            (&lab.key, StoredSubject::Host, "f"),
            (&lab.key, StoredSubject::Command, "g"),
        ] {
            let granted = rows.is_granted(conversation, subject, fingerprint, at(2));
            assert!(!granted.await.unwrap(), "{conversation} {fingerprint}");
        }
        rows.revoke(&lab.key).await.unwrap();
        assert!(!lab.granted(2).await);
    }
}

#[tokio::test]
async fn what_stands_is_found_again_by_the_same_person_only() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        let found = lab.rows.standing(&lab.question("f"), at(0)).await.unwrap();
        assert_eq!(found[0].id, id);
        let of_another = NewRequest {
            asker: "telegram:8",
            ..lab.question("f")
        };
        assert_eq!(lab.rows.standing(&of_another, at(0)).await.unwrap(), []);
        let _ = lab
            .rows
            .answer(&id, yes(ApprovalScope::Once, "alice"), at(5))
            .await
            .unwrap();
        let fresh = lab.rows.standing(&lab.question("f"), at(5)).await.unwrap();
        assert_eq!(fresh.len(), 1);
        let stale = lab.rows.standing(&lab.question("f"), at(6)).await.unwrap();
        assert_eq!(stale, []);
        lab.rows.spend(&id, at(6)).await.unwrap();
        let spent = lab.rows.standing(&lab.question("f"), at(5)).await.unwrap();
        assert_eq!(spent, []);
    }
}

#[tokio::test]
async fn a_button_means_what_was_written_down_and_goes_with_its_question() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        lab.rows.add_button(&id, "t1", "once").await.unwrap();
        let (request, choice) = lab.rows.pressed("t1").await.unwrap().unwrap();
        assert_eq!((request.id, choice.as_str()), (id.clone(), "once"));
        assert_eq!(lab.rows.pressed("t2").await.unwrap(), None);
        lab.rows
            .close(&id, RequestState::Withdrawn, at(1))
            .await
            .unwrap();
        lab.rows.recorded(&id).await.unwrap();
        lab.rows.prune(at(HOUR)).await.unwrap();
        assert_eq!(lab.rows.pressed("t1").await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_recorded_is_not_forgotten() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        let id = lab.asked().await;
        lab.rows.expire(at(HOUR)).await.unwrap();
        assert_eq!(
            lab.rows
                .pending(RowOwner::ThisGateway, at(HOUR))
                .await
                .unwrap(),
            []
        );
        lab.rows.prune(at(2 * HOUR)).await.unwrap();
        assert_eq!(
            lab.rows.unrecorded(RowOwner::ThisGateway).await.unwrap()[0].id,
            id
        );
        lab.rows.recorded(&id).await.unwrap();
        assert_eq!(
            lab.rows.unrecorded(RowOwner::ThisGateway).await.unwrap(),
            []
        );
    }
}

/// Whoever answers, and however: what was shown had no such answer.
#[tokio::test]
async fn no_yes_is_for_longer_than_its_question_can_take() {
    for database in TestDatabase::each().await {
        let lab = Lab::new(database).await;
        for asked_for in ApprovalScope::ALL {
            let question = NewRequest {
                longest: ApprovalScope::Once,
                ..lab.question("f")
            };
            let id = lab.rows.open(&question).await.unwrap().id;
            let answered = lab.rows.answer(&id, yes(asked_for, "bob"), at(1)).await;
            let AnswerOutcome::First(request) = answered.unwrap() else {
                panic!("it was not the first");
            };
            assert_eq!(request.scope, Some(ApprovalScope::Once), "{asked_for:?}");
            assert!(!lab.granted(2).await, "{asked_for:?}");
        }
    }
}
