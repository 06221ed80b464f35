use super::*;
use crate::route::ApiRoute;

const SECOND: Duration = Duration::from_secs(1);

fn message_to(channel: u32) -> RouteKey {
    ApiRoute::post("/channels/{}/messages", &[&channel]).key
}

fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
    of.iter()
        .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_full_bucket_waits_and_another_channel_does_not() {
    let limits = RateLimits::default();
    let (one, two) = (message_to(1), message_to(2));
    assert_eq!(limits.take(&one), Ok(()));
    let said = headers(&[
        ("x-ratelimit-bucket", "abc"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "1"),
        ("x-ratelimit-reset-after", "2.5"),
    ]);
    limits.note(&one, StatusCode::OK, &said, None);
    assert_eq!(limits.take(&one), Ok(()), "one place was left");
    assert_eq!(limits.take(&one), Err(Duration::from_millis(2500)));
    assert_eq!(limits.take(&two), Ok(()));
    tokio::time::advance(Duration::from_millis(2500)).await;
    for _ in 0..5 {
        assert_eq!(limits.take(&one), Ok(()));
    }
    assert!(limits.take(&one).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_global_429_holds_everybody_and_another_its_bucket() {
    let limits = RateLimits::default();
    let (one, two) = (message_to(1), message_to(2));
    let mut too_many = TooMany {
        retry_after: SECOND,
        global: false,
    };
    let none = HeaderMap::new();
    limits.note(&one, StatusCode::TOO_MANY_REQUESTS, &none, Some(too_many));
    assert_eq!(limits.take(&one), Err(SECOND));
    assert_eq!(limits.take(&two), Ok(()));
    too_many.global = true;
    limits.note(&one, StatusCode::TOO_MANY_REQUESTS, &none, Some(too_many));
    assert_eq!(limits.take(&two), Err(SECOND));
    tokio::time::advance(SECOND).await;
    assert_eq!((limits.take(&one), limits.take(&two)), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn all_together_stay_below_what_a_second_allows() {
    let limits = RateLimits::default();
    let granted = (0..200).filter(|channel| limits.take(&message_to(*channel)).is_ok());
    assert_eq!(granted.count(), 45);
    tokio::time::advance(SECOND).await;
    assert_eq!(limits.take(&message_to(1)), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn answers_to_interactions_wait_for_their_own_bucket_alone() {
    let limits = RateLimits::default();
    let too_many = TooMany {
        retry_after: SECOND,
        global: true,
    };
    let none = HeaderMap::new();
    limits.note(
        &message_to(1),
        StatusCode::TOO_MANY_REQUESTS,
        &none,
        Some(too_many),
    );
    let first = ApiRoute::post("/interactions/{}/{}/callback", &[&1, &"t"]).key;
    let later = ApiRoute::post("/webhooks/{}/{}", &[&2, &"t"]).key;
    for _ in 0..100 {
        assert_eq!((limits.take(&first), limits.take(&later)), (Ok(()), Ok(())));
    }
    let own = TooMany {
        global: false,
        ..too_many
    };
    limits.note(&later, StatusCode::TOO_MANY_REQUESTS, &none, Some(own));
    assert_eq!(limits.take(&later), Err(SECOND));
    tokio::time::advance(SECOND).await;
    let granted = (0..200).filter(|channel| limits.take(&message_to(*channel)).is_ok());
    assert_eq!(granted.count(), 45, "they take no places of others");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_refusals_end_all_asking_for_a_while() {
    let limits = RateLimits::default();
    for _ in 0..MOST_REFUSALS {
        limits.note(
            &message_to(1),
            StatusCode::FORBIDDEN,
            &HeaderMap::new(),
            None,
        );
    }
    assert_eq!(limits.take(&message_to(2)), Err(REFUSALS_COUNTED));
    tokio::time::advance(REFUSALS_COUNTED).await;
    assert_eq!(limits.take(&message_to(2)), Ok(()));
}

#[test]
fn what_is_no_time_is_none() {
    assert_eq!(seconds("0.3"), Some(Duration::from_millis(300)));
    for text in ["", "-1", "NaN", "inf", "1e400", "soon"] {
        assert_eq!(seconds(text), None, "{text}");
    }
}
