//! An origin that cannot prove to be the host gets no credential.

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, date_time_ymd};

use super::{ECHO, bench_of};
use crate::lab::tls::Identity;

/// Refused in words, and not one request reached it.
async fn gets_nothing(what: &str, change: impl FnOnce(&mut CertificateParams)) {
    let identity = Identity::changed("api.test", change);
    let trusted = identity.certificate.clone();
    turned_away(what, &identity, trusted).await;
}

async fn turned_away(
    what: &str,
    identity: &Identity,
    trusted: rustls::pki_types::CertificateDer<'static>,
) {
    let bench = bench_of(identity, trusted, ECHO, "api.test").await;
    let answer = bench.get("").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{what}: {answer}");
    assert!(
        answer.contains("no credential was sent"),
        "{what}: {answer}"
    );
    assert!(bench.heads.lock().unwrap().is_empty(), "{what}");
}

#[tokio::test]
async fn a_certificate_that_has_run_out_is_none() {
    gets_nothing("expired", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    })
    .await;
}

#[tokio::test]
async fn a_certificate_of_tomorrow_is_none() {
    gets_nothing("not yet valid", |params| {
        params.not_before = date_time_ymd(2999, 1, 1);
        params.not_after = date_time_ymd(3000, 1, 1);
    })
    .await;
}

#[tokio::test]
async fn a_certificate_for_clients_is_none() {
    gets_nothing("for clients", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    })
    .await;
}

#[tokio::test]
async fn a_name_that_is_only_the_subjects_is_none() {
    gets_nothing("a common name", |params| {
        params.subject_alt_names.clear();
        params
            .distinguished_name
            .push(DnType::CommonName, "api.test");
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_none() {
    let (stranger, known) = (Identity::of("api.test"), Identity::of("api.test"));
    turned_away("self-signed", &stranger, known.certificate).await;
}

#[tokio::test]
async fn a_certificate_for_the_names_below_is_none() {
    let wildcard = Identity::of("*.api.test");
    let trusted = wildcard.certificate.clone();
    turned_away("a wildcard one label too deep", &wildcard, trusted).await;
}
