//! PyPI `pywa`, which others wrote, reads what our server posts: it is no mirror of our own reading.

use hermetic_testkit::pypi::PywaReceiver;
use hermetic_testkit::whatsapp::{PHONE_NUMBER_ID, TOKEN, WhatsAppServer, sign};
use serde_json::{Value, json};

use crate::lab::{ALICE, HIDDEN};

#[tokio::test]
async fn a_client_of_others_understands_what_our_server_posts() {
    let mut pywa = match PywaReceiver::start().await {
        Ok(pywa) => pywa,
        Err(why) => {
            eprintln!("SKIP: a_client_of_others_understands_what_our_server_posts: {why}");
            return;
        }
    };
    let server = WhatsAppServer::start().await.unwrap();
    assert_eq!(
        server.subscribe(&pywa.url()).await.0,
        200,
        "it knows the challenge"
    );

    let id = server.says(ALICE, "hello");
    let heard = pywa.next().await.unwrap();
    let expected = json!({
        "kind": "message", "id": id, "user": ALICE.id, "number": ALICE.number,
        "name": ALICE.name, "text": "hello",
    });
    assert_eq!(heard, expected);
    let id = server.says(HIDDEN, "no number");
    let heard = pywa.next().await.unwrap();
    assert_eq!(
        (&heard["id"], &heard["user"]),
        (&json!(id), &json!(HIDDEN.id))
    );
    assert_eq!(heard["number"], json!(null));
    server.presses(ALICE, "wamid.asked", "q:1");
    let heard = pywa.next().await.unwrap();
    assert_eq!(
        (&heard["data"], &heard["of"]),
        (&json!("q:1"), &json!("wamid.asked"))
    );

    // A status, of a message that is sent as pywa's own client would send it.
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({
        "messaging_product": "whatsapp", "recipient_type": "individual", "recipient": ALICE.id,
        "type": "text", "text": { "body": "hi" }, "biz_opaque_callback_data": "mark",
    });
    server.fail_later(131_047);
    let url = format!("{}/v26.0/{PHONE_NUMBER_ID}/messages", server.url());
    let sent = client
        .post(url)
        .bearer_auth(TOKEN)
        .json(&body)
        .send()
        .await
        .unwrap();
    assert!(sent.status().is_success());
    let heard = pywa.next().await.unwrap();
    let expected =
        json!({ "kind": "status", "status": "failed", "mark": "mark", "error": 131_047 });
    assert_eq!(heard, expected);

    // Signatures are judged alike, and the same body twice is one message.
    let body = repeated().to_string();
    let body = body.as_bytes();
    let good = sign(body);
    assert_eq!(server.posts_raw(body, None).await, 401);
    assert_eq!(server.posts_raw(body, Some(&sign(b"another"))).await, 403);
    assert_eq!(server.posts_raw(body, Some(&good)).await, 200);
    assert_eq!(server.posts_raw(body, Some(&good)).await, 200);
    assert_eq!(pywa.next().await.unwrap()["id"], "wamid.twice");
    let id = server.says(ALICE, "the next");
    assert_eq!(pywa.next().await.unwrap()["id"], json!(id));
}

fn repeated() -> Value {
    let value = json!({
        "messaging_product": "whatsapp",
        "metadata": { "display_phone_number": "15550783881", "phone_number_id": PHONE_NUMBER_ID },
        "contacts": [{ "profile": { "name": "Alice" }, "user_id": ALICE.id }],
        "messages": [{
            "from_user_id": ALICE.id, "id": "wamid.twice", "timestamp": "1790000000",
            "type": "text", "text": { "body": "twice" },
        }],
    });
    let change = json!({ "value": value, "field": "messages" });
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [change] }] })
}
