//! One examination for every backend.
//!
//! A backend's tests add it with one line: [`conformance!`](crate::conformance!), given an
//! expression that makes a [`BackendCandidate`]. Each case is a test of its own, makes its own sandbox and
//! leaves nothing behind.

mod cleared;
mod commands;
pub mod crash;
mod doors;
mod endings;
mod files;
mod lab;
mod life;
mod limits;
pub mod story;

pub use cleared::cleared;
pub use commands::{
    a_stalled_reader_costs_bounded_memory, a_thousand_in_a_row, binary_output_arrives_whole,
    exit_codes_and_signals_are_told, fifty_at_once, nothing_of_the_launcher_is_inherited,
    stdin_reaches_the_command, the_shell_keeps_its_state,
};
pub use doors::{DOORS, assert_closed};
pub use endings::{
    a_timeout_ends_the_whole_tree, an_interrupt_ends_the_whole_tree, letting_go_ends_the_command,
};
pub use files::{a_large_file_comes_back_the_same, files_of_every_awkward_name};
pub use lab::{BackendCandidate, ConformanceLab};
pub use life::{
    a_gateway_that_comes_back_finds_its_command, a_kept_sandbox_resumes_with_its_files,
    a_later_holder_takes_over, a_sandbox_is_listed_while_it_lives, destroying_ends_what_runs,
    destroying_twice_is_fine, two_conversations_share_nothing, two_installations_do_not_meet,
};
pub use limits::{a_fork_bomb_stays_inside_its_bound, open_files_are_bounded};

/// Whether tests live through their long forms, as `cargo xtask test --long` has them do.
pub fn long() -> bool {
    std::env::var_os("HERMETIC_LONG").is_some_and(|set| set == "1")
}

/// Writes one test for each case of the suite. `$candidate` is an expression that makes a fresh
/// [`BackendCandidate`], or `None` to skip (having said why).
#[macro_export]
macro_rules! conformance {
    ($candidate:expr) => {
        $crate::conformance!(@cases $candidate;
            exit_codes_and_signals_are_told
            stdin_reaches_the_command
            binary_output_arrives_whole
            a_stalled_reader_costs_bounded_memory
            a_thousand_in_a_row
            fifty_at_once
            nothing_of_the_launcher_is_inherited
            the_shell_keeps_its_state
            a_timeout_ends_the_whole_tree
            an_interrupt_ends_the_whole_tree
            letting_go_ends_the_command
            files_of_every_awkward_name
            a_large_file_comes_back_the_same
            a_fork_bomb_stays_inside_its_bound
            open_files_are_bounded
            a_sandbox_is_listed_while_it_lives
            destroying_twice_is_fine
            destroying_ends_what_runs
            a_gateway_that_comes_back_finds_its_command
            a_later_holder_takes_over
            a_kept_sandbox_resumes_with_its_files
            two_conversations_share_nothing
            two_installations_do_not_meet
        );
    };
    (@cases $candidate:expr; $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(candidate) = $candidate {
                    $crate::conformance::$case(candidate).await;
                }
            }
        )*
    };
}
