use std::os::unix::fs::PermissionsExt;

use super::*;
use hermetic_testkit::clock::ManualClock;
use hermetic_types::{Clock as _, SystemClock};

#[test]
fn it_is_the_same_after_a_restart_and_its_key_is_ours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap();
    let again = CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap();
    assert_eq!(first.certificate(), again.certificate());
    let mode = fs::metadata(folder.path().join(KEY_FILE)).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left beside"
    );
}

#[test]
fn of_first_starts_at_once_all_have_the_same_authority() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(4);
        let open = || {
            barrier.wait();
            CertificateAuthority::open(folder.path(), SystemClock::shared())
                .map(|authority| authority.certificate().to_owned())
        };
        let certificates: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let first = certificates[0].as_ref().unwrap();
        for certificate in &certificates {
            assert_eq!(certificate.as_ref().unwrap(), first);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn what_a_killed_start_left_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let left = format!("egress-ca.new-{}-{number}", std::process::id());
        fs::write(folder.path().join(left), "").unwrap();
    }
    CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap();
}

#[test]
fn a_key_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap();
    let key = folder.path().join(KEY_FILE);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        CertificateAuthority::open(folder.path(), SystemClock::shared()),
        Err(CaError::Exposed { .. })
    ));
}

#[test]
fn a_leaf_is_made_anew_where_the_clock_was_set_out_of_its_time() {
    let clock = ManualClock::today();
    let authority = CertificateAuthority::ephemeral(clock.shared()).unwrap();
    let host = HostName::parse("a.test").unwrap();
    let mut last = authority.server_config(&host).unwrap();
    let mut is_made_anew = |now: Timestamp| {
        clock.set(now);
        let leaf = authority.server_config(&host).unwrap();
        !Arc::ptr_eq(&std::mem::replace(&mut last, Arc::clone(&leaf)), &leaf)
    };
    let today = ManualClock::today().now();
    assert!(!is_made_anew(today.plus(DAY)), "it is good for a week");
    assert!(!is_made_anew(today.minus(DAY / 2)), "and a day before");
    assert!(is_made_anew(today.minus(DAY * 365)), "clocks begin in 1970");
    assert!(is_made_anew(today), "and are set by the network");
    assert!(is_made_anew(today.plus(LEAF_RENEWAL)));
}

#[test]
fn leaves_are_minted_once_and_bounded() {
    let authority = CertificateAuthority::ephemeral(SystemClock::shared()).unwrap();
    let host = HostName::parse("a.test").unwrap();
    let first = authority.server_config(&host).unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &authority.server_config(&host).unwrap()
    ));
    for n in 0..300 {
        authority
            .server_config(&HostName::parse(&format!("h{n}.test")).unwrap())
            .unwrap();
    }
    assert!(authority.leaves.lock().unwrap().len() <= MOST_LEAVES);
}
