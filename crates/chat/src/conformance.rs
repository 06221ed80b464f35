//! One examination for every adapter.
//!
//! A platform's tests add it with one line: [`conformance!`](crate::conformance!), given an async
//! function that makes a [`ChatCandidate`] for an account's name. Each case is a test of its own against a
//! stand-in of the platform. What a platform cannot do, by its `Capabilities`, it has to refuse.

mod candidate;
mod receiving;
mod sending;

pub use candidate::{ChatCandidate, SendFate, StandIn};
pub use receiving::{
    a_changed_and_a_deleted_message_are_told, a_lost_connection_comes_back,
    a_press_comes_back_with_its_data, a_stored_event_does_not_come_again,
    an_event_comes_again_until_it_is_stored, listening_ends_when_it_is_asked_to,
    two_accounts_are_told_apart, what_is_no_event_holds_up_nothing,
};
pub use sending::{
    a_file_leaves_or_is_refused, a_long_text_leaves_in_parts_that_fit,
    a_message_is_changed_or_that_is_refused, a_person_is_reached_alone_or_that_is_refused,
    a_refused_send_did_not_arrive, an_empty_text_is_not_sent, what_may_have_arrived_is_uncertain,
};

/// Writes one test for each case of the suite. `$candidate` is an async function from an account's name
/// to a fresh [`ChatCandidate`]; behind `where_there_is` it is one to an `Option`, and has said aloud why there
/// is none.
#[macro_export]
macro_rules! conformance {
    ($candidate:path) => {
        $crate::conformance!(@all $candidate; ::std::option::Option::Some);
    };
    (where_there_is $candidate:path) => {
        $crate::conformance!(@all $candidate; ::std::convert::identity);
    };
    (@all $candidate:path; $perhaps:path) => {
        $crate::conformance!(@cases $candidate; $perhaps;
            an_event_comes_again_until_it_is_stored
            a_stored_event_does_not_come_again
            what_is_no_event_holds_up_nothing
            a_press_comes_back_with_its_data
            a_changed_and_a_deleted_message_are_told
            a_lost_connection_comes_back
            listening_ends_when_it_is_asked_to
            a_long_text_leaves_in_parts_that_fit
            an_empty_text_is_not_sent
            a_message_is_changed_or_that_is_refused
            a_refused_send_did_not_arrive
            what_may_have_arrived_is_uncertain
            a_file_leaves_or_is_refused
            a_person_is_reached_alone_or_that_is_refused
        );

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn two_accounts_are_told_apart() {
            let (one, two) = ($candidate("default").await, $candidate("work").await);
            if let (Some(one), Some(two)) = ($perhaps(one), $perhaps(two)) {
                $crate::conformance::two_accounts_are_told_apart(one, two).await;
            }
        }
    };
    (@cases $candidate:path; $perhaps:path; $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(candidate) = $perhaps($candidate("default").await) {
                    $crate::conformance::$case(candidate).await;
                }
            }
        )*
    };
}
