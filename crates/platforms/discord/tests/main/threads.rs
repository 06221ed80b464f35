//! Threads that are made when something is said in them, once.

use hermetic_chat::{Chat, SendFailure};
use hermetic_testkit::discord::{CHANNEL, CREATE_MESSAGE, Failure, MAKE_THREAD};
use hermetic_types::MessageId;

use crate::lab::{ALICE, Lab, listening_until, next_message, reply, thread};

#[tokio::test]
async fn a_mention_is_answered_in_a_thread_that_is_made_for_the_answer() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let id = lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        lab.server.tries(MAKE_THREAD),
        0,
        "a stranger would have caused one"
    );

    lab.discord.typing(&heard.place).await.unwrap();
    let mut answer = reply("hello yourself");
    answer.reply_to = Some(heard.message.clone());
    lab.discord.send(&heard.place, &answer).await.unwrap();
    assert_eq!(lab.server.shown(id), ["hello yourself"]);
    assert_eq!(lab.server.tries(MAKE_THREAD), 1);
    let sent = &lab.server.calls(CREATE_MESSAGE)[0].body;
    assert!(
        sent.get("message_reference").is_none(),
        "the thread hangs under it: {sent}"
    );

    lab.server.says_in(id, ALICE, "go on");
    let more = next_message(&mut inbox).await;
    assert_eq!((more.text.as_str(), &more.place), ("go on", &heard.place));
}

#[tokio::test]
async fn a_thread_whose_making_is_uncertain_is_made_once() {
    let lab = Lab::new().await;
    let id = lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    lab.server.fail_next(MAKE_THREAD, Failure::DropAfter);
    lab.discord.send(&thread(id), &reply("once")).await.unwrap();
    assert_eq!(lab.server.tries(MAKE_THREAD), 2);
    assert_eq!(lab.server.shown(id), ["once"]);

    let other = lab.server.says_in(CHANNEL, ALICE, "<@42> again");
    for _ in 0..3 {
        lab.server.fail_next(MAKE_THREAD, Failure::Drop);
    }
    let error = lab
        .discord
        .send(&thread(other), &reply("later"))
        .await
        .unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::NotSent(_)),
        "{error:?}"
    );
    assert!(error.failure.is_safe_to_repeat());
    lab.discord
        .send(&thread(other), &reply("later"))
        .await
        .unwrap();
    assert_eq!(lab.server.shown(other), ["later"]);
}

#[tokio::test]
async fn two_sends_at_once_make_one_thread() {
    let lab = Lab::new().await;
    let id = lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    let (place, one, two) = (thread(id), reply("one"), reply("two"));
    let (one, two) = tokio::join!(
        lab.discord.send(&place, &one),
        lab.discord.send(&place, &two)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(lab.server.calls(MAKE_THREAD).len(), 1);
    assert_eq!(lab.server.shown(id).len(), 2);
}

#[tokio::test]
async fn where_threads_may_not_be_made_it_is_answered_in_the_channel() {
    let lab = Lab::new().await;
    lab.server.forbid_threads();
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let id = lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    let heard = next_message(&mut inbox).await;
    let mut answer = reply("here then");
    answer.reply_to = Some(heard.message.clone());
    lab.discord.send(&heard.place, &answer).await.unwrap();
    assert_eq!(lab.server.shown(CHANNEL), ["here then"]);
    let sent = &lab.server.calls(CREATE_MESSAGE)[0].body;
    assert_eq!(sent["message_reference"]["message_id"], id.to_string());
    // And the next one is not even tried.
    lab.server.says_in(CHANNEL, ALICE, "<@42> again");
    assert_eq!(next_message(&mut inbox).await.place.thread, None);
}

#[tokio::test]
async fn a_thread_under_a_message_that_is_gone_is_refused() {
    let lab = Lab::new().await;
    let error = lab
        .discord
        .send(&thread(99), &reply("hello"))
        .await
        .unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::Refused { .. }),
        "{error:?}"
    );
    assert_eq!(error.sent, [] as [MessageId; 0]);
}
