//! Two bots of one platform in one gateway.

use hermetic_testkit::telegram::{TOKEN, TelegramServer};

use crate::answers::get;
use crate::lab::{ALICE, Lab, WireLab, text};

#[tokio::test]
async fn two_bots_of_one_gateway_answer_each_for_itself() {
    let work = TelegramServer::start().await.unwrap();
    let more = format!(
        "telegram: {{accounts: {{work: {{token: '{TOKEN}', base_url: '{}'}}}}}}\n",
        work.url()
    );
    let builder = Lab::builder().config(&more);
    let lab = WireLab::start(builder.access("TELEGRAM_ALLOWED_USERS=7")).await;
    let own = lab.ask(ALICE, "/sh echo mine > note; ls").await;
    assert_eq!(own.trim(), "note");
    // The same person and the same number of the update, and another conversation.
    assert_eq!(work.says(ALICE, "/sh ls; echo empty"), 1);
    let answered = work.wait_for("sendMessage", 1).await.remove(0);
    assert_eq!(text(&answered.params).trim(), "empty");
    assert_eq!(lab.telegram.calls("sendMessage").len(), 1);
    assert_eq!(lab.sandboxes().await.len(), 2);
    let health = get(&lab, "/health").await;
    for account in ["telegram", "telegram/work"] {
        let named = format!(r#""name":"{account}""#);
        assert!(health.contains(&named), "{health}");
    }
}
