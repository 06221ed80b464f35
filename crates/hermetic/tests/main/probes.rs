//! The stand-alone proxy under attack, in a network of its own where the DNS lies and every address that
//! must not be reached is there to be reached.

pub(crate) mod dns;
mod hello;
mod http;
mod names;
pub(crate) mod namespace;
mod socks;
mod stage;
mod tls;
mod trap;

use namespace::Namespace;
use stage::Stage;

/// Each table in a namespace: making one takes longer than most of its probes.
fn probe(test: &str, probes: fn(&Stage)) {
    if Namespace::STAND_IN.is_where(&format!("probes::{test}")) {
        let stage = Stage::set();
        probes(&stage);
        stage.nothing_was_trapped();
    }
}

#[test]
fn names_that_resolve_to_no_public_address_lead_nowhere() {
    probe(
        "names_that_resolve_to_no_public_address_lead_nowhere",
        dns::lies,
    );
}

#[test]
fn names_that_change_their_mind_are_asked_once() {
    probe(
        "names_that_change_their_mind_are_asked_once",
        dns::rebinding,
    );
}

#[test]
fn answers_of_every_shape_are_survived() {
    probe("answers_of_every_shape_are_survived", dns::shapes);
}

#[test]
fn a_look_up_that_hangs_is_its_own_conversations_trouble() {
    probe(
        "a_look_up_that_hangs_is_its_own_conversations_trouble",
        dns::silence,
    );
}

#[test]
fn targets_that_are_no_plain_names_lead_nowhere() {
    probe("targets_that_are_no_plain_names_lead_nowhere", names::odd);
}

#[test]
fn spellings_of_one_name_are_one_name() {
    probe("spellings_of_one_name_are_one_name", names::spellings);
}

#[test]
fn a_tunnel_carries_the_tls_name_it_was_opened_for() {
    probe(
        "a_tunnel_carries_the_tls_name_it_was_opened_for",
        tls::names,
    );
}

#[test]
fn bytes_that_are_no_hello_lead_nowhere() {
    probe("bytes_that_are_no_hello_lead_nowhere", tls::shapes);
}

#[test]
fn requests_that_can_be_read_twice_lead_nowhere() {
    probe(
        "requests_that_can_be_read_twice_lead_nowhere",
        http::smuggling,
    );
}

#[test]
fn an_upgrade_is_a_websocket_or_nothing() {
    probe("an_upgrade_is_a_websocket_or_nothing", http::upgrades);
}

#[test]
fn answers_that_can_be_read_twice_are_not_passed_on() {
    probe(
        "answers_that_can_be_read_twice_are_not_passed_on",
        http::answers,
    );
}

#[test]
fn socks_is_names_and_connect_only() {
    probe("socks_is_names_and_connect_only", socks::shapes);
}

#[test]
fn slow_and_many_connections_do_not_shut_others_out() {
    probe(
        "slow_and_many_connections_do_not_shut_others_out",
        http::floods,
    );
}
