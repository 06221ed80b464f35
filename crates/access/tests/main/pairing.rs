//! What pairing stands against: floods, guessing, waiting, reuse and races.

use hermetic_access::{
    AccessSettings, AdmissionGrounds, AdmissionRefusal, ApproveError, PairedRole, PairedUser,
    PairingError, SenderRole,
};
use hermetic_types::Platform::Telegram;

use crate::lab::{Lab, dm, group, user};

const YEAR: u64 = 365 * 24 * 3600;

fn lab() -> Lab {
    Lab::new(AccessSettings::default())
}

#[tokio::test]
async fn a_stranger_becomes_a_user() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    let approved = lab
        .pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await
        .unwrap();
    assert_eq!(
        (approved.user, approved.display.as_str()),
        (user("alice"), "alice[2J")
    );

    let admitted = lab.says(dm("alice")).await.unwrap();
    assert_eq!(
        (admitted.grounds(), admitted.role()),
        (AdmissionGrounds::Paired, SenderRole::User)
    );
    assert_eq!(
        admitted.conversation().as_str(),
        "agent:main:telegram:dm:alice"
    );
    assert_eq!(
        lab.says(group("alice", "-1")).await.unwrap().role(),
        SenderRole::User
    );
    assert!(lab.says(dm("mallory")).await.is_err());
}

#[tokio::test]
async fn one_request_in_ten_minutes_and_the_rest_in_silence() {
    let mut lab = lab();
    let first = lab.asks_for_code("alice").await;
    lab.pass(599);
    assert_eq!(
        lab.says(dm("alice")).await.unwrap_err(),
        AdmissionRefusal::RateLimited
    );
    lab.pass(1);
    let second = lab.asks_for_code("alice").await;
    assert!(
        lab.pairing()
            .approve(Telegram, first.as_str(), PairedRole::User, lab.now)
            .await
            .is_err()
    );
    assert!(
        lab.pairing()
            .approve(Telegram, second.as_str(), PairedRole::User, lab.now)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_flood_of_strangers_does_not_shut_the_door() {
    let mut lab = lab();
    let early = lab.asks_for_code("early").await;
    for stranger in 0..900 {
        lab.asks_for_code(&format!("stranger-{stranger}")).await;
    }
    let late = lab.asks_for_code("late").await;
    lab.pass(60);
    assert!(
        lab.pairing()
            .approve(Telegram, early.as_str(), PairedRole::User, lab.now)
            .await
            .is_ok()
    );
    assert!(
        lab.pairing()
            .approve(Telegram, late.as_str(), PairedRole::User, lab.now)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn the_ledger_stays_bounded_and_the_newest_still_gets_in() {
    let mut lab = lab();
    for stranger in 0..1100 {
        if stranger % 100 == 0 {
            lab.pass(1);
        }
        lab.asks_for_code(&format!("stranger-{stranger}")).await;
    }
    let code = lab.asks_for_code("alice").await;
    assert_eq!(
        lab.pairing()
            .standing(Telegram, lab.now)
            .await
            .unwrap()
            .pending
            .len(),
        1000
    );
    assert!(
        lab.pairing()
            .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_code_dies_after_an_hour() {
    let mut lab = lab();
    let code = lab.asks_for_code("alice").await;
    lab.pass(3600);
    assert!(
        lab.pairing()
            .standing(Telegram, lab.now)
            .await
            .unwrap()
            .pending
            .is_empty()
    );
    assert!(
        lab.pairing()
            .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
            .await
            .is_err()
    );
    assert!(lab.says(dm("alice")).await.is_err());
}

#[tokio::test]
async fn a_code_works_once() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    lab.pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await
        .unwrap();
    assert!(
        lab.pairing()
            .revoke(Telegram, &user("alice"))
            .await
            .unwrap()
    );
    assert!(
        lab.pairing()
            .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
            .await
            .is_err()
    );
    assert!(lab.says(dm("alice")).await.is_err());
}

#[tokio::test]
async fn five_wrong_codes_lock_even_the_right_one() {
    let mut lab = lab();
    let code = lab.asks_for_code("alice").await;
    for left in (1..5).rev() {
        let error = lab
            .pairing()
            .approve(Telegram, "WRANGWRG", PairedRole::User, lab.now)
            .await
            .unwrap_err();
        assert!(
            matches!(error, PairingError::Approve(ApproveError::NoSuchCode { left: l }) if l == left),
            "{error}"
        );
    }
    for typed in ["not a code at all", code.as_str()] {
        let error = lab
            .pairing()
            .approve(Telegram, typed, PairedRole::User, lab.now)
            .await
            .unwrap_err();
        assert!(
            matches!(error, PairingError::Approve(ApproveError::Locked { .. })),
            "{error}"
        );
    }
    lab.pass(3600);
    let code = lab.asks_for_code("alice").await;
    assert!(
        lab.pairing()
            .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
            .await
            .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_approvals_at_once_one_wins() {
    for _ in 0..50 {
        let lab = lab();
        let code = lab.asks_for_code("alice").await;
        let tries: Vec<_> = (0..4)
            .map(|_| {
                let (pairing, code, now) = (lab.pairing().clone(), code.clone(), lab.now);
                tokio::spawn(async move {
                    pairing
                        .approve(Telegram, code.as_str(), PairedRole::User, now)
                        .await
                })
            })
            .collect();
        let mut won = 0;
        for attempt in tries {
            won += usize::from(attempt.await.unwrap().is_ok());
        }
        assert_eq!(won, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn guesses_at_once_do_not_slip_past_the_lock() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    let guesses: Vec<_> = (0..20)
        .map(|_| {
            let (pairing, now) = (lab.pairing().clone(), lab.now);
            tokio::spawn(async move {
                pairing
                    .approve(Telegram, "WRANGWRG", PairedRole::User, now)
                    .await
            })
        })
        .collect();
    for guess in guesses {
        assert!(guess.await.unwrap().is_err());
    }
    let error = lab
        .pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PairingError::Approve(ApproveError::Locked { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn clearing_voids_every_code() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    assert_eq!(lab.pairing().clear_pending(Telegram).await.unwrap(), 1);
    assert!(
        lab.pairing()
            .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_clock_put_back_locks_nobody_out() {
    let mut lab = lab();
    lab.asks_for_code("alice").await;
    lab.set_back(7200);
    lab.asks_for_code("alice").await;
}

#[tokio::test]
async fn a_lock_of_a_clock_that_was_a_year_ahead_lasts_an_hour() {
    let mut lab = lab();
    lab.pass(YEAR);
    for _ in 0..5 {
        let guess = lab
            .pairing()
            .approve(Telegram, "WRANGWRG", PairedRole::User, lab.now)
            .await;
        assert!(guess.is_err());
    }
    lab.set_back(YEAR);
    let code = lab.asks_for_code("alice").await;
    let early = lab
        .pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await;
    assert!(matches!(
        early,
        Err(PairingError::Approve(ApproveError::Locked { .. }))
    ));
    lab.pass(3600);
    let code = lab.asks_for_code("alice").await;
    let approved = lab
        .pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await;
    assert!(approved.is_ok(), "{approved:?}");
}

#[tokio::test]
async fn somebody_let_in_elsewhere_is_adopted_once_and_stays_as_he_is_here() {
    let lab = lab();
    let person = |id: &str, display: &str| PairedUser {
        user: user(id),
        display: display.to_owned(),
        approved_at: lab.now,
        role: PairedRole::User,
        untold: None,
    };
    let people = [person("alice", "Alice\u{202e}"), person("bob", "Bob")];
    let adopted = lab.pairing().adopt(Telegram, &people).await.unwrap();
    assert_eq!(adopted, [person("alice", "Alice"), person("bob", "Bob")]);
    assert!(lab.says(dm("alice")).await.is_ok());
    let again = [person("alice", "Mallory"), person("carol", "Carol")];
    let adopted = lab.pairing().adopt(Telegram, &again).await.unwrap();
    assert_eq!(adopted, [person("carol", "Carol")]);
}

#[tokio::test]
async fn one_let_in_as_an_operator_is_one_wherever_he_writes_and_until_he_is_put_out() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    assert!(lab.pairing().is_new().await.unwrap());
    let approved = lab
        .pairing()
        .approve(Telegram, code.as_str(), PairedRole::Operator, lab.now)
        .await
        .unwrap();
    assert_eq!(approved.role, PairedRole::Operator);
    assert!(!lab.pairing().is_new().await.unwrap());
    for said in [dm("alice"), group("alice", "-1")] {
        assert_eq!(lab.says(said).await.unwrap().role(), SenderRole::Operator);
    }
    assert!(
        lab.pairing()
            .revoke(Telegram, &user("alice"))
            .await
            .unwrap()
    );
    assert!(lab.says(dm("alice")).await.is_err());
    // Nobody is made one by a file of another system.
    let claims = [PairedUser {
        role: PairedRole::Operator,
        ..approved
    }];
    lab.pairing().adopt(Telegram, &claims).await.unwrap();
    assert_eq!(
        lab.says(dm("alice")).await.unwrap().role(),
        SenderRole::User
    );
}

#[tokio::test]
async fn who_was_let_in_waits_to_be_told_where_he_asked() {
    let lab = lab();
    let code = lab.asks_for_code("alice").await;
    assert_eq!(lab.pairing().untold(Telegram).await.unwrap(), []);
    lab.pairing()
        .approve(Telegram, code.as_str(), PairedRole::User, lab.now)
        .await
        .unwrap();
    let untold = lab.pairing().untold(Telegram).await.unwrap();
    let place = untold[0].untold.as_ref().unwrap();
    assert_eq!(place.place, dm("alice").place);
    assert_eq!(place.account, dm("alice").account);
    lab.pairing()
        .note_told(Telegram, &user("alice"))
        .await
        .unwrap();
    assert_eq!(lab.pairing().untold(Telegram).await.unwrap(), []);
    assert!(lab.says(dm("alice")).await.is_ok());
}

#[test]
fn a_ledger_of_an_earlier_version_is_read() {
    let old = r#"{"approved":{"alice":{"user":"alice","display":"A","approved_at":"2026-01-02T03:04:05Z"}},
        "pending":{},"failures":0}"#;
    let ledger: hermetic_access::PairingLedger = serde_json::from_str(old).unwrap();
    let written = serde_json::to_string(&ledger).unwrap();
    assert!(written.contains(r#""role":"user""#), "{written}");
    assert!(!written.contains("untold"), "{written}");
}
