//! Who somebody is: nobody becomes somebody else.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_chat::{AdapterState, Chat, InMemoryState};
use hermetic_testkit::whatsapp::Person;
use hermetic_types::UserId;
use hermetic_whatsapp::{CloudConfig, PhoneNumber};
use serde_json::json;

use crate::lab::{ALICE, HIDDEN, Lab, next_message, private};

fn list_alice(config: &mut CloudConfig) {
    let number = PhoneNumber::read(ALICE.number.unwrap()).unwrap();
    config.listed_numbers = BTreeSet::from([number]);
}

const WITHOUT_NUMBER: Person = Person {
    number: None,
    ..ALICE
};

#[tokio::test]
async fn a_listed_number_names_its_owner_and_stays_theirs_after_a_restart() {
    let state = Arc::new(InMemoryState::default());
    let number = ALICE.number.unwrap();
    {
        let lab = Lab::with(|config| {
            list_alice(config);
            config.state = Arc::clone(&state) as Arc<dyn AdapterState>;
        })
        .await;
        let mut inbox = lab.listen();
        lab.server.says(ALICE, "hello");
        let heard = next_message(&mut inbox).await;
        assert_eq!(heard.sender.id.as_str(), number);
        assert_eq!(
            heard.place,
            private(ALICE),
            "the conversation is kept by the id"
        );
    }
    let lab = Lab::with(|config| {
        list_alice(config);
        config.state = state;
    })
    .await;
    let mut inbox = lab.listen();
    lab.server.says(WITHOUT_NUMBER, "hidden now");
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.sender.id.as_str(), &heard.place),
        (number, &private(ALICE))
    );
    let place = lab.cloud.private_place(&UserId::new(number).unwrap()).await;
    assert_eq!(place.unwrap(), private(ALICE));
}

#[tokio::test]
async fn nobody_becomes_somebody_else_by_what_they_can_choose() {
    let lab = Lab::with(list_alice).await;
    let mut inbox = lab.listen();
    let alice = ALICE.number.unwrap();
    // The name of `HIDDEN` is Alice's number. A contact that was sent along, or one of somebody else in
    // the same notification, is no proof either.
    let card = json!({ "name": { "formatted_name": "x" }, "phones": [{ "phone": alice, "wa_id": alice }] });
    for fields in [
        json!({ "type": "text", "text": { "body": alice } }),
        json!({ "type": "text", "text": { "body": "x" }, "from": "" }),
        json!({ "type": "text", "text": { "body": "x" }, "from": format!("+{alice}") }),
        json!({ "type": "text", "text": { "body": "x" }, "from": format!(" {alice}") }),
        json!({ "type": "contacts", "contacts": [card] }),
        json!({ "type": "text", "text": { "body": "x" }, "context": { "from": alice, "id": "wamid.1" } }),
    ] {
        lab.server.sends(HIDDEN, fields);
        let heard = next_message(&mut inbox).await;
        assert_eq!(heard.sender.id.as_str(), HIDDEN.id, "{heard:?}");
        assert_eq!(heard.place, private(HIDDEN));
    }
    // An id where a number belongs is none, and the other way round.
    let crafted =
        json!({ "type": "text", "text": { "body": "x" }, "from": ALICE.id, "from_user_id": alice });
    lab.server.sends(HIDDEN, crafted);
    lab.server.says(HIDDEN, "next");
    assert_eq!(next_message(&mut inbox).await.text, "next");
}

#[tokio::test]
async fn without_an_id_a_number_is_who_somebody_is() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let fields = json!({ "type": "text", "text": { "body": "hi" }, "from_user_id": null });
    let nobody_known = Person {
        id: "not an id",
        ..ALICE
    };
    lab.server.sends(nobody_known, fields);
    let heard = next_message(&mut inbox).await;
    let number = ALICE.number.unwrap();
    assert_eq!(
        (heard.sender.id.as_str(), heard.place.chat.as_str()),
        (number, number)
    );
    let reply = hermetic_chat::ChatReply::text(crate::lab::outgoing("hello"));
    lab.cloud.send(&heard.place, &reply).await.unwrap();
    assert_eq!(lab.server.sent()[0].body["to"], number);
}
