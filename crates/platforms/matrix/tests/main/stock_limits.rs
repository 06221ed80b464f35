//! A homeserver as it comes: ten messages, then one in five seconds.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply};
use hermetic_matrix::MatrixTiming;
use hermetic_testkit::pypi::{Synapse, SynapseLimits};

use crate::lab::{Lab, outgoing};

#[tokio::test]
async fn growing_answers_stay_within_what_a_stock_homeserver_allows() {
    let synapse = match Synapse::start(SynapseLimits::Stock).await {
        Ok(synapse) => synapse,
        Err(why) => {
            eprintln!("SKIP: growing_answers_stay_within: no Synapse: {why}");
            return;
        }
    };
    let lab = Lab::on(synapse, |config| {
        config.timing = MatrixTiming {
            retry: config.timing.retry,
            ..MatrixTiming::default()
        };
    })
    .await;
    let place = lab.private();
    let begun = lab
        .matrix
        .send(&place, &ChatReply::text(outgoing("It")))
        .await
        .unwrap();
    let mut shown = 0;
    for words in 0..50 {
        let text = outgoing("It grows. ".repeat(words + 1));
        shown += usize::from(lab.matrix.refresh(&place, &begun[0], &text).await.is_ok());
    }
    assert!((3..=5).contains(&shown), "{shown}");
    // What has to be said is said: at once within the rest, and after the pause that is asked for.
    let done = lab
        .matrix
        .edit(&place, &begun[0], &outgoing("It is done."), &[])
        .await;
    done.unwrap();
    for number in 0..5 {
        let reply = ChatReply::text(outgoing(format!("and {number}")));
        lab.matrix.send(&place, &reply).await.unwrap();
    }
    let all = lab.alice.shown(&lab.room, lab.bot.user()).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(all[0].text, "It is done.");
    assert_eq!(MatrixTiming::default().refill, Duration::from_secs(5));
}
