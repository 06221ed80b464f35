//! Two bots of one platform in one gateway.

use hermetic_testkit::telegram::{TOKEN, TelegramServer, visible_text};

use super::lab::{ALICE, Lab};

#[tokio::test(flavor = "multi_thread")]
async fn two_bots_of_one_gateway_answer_each_for_itself() {
    let work = TelegramServer::start().await.unwrap();
    let more = format!(
        "telegram: {{accounts: {{work: {{token: '{TOKEN}', base_url: '{}'}}}}}}\n",
        work.url()
    );
    let test = "two_bots_of_one_gateway_answer_each_for_itself";
    let access = "TELEGRAM_ALLOWED_USERS=7";
    let Some(lab) = Lab::start_with(test, [], &more, access).await else {
        return;
    };
    let own = lab.ask(ALICE, "/sh echo mine > note; ls").await;
    assert_eq!(own.trim(), "note");
    // The same person and the same number of the update, and another conversation.
    assert_eq!(work.says(ALICE, "/sh ls; echo empty"), 1);
    let answered = work.wait_for("sendMessage", 1).await.remove(0);
    let text = visible_text(answered.params["text"].as_str().unwrap()).unwrap();
    assert_eq!(text.trim(), "empty");
    assert_eq!(lab.telegram.calls("sendMessage").len(), 1);
    assert_eq!(lab.sandboxes().len(), 2);
    let status = lab.run(&["gateway", "status", "--json"]).json();
    for account in ["telegram", "telegram/work"] {
        let shown = &status["state"]["platforms"][account];
        assert!(shown.is_object(), "{status}");
    }
}
