use hermetic_types::GatewayId;

use super::*;
use crate::RowOwner;
use crate::test_databases::TestDatabase;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn words(conversation: i64, text: &str, key: &str) -> NewBrowserMessage {
    NewBrowserMessage {
        conversation,
        text: text.to_owned(),
        key: Some(key.to_owned()),
        files: Vec::new(),
    }
}

#[tokio::test]
async fn what_is_said_is_kept_once_and_is_nobody_elses() {
    for database in TestDatabase::each().await {
        let store = database.open().await.unwrap();
        let rows = store.browser_chat();
        let adas = rows.open("ada", 2, at(1)).await.unwrap().unwrap();
        let mut said = words(adas, "look at this", "form-1");
        said.files.push(NewBrowserFile {
            name: "a.txt".to_owned(),
            mime: None,
            bytes: b"bytes\0of a file".to_vec(),
        });
        let outcome = rows.say("ada", &said, at(2)).await.unwrap();
        let SaidOutcome::Written(id) = outcome else {
            panic!("{outcome:?}");
        };
        let again = rows.say("ada", &said, at(3)).await.unwrap();
        assert_eq!(again, SaidOutcome::Before(id));
        let mut with_more = said.clone();
        with_more.files.push(NewBrowserFile {
            name: "b.txt".to_owned(),
            mime: None,
            bytes: b"forged".to_vec(),
        });
        // Neither its own person nor another puts anything to what was said.
        let another = rows.say("ada", &with_more, at(3)).await.unwrap();
        assert_eq!(another, SaidOutcome::Another(id));
        let another = words(adas, "something else", "form-1");
        let another = rows.say("ada", &another, at(3)).await.unwrap();
        assert_eq!(another, SaidOutcome::Another(id));
        let forged = rows.say("eve", &with_more, at(3)).await.unwrap();
        assert_eq!(forged, SaidOutcome::NoConversation);
        let shown = rows.show("eve", &with_more, "", at(3)).await.unwrap();
        assert_eq!(shown, None);
        let kept = rows.messages("ada", adas, None, 9).await.unwrap();
        assert_eq!((kept.len(), &kept[0].notice), (1, &None));
        let forged = rows.say("eve", &words(adas, "hi", "form-2"), at(3)).await;
        assert_eq!(forged.unwrap(), SaidOutcome::NoConversation);

        // As another process finds it.
        let rows = database.open().await.unwrap().browser_chat();
        let messages = rows.messages("ada", adas, None, 9).await.unwrap();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].files.len(), 1, "{messages:?}");
        let file = messages[0].files[0].id;
        let (_, bytes) = rows.file("ada", file).await.unwrap().unwrap();
        assert_eq!(bytes, b"bytes\0of a file");
        assert_eq!(rows.kept_bytes("ada").await.unwrap(), (15, 15));
        assert_eq!(rows.kept_bytes("eve").await.unwrap(), (0, 15));
        assert_eq!(rows.file("eve", file).await.unwrap(), None);
        assert_eq!(rows.messages("eve", adas, None, 9).await.unwrap(), []);
        assert_eq!(rows.conversations("eve", 9).await.unwrap(), []);
        assert!(!rows.forget("eve", adas).await.unwrap());
        assert!(!rows.change(("eve", adas), id, "x", "").await.unwrap());
        assert!(
            !rows.change(("ada", adas), id, "x", "").await.unwrap(),
            "nobody changes what a person said"
        );
        let title = rows.conversation("ada", adas).await.unwrap().unwrap().title;
        assert_eq!(title, "look at this");

        assert!(rows.forget("ada", adas).await.unwrap());
        assert_eq!(rows.file("ada", file).await.unwrap(), None);
        assert_eq!(rows.kept_bytes("ada").await.unwrap(), (0, 0));
        let next = rows.open("ada", 2, at(9)).await.unwrap().unwrap();
        assert!(next > adas, "a number is not given again");
        assert!(rows.open("ada", 2, at(9)).await.unwrap().is_some());
        assert_eq!(rows.open("ada", 2, at(9)).await.unwrap(), None);
    }
}

#[tokio::test]
async fn what_waits_is_handed_to_its_own_gateway_until_it_is_settled() {
    for database in TestDatabase::each().await {
        let store = database.open().await.unwrap();
        let rows = store.browser_chat();
        let id = rows.open("ada", 9, at(1)).await.unwrap().unwrap();
        for key in ["1", "2"] {
            let said = rows.say("ada", &words(id, "hi", key), at(2)).await.unwrap();
            assert!(matches!(said, SaidOutcome::Written(_)));
        }
        let waiting = rows.waiting(RowOwner::ThisGateway).await.unwrap();
        assert_eq!(waiting.len(), 2);
        assert_eq!(waiting[0].person, "ada");
        let other: GatewayId = "other".parse().unwrap();
        let other = database.open_as(other).await.unwrap();
        let theirs = other.browser_chat().waiting(RowOwner::ThisGateway).await;
        assert_eq!(theirs.unwrap(), []);
        let first = waiting[0].message.id;
        rows.settle(first, BrowserMessageState::Taken)
            .await
            .unwrap();
        assert_eq!(rows.waiting_message(first).await.unwrap(), None);
        assert_eq!(rows.waiting(RowOwner::AnyGateway).await.unwrap().len(), 1);

        let shown = rows
            .show("ada", &words(id, "yes?", "d-0"), "b", at(3))
            .await;
        let shown = shown.unwrap().unwrap();
        let again = rows
            .show("ada", &words(id, "yes?", "d-0"), "b", at(3))
            .await;
        assert_eq!(again.unwrap(), Some(shown));
        let nowhere = rows.show("ada", &words(99, "yes?", "d-1"), "", at(3)).await;
        assert_eq!(nowhere.unwrap(), None);
        assert!(rows.change(("ada", id), shown, "done", "").await.unwrap());
        rows.note_press("ada", shown, "Allowed.").await.unwrap();
        rows.note_press("eve", shown, "forged").await.unwrap();
        let last = rows.messages("ada", id, None, 1).await.unwrap().remove(0);
        assert_eq!(
            (
                last.text.as_str(),
                last.buttons.as_str(),
                last.notice.as_deref()
            ),
            ("done", "", Some("Allowed."))
        );
        let earlier = rows.messages("ada", id, Some(last.id), 9).await.unwrap();
        assert_eq!(earlier.len(), 2);
        rows.prune(at(3)).await.unwrap();
        assert_eq!(rows.messages("ada", id, None, 9).await.unwrap().len(), 3);
        rows.prune(at(4)).await.unwrap();
        assert_eq!(rows.messages("ada", id, None, 9).await.unwrap(), []);
    }
}
