use hermetic_chat::InMemoryState;

use super::*;

const OURS: &str = "+4915100000001";
const ALICE: &str = "+4915100000002";
const ALICE_ID: &str = "11111111-1111-4111-8111-111111111111";
const MALLORY_ID: &str = "22222222-2222-4222-8222-222222222222";

fn people(listed: &[&str], state: &Arc<InMemoryState>) -> SignalPeople {
    let listed: Vec<_> = listed
        .iter()
        .map(|name| UserId::new(*name).unwrap())
        .collect();
    SignalPeople::new(OURS, &listed, Arc::clone(state) as Arc<dyn AdapterState>)
}

async fn called(people: &SignalPeople, uuid: Option<&str>, number: Option<&str>) -> String {
    let text = |name: Option<&str>| name.map(str::to_owned);
    let address = SignalAddress::new(text(uuid), text(number)).unwrap();
    people
        .user(&address)
        .await
        .unwrap()
        .unwrap()
        .as_str()
        .to_owned()
}

#[tokio::test]
async fn a_person_goes_by_the_name_they_are_listed_with() {
    let state = Arc::default();
    for (listed, name) in [
        (vec![ALICE], ALICE),
        (vec!["4915100000002"], "4915100000002"),
        (vec!["+49 151 0000-0002"], "+49 151 0000-0002"),
        (vec![ALICE_ID, ALICE], ALICE_ID),
        (vec![], ALICE_ID),
        (vec!["not a name", "*"], ALICE_ID),
    ] {
        let people = people(&listed, &state);
        assert_eq!(called(&people, Some(ALICE_ID), Some(ALICE)).await, name);
    }
}

#[tokio::test]
async fn a_listed_number_stays_with_whom_it_belonged_to() {
    let state = Arc::default();
    let before = people(&[ALICE], &state);
    assert_eq!(
        called(&before, Some(ALICE_ID), None).await,
        ALICE_ID,
        "not known yet"
    );
    assert_eq!(called(&before, Some(ALICE_ID), Some(ALICE)).await, ALICE);
    assert_eq!(
        called(&before, Some(ALICE_ID), None).await,
        ALICE,
        "hidden, and known"
    );
    // Also after a restart.
    let after = people(&[ALICE], &state);
    assert_eq!(
        called(&after, Some(MALLORY_ID), Some(ALICE)).await,
        MALLORY_ID
    );
    assert_eq!(called(&after, Some(ALICE_ID), None).await, ALICE);
    // A new number does not make another person of her.
    assert_eq!(
        called(&after, Some(ALICE_ID), Some("+4915100000009")).await,
        ALICE
    );
}

#[tokio::test]
async fn who_is_not_listed_is_not_written_down() {
    let state = Arc::default();
    let people = people(&[ALICE], &state);
    called(&people, Some(MALLORY_ID), Some("+4915100000003")).await;
    assert_eq!(state.load_all("").await.unwrap(), []);
}
