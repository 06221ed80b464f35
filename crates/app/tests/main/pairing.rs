//! Strangers who were let in.

use std::time::Duration;

use hermetic_access::PairedRole;
use hermetic_types::{Clock as _, Platform};

use crate::lab::{ALICE, Lab, STRANGER};

/// The code that a stranger was given.
fn code(offer: &str) -> String {
    let (_, code) = offer.rsplit_once(' ').expect("the code stands at the end");
    code.trim().to_owned()
}

async fn approve(lab: &Lab, offer: &str, role: PairedRole) {
    let pairing = hermetic_app::pairing(&lab.store().await);
    let now = lab.clock().now();
    let code = code(offer);
    let approved = pairing.approve(Platform::Telegram, &code, role, now);
    approved.await.unwrap();
}

/// Until it is written down that everybody was told, which is a moment after they are: a crash in between tells them
/// once more.
async fn noted(lab: &Lab) {
    let pairing = hermetic_app::pairing(&lab.store().await);
    while !pairing.untold(Platform::Telegram).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn who_is_let_in_is_told_and_a_restart_forgets_nobody() {
    let mut lab = Lab::builder().access("").start().await;
    let offer = lab.ask(STRANGER, "hello?").await;
    approve(&lab, &offer, PairedRole::User).await;
    let told = lab.replies(STRANGER, 2).await.remove(1);
    assert!(told.starts_with("You are let in"), "{told}");
    noted(&lab).await;

    let offer = lab.ask(ALICE, "and me?").await;
    lab.crash();
    approve(&lab, &offer, PairedRole::Operator).await;
    lab.start().await;
    let told = lab.replies(ALICE, 2).await.remove(1);
    assert!(told.contains("this bot's operator"), "{told}");
    let who = lab.ask(ALICE, "/whoami").await;
    assert!(who.contains("role: operator"), "{who}");
    let who = lab.ask(STRANGER, "/whoami").await;
    assert!(who.contains("role: user"), "{who}");

    lab.restart().await;
    lab.ask(ALICE, "/whoami").await;
    assert_eq!(
        (lab.sent_to(ALICE), lab.sent_to(STRANGER)),
        (4, 3),
        "each was told once"
    );
    lab.stop().await;
}
